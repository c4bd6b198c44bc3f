"""Parsers run in a child process with limits on processor time and memory.

A hostile file can then at worst end the child, which costs that file and nothing else.
"""

import multiprocessing
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from clew import sync
from clew.ingest.files import read_files
from clew.ingest.readers.source import DEFAULT_BUDGET, Skipped, SourceFile
from clew.types import Document

_MAX_MEMORY = 4 << 30
_MAX_RATIO = 200  # characters of text per byte of the file …
_FREE_CHARACTERS = 2_000_000  # … where there are more than these
_GRACE = 15.0  # seconds beyond the budget until the child is killed


def parse_limited(source: SourceFile) -> list[Document | Skipped]:
    """Read one file in the child; this process has set its limits."""

    async def read() -> list[Document | Skipped]:
        items = [item async for item in read_files([source])]
        return [item for item in items if isinstance(item, Document | Skipped)]

    found = sync.run(read())
    size = sum(len(item.text) for item in found if isinstance(item, Document))
    most = max(_FREE_CHARACTERS, _MAX_RATIO * source.path.stat().st_size)
    if size > most:
        return [Skipped(source.name, f"unpacks to {size} characters, more than {most}")]
    return found


def _serve_child(pipe: Connection) -> None:
    """Parse what comes through the pipe until it closes."""
    while True:
        try:
            path, name = pipe.recv()
        except EOFError:
            return
        _limit_resources()
        pipe.send(parse_limited(SourceFile(Path(path), name)))


def _limit_resources() -> None:
    """Limit memory, and processor time to that used so far and one file's budget more."""
    if sys.platform == "win32":
        return
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime + DEFAULT_BUDGET.seconds) + 1
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


class ParseProcess:
    """A child process that parses files, one after the other; started again when it ends."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._child: BaseProcess | None = None
        self._pipe: Connection | None = None

    def parse(self, source: SourceFile) -> Sequence[Document | Skipped]:
        """Parse a file; one that ends the child or takes too long is skipped with a reason."""
        if self._child is None or not self._child.is_alive():
            self._start()
        assert self._pipe is not None
        try:
            self._pipe.send((str(source.path), source.name))
            if self._pipe.poll(DEFAULT_BUDGET.seconds + _GRACE):
                found: Sequence[Document | Skipped] = self._pipe.recv()
                return found
            reason = "took too long to parse"
        except (EOFError, OSError):
            reason = "needed too much memory or processor time to parse"
        self.close()
        return [Skipped(source.name, reason)]

    def close(self) -> None:
        """End the child."""
        if self._pipe is not None:
            self._pipe.close()
        if self._child is not None:
            self._child.kill()
            self._child.join()
        self._child = self._pipe = None

    def _start(self) -> None:
        here, there = self._context.Pipe()
        self._child = self._context.Process(target=_serve_child, args=(there,), daemon=True)
        self._child.start()
        there.close()
        self._pipe = here
