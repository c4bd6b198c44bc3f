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

from clew.store.protocol import Addition, Publish

if TYPE_CHECKING:
    from clew.store.sqlite import SqliteStore

LEAST = 256  # documents from which on starting a second interpreter pays off
_TOLD_AT_ONCE = 32  # additions per message
_START = "import json,sys;sys.path[:]=json.loads(sys.argv[1]);from clew.store import scribe_desk;scribe_desk.work(*sys.argv[2:])"  # noqa: E501


@dataclass(eq=False)
class Scribe:
    """The parent's handle of the writer process."""

    process: Process
    done: bool = False
    """Whether everything was written."""
    _pending: list[Any] = field(default_factory=list)
    _fit: bool = True
    _begun: bool = False

    def take(self, addition: Addition) -> None:
        """Send an addition; they are written in this order."""
        self._pending.append(told(addition))
        if len(self._pending) >= _TOLD_AT_ONCE:
            self._tell("add", self._pending)
            self._pending = []

    def begin(self) -> None:
        """Start writing rows that need no vectors, with the database locked for others."""
        if not self._begun:
            self._tell("add", self._pending)
            self._tell("begin", None)
            self._begun = True

    async def write(self) -> bool:
        """Write everything; return False if it failed and the caller has to write."""
        self.begin()
        self._tell("write", None)
        if self._fit and self.process.stdout is not None:
            self.done = await self.process.stdout.readline() == b"written\n"
        return self.done

    def _tell(self, command: str, payload: Any) -> None:
        pipe = self.process.stdin
        if not self._fit or pipe is None or pipe.is_closing():
            self._fit = False
            return
        try:
            raw = marshal.dumps((command, payload))
        except ValueError:  # metadata that marshal cannot serialise
            self._fit = False
            return
        pipe.write(len(raw).to_bytes(8, "little") + raw)


@asynccontextmanager
async def scribe_for(
    store: "SqliteStore", publish: Publish, documents: int
) -> AsyncIterator[Scribe | None]:
    """Start a writer process for a locked store; None if not worthwhile or not possible."""
    process = await _started(store, publish) if documents >= LEAST and _cores() > 1 else None
    if process is None:
        yield None
        return
    writer = Scribe(process)
    try:
        yield writer
    finally:
        await _dismissed(process, writer.done)


async def _started(store: "SqliteStore", publish: Publish) -> Process | None:
    if not sys.executable:
        return None
    arguments = (str(store.folder.absolute()), publish.__module__, publish.__name__)
    command = (sys.executable, "-c", _START, json.dumps(sys.path), *arguments)
    try:
        return await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, pass_fds=store.lock_files()
        )
    except (OSError, ValueError):
        return None


async def _dismissed(process: Process, done: bool) -> None:
    """Stop the process: it ends with its input; without a finished write it is killed."""
    if process.stdin is not None:
        process.stdin.close()
    if not done and process.returncode is None:
        process.kill()  # SQLite rolls back what was not committed
    await process.wait()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def told(addition: Addition) -> tuple[Any, ...]:
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
