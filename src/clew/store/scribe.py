"""A second process that writes: it works out rows while the first one still waits for models.

One interpreter cannot do both at once, and with fast models the writing took as long as all calls.
The scribe is a plain child process (nothing is forked, and nothing of the caller's main module is
run) which is told each addition as it comes and writes all of them, in one transaction, when asked
to. It needs no luck: whatever happens to it, the caller makes the additions again from the replies
that are remembered and writes them itself; a transaction that did not end is undone, and one that
did is not done again.
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

LEAST = 256  # documents from which on a second interpreter is worth its start
_TOLD_AT_ONCE = 32  # additions per message
_START = "import json,sys;sys.path[:]=json.loads(sys.argv[1]);from clew.store import scribe_desk;scribe_desk.work(*sys.argv[2:])"  # noqa: E501


@dataclass(eq=False)
class Scribe:
    """The caller's side."""

    process: Process
    done: bool = False
    """Whether everything is written."""
    _pending: list[Any] = field(default_factory=list)
    _fit: bool = True
    _begun: bool = False

    def take(self, addition: Addition) -> None:
        """Tell it an addition; the order counts."""
        self._pending.append(told(addition))
        if len(self._pending) >= _TOLD_AT_ONCE:
            self._tell("add", self._pending)
            self._pending = []

    def begin(self) -> None:
        """No more additions: begin writing what needs no vectors. Others cannot write meanwhile."""
        if not self._begun:
            self._tell("add", self._pending)
            self._tell("begin", None)
            self._begun = True

    async def write(self) -> bool:
        """Have everything written; False when that did not work and the caller has to."""
        self.begin()
        self._tell("write", None)
        if self._fit and self.process.stdout is not None:
            self.done = await self.process.stdout.readline() == b"written\n"
        return self.done

    def _tell(self, what: str, more: Any) -> None:
        line = self.process.stdin
        if not self._fit or line is None or line.is_closing():
            self._fit = False
            return
        try:
            raw = marshal.dumps((what, more))
        except ValueError:  # a document with metadata of a kind that cannot travel
            self._fit = False
            return
        line.write(len(raw).to_bytes(8, "little") + raw)


@asynccontextmanager
async def scribe_for(
    store: "SqliteStore", publish: Publish, documents: int
) -> AsyncIterator[Scribe | None]:
    """A scribe for a store that is being written to; none where it would not pay or cannot be."""
    process = await _started(store, publish) if documents >= LEAST and _cores() > 1 else None
    if process is None:
        yield None
        return
    scribe = Scribe(process)
    try:
        yield scribe
    finally:
        await _dismissed(process, scribe.done)


async def _started(store: "SqliteStore", publish: Publish) -> Process | None:
    if not sys.executable:
        return None
    told = (str(store.folder.absolute()), publish.__module__, publish.__name__)
    words = (sys.executable, "-c", _START, json.dumps(sys.path), *told)
    try:
        return await asyncio.create_subprocess_exec(
            *words, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, pass_fds=store.lock_files()
        )
    except (OSError, ValueError):
        return None


async def _dismissed(process: Process, done: bool) -> None:
    """Let it go: it ends when its input does; one that has not written is not to."""
    if process.stdin is not None:
        process.stdin.close()
    if not done and process.returncode is None:
        process.kill()  # SQLite undoes what was not committed
    await process.wait()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def told(addition: Addition) -> tuple[Any, ...]:
    """An addition as plain tuples: they travel five times faster than objects."""
    one = addition.document
    return (
        (one.id, one.text, one.title, one.names, dict(one.metadata), one.page_starts),
        [
            (c.id, c.document, c.start, c.end, c.text, c.title, c.heading, c.page)
            for c in addition.chunks
        ],
        [
            (
                [
                    (e.name, e.type, e.description, e.spans, e.about, e.aliases, dict(e.attributes))
                    for e in said.entities
                ],
                [
                    (f.text, f.members, f.relation, f.keywords, f.description, f.weight, f.span)
                    for f in said.facts
                ],
                said.failed,
                said.exact,
            )
            for said in addition.extractions
        ],
        addition.stamp,
    )
