"""Writer process: a child that prepares and writes rows while the parent waits for models.

One interpreter cannot do both in parallel, and with fast models writing took as long as all calls.
The writer is a plain child process (nothing is forked, and the parent's main module is not run).
It receives each addition as it arrives and writes all of them in one transaction on request. If it
fails, the parent rebuilds the additions from cached replies and writes them itself; an unfinished
transaction is rolled back, and a finished one is not repeated.
"""

import asyncio
import json
import marshal
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.store.protocol import Addition, DeriveArrays

if TYPE_CHECKING:
    from clew.store.sqlite import SqliteStore

MIN_DOCUMENTS = 256  # documents from which on starting a second interpreter pays off
_ADDITIONS_PER_MESSAGE = 32  # additions per message
_CHILD_CODE = "import json,sys;sys.path[:]=json.loads(sys.argv[1]);from clew.store import scribe_desk;scribe_desk.work(*sys.argv[2:])"  # noqa: E501


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
            self._send_message("add", self._pending)
            self._pending = []

    def begin_write(self) -> None:
        """Start writing rows that need no vectors, with the database locked for others."""
        if not self._writing:
            self._send_message("add", self._pending)
            self._send_message("begin", None)
            self._writing = True

    async def write(self) -> bool:
        """Write everything; return False if it failed and the caller has to write."""
        self.begin_write()
        self._send_message("write", None)
        if self._usable and self.process.stdout is not None:
            self.done = await self.process.stdout.readline() == b"written\n"
        return self.done

    def _send_message(self, command: str, payload: Any) -> None:
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
    store: "SqliteStore", publish: DeriveArrays, documents: int
) -> AsyncIterator[WriterProcess | None]:
    """Start a writer process for a locked store; None if not worthwhile or not possible."""
    process = (
        await _start_process(store, publish)
        if documents >= MIN_DOCUMENTS and _count_cores() > 1
        else None
    )
    if process is None:
        yield None
        return
    writer = WriterProcess(process)
    try:
        yield writer
    finally:
        await _stop_process(process, writer.done)


async def _start_process(store: "SqliteStore", publish: DeriveArrays) -> Process | None:
    if not sys.executable:
        return None
    arguments = (str(store.folder.absolute()), publish.__module__, publish.__name__)
    command = (sys.executable, "-c", _CHILD_CODE, json.dumps(sys.path), *arguments)
    try:
        return await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, pass_fds=store.lock_fds()
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


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def encode_addition(addition: Addition) -> tuple[Any, ...]:
    """An addition as plain tuples, which serialise five times faster than objects."""
    doc = addition.document
    return (
        (doc.id, doc.text, doc.title, doc.names, dict(doc.metadata), doc.page_starts),
        [
            (c.id, c.document, c.start, c.end, c.text, c.title, c.heading, c.page)
            for c in addition.chunks
        ],
        [
            (
                [
                    (e.name, e.type, e.description, e.spans, e.about, e.aliases, dict(e.attributes))
                    for e in extraction.entities
                ],
                [
                    (f.text, f.members, f.relation, f.keywords, f.description, f.weight, f.span)
                    for f in extraction.facts
                ],
                extraction.failed,
                extraction.exact,
            )
            for extraction in addition.extractions
        ],
        addition.stamp,
    )
