"""Writer process: a child that prepares and writes rows while the parent waits for models.

One interpreter cannot do both in parallel, and with fast models writing took as long as all calls.
The writer is a plain child process (nothing is forked, and the parent's main module is not run).
It receives each addition as it arrives and writes all of them in one transaction on request. If it
fails, the parent rebuilds the additions from cached replies and writes them itself; an unfinished
transaction is rolled back, and a finished one is not repeated.
"""

import asyncio
import gc
import importlib
import json
import marshal
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from clew.store.packed import decode_extraction, encode_extraction
from clew.store.protocol import Addition, DeriveArrays
from clew.store.sqlite.insert import PreparedAdditions
from clew.store.sqlite.store import SqliteStore
from clew.types import Chunk, Document

MIN_DOCUMENTS = 256  # documents from which on starting a second interpreter pays off
_ADDITIONS_PER_MESSAGE = 32
_CHILD_CODE = (
    "import importlib,json,sys;sys.path[:]=json.loads(sys.argv[1]);"
    "importlib.import_module(sys.argv[2]).main(*sys.argv[3:])"
)


@dataclass(eq=False)
class WriterProcess:
    """The parent's handle of the writer process."""

    process: Process
    done: bool = False
    """Whether everything was written."""
    _pending: list[Any] = field(default_factory=list)
    _usable: bool = True
    _writing: bool = False

    def send(self, addition: Addition) -> None:
        """Send an addition; they are written in this order."""
        self._pending.append(encode_addition(addition))
        if len(self._pending) >= _ADDITIONS_PER_MESSAGE:
            self.send_message("add", self._pending)
            self._pending = []

    def begin_write(self) -> None:
        """Start writing rows that need no vectors, with the database locked for others."""
        if not self._writing:
            self.send_message("add", self._pending)
            self.send_message("begin", None)
            self._writing = True

    async def write(self) -> bool:
        """Write everything; return False if it failed and the caller has to write."""
        self.begin_write()
        self.send_message("write", None)
        if self._usable and self.process.stdout is not None:
            self.done = await self.process.stdout.readline() == b"written\n"
        return self.done

    def send_message(self, command: str, payload: Any) -> None:
        """Send a command; one that cannot be sent makes the writer unusable."""
        pipe = self.process.stdin
        if not self._usable or pipe is None or pipe.is_closing():
            self._usable = False
            return
        try:
            raw = marshal.dumps((command, payload))
        except ValueError:  # metadata that marshal cannot serialise
            self._usable = False
            return
        pipe.write(len(raw).to_bytes(8, "little") + raw)


@asynccontextmanager
async def open_writer_process(
    store: SqliteStore, derive: DeriveArrays, documents: int
) -> AsyncIterator[WriterProcess | None]:
    """Start a writer process for a locked store; None if not worthwhile or not possible."""
    memory = "" if store.memory is None else str(store.memory)
    given = (str(store.folder.absolute()), derive.__module__, derive.__name__, memory)
    async with run_writer(__name__, given, documents, store.lock_fds()) as writer:
        yield writer


@asynccontextmanager
async def run_writer(
    module: str, given: Sequence[str], documents: int, fds: tuple[int, ...] = ()
) -> AsyncIterator[WriterProcess | None]:
    """Run `main` of a module as a writer process; None if not worthwhile or not possible."""
    worthwhile = documents >= MIN_DOCUMENTS and count_cores() > 1
    process = await _start_process(module, given, fds) if worthwhile else None
    if process is None:
        yield None
        return
    writer = WriterProcess(process)
    try:
        yield writer
    finally:
        await _stop_process(process, writer.done)


async def _start_process(module: str, given: Sequence[str], fds: tuple[int, ...]) -> Process | None:
    if not sys.executable:
        return None
    command = (sys.executable, "-c", _CHILD_CODE, json.dumps(sys.path), module, *given)
    try:
        return await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, pass_fds=fds
        )
    except (OSError, ValueError):
        return None


async def _stop_process(process: Process, done: bool) -> None:
    """Stop the process: it ends with its input; without a finished write it is killed."""
    if process.stdin is not None:
        process.stdin.close()
    if not done and process.returncode is None:
        process.kill()  # SQLite rolls back what was not committed
    await process.wait()


def count_cores() -> int:
    """Number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def encode_addition(addition: Addition) -> tuple[Any, ...]:
    """An addition as plain tuples, which serialise five times faster than objects."""
    doc = addition.document
    chunks = [
        (c.id, c.document, c.start, c.end, c.text, c.title, c.heading, c.page)
        for c in addition.chunks
    ]
    return (
        (doc.id, doc.text, doc.title, doc.names, dict(doc.metadata), doc.page_starts),
        chunks,
        [encode_extraction(extraction) for extraction in addition.extractions],
        addition.stamp,
    )


def decode_addition(raw: tuple[Any, ...]) -> Addition:
    """Rebuild an addition from its tuples."""
    document, chunks, extractions, stamp = raw
    decoded = tuple([decode_extraction(one) for one in extractions])
    passages = tuple([Chunk(*chunk) for chunk in chunks])
    return Addition(Document(*document), passages, decoded, stamp)


def main(folder: str, module: str, name: str, memory: str = "") -> None:
    """Run until the input ends, at the latest when the parent exits."""
    store = SqliteStore(Path(folder))
    store.memory = int(memory) if memory else None
    receive_additions(read_messages(sys.stdin.buffer), store, module, name)


class PreparedStore(Protocol):
    """A store that writes prepared additions in a process whose parent holds the lock."""

    def write_prepared(
        self, prepared: PreparedAdditions, derive: DeriveArrays, wait: Callable[[], None], /
    ) -> object:
        """Write; `wait` waits for vectors."""


def receive_additions(
    stream: Iterator[tuple[str, Any]], store: PreparedStore, module: str, name: str
) -> None:
    """Prepare additions as they arrive, and write them when the parent says so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and stops this process
    gc.disable()  # there are no reference cycles, and everything lives until the end
    prepared = PreparedAdditions()
    derive = getattr(importlib.import_module(module), name)
    for command, payload in stream:
        if command == "add":
            for raw in payload:
                prepared.add(decode_addition(raw))
        else:
            store.write_prepared(prepared, derive, lambda: _wait_for_write(stream))
            sys.stdout.write("written\n")
            sys.stdout.flush()
    os._exit(0)  # skips the slow teardown; nothing needs closing


def _wait_for_write(stream: Iterator[tuple[str, Any]]) -> None:
    """Wait for the write command; raise EOFError if the input ends first."""
    if next(stream, None) is None:
        raise EOFError


def read_messages(source: BinaryIO) -> Iterator[tuple[str, Any]]:
    """Yield messages as they arrive; a truncated one ends the stream."""
    while len(head := source.read(8)) == 8:
        size = int.from_bytes(head, "little")
        if len(raw := source.read(size)) < size:
            return
        yield marshal.loads(raw)  # trusted: sent by the parent process
