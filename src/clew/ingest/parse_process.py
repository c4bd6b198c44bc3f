"""Parses files in a child process that can be ended, with limits on processor time and memory.

A hostile file can at worst end the child, which costs that file and nothing else. A child that is
idle is used for the next file, and ends by itself after a while; it is started anew when needed.
"""

import asyncio
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from clew.ingest.readers.source import FileEnd, ReadBudget, Skipped, SourceFile
from clew.types import Document

ReadItem = Document | Skipped | FileEnd
_MAX_MEMORY = 4 << 30
MAX_WAIT_FACTOR = 20  # a parser that waits (for a disk) may take this many times its budget
_MAX_RATIO = 200  # characters of text per byte of the file …
_FREE_CHARACTERS = 2_000_000  # … where there are more than these
_IDLE_SECONDS = 20.0  # until a child without work ends
_LEAST_SECONDS = 0.01  # a timer of none would not run
_CHILD_CODE = (
    "import json,sys;sys.path[:]=json.loads(sys.argv[1]);"
    "from clew.ingest import parse_process;parse_process.main(*sys.argv[2:])"
)
_BROKEN = "breaks its parser, or needs more memory than it may use"
_MAX_SHOWN = 100  # characters of an error


async def parse_file(
    source: SourceFile, budget: ReadBudget, module: str, function: str
) -> list[ReadItem] | None:
    """Read a file by `module.function` in a child process; None where none can be started.

    A file that ends the child, or takes longer than its budget, is skipped with a reason.
    """
    request = _encode_request(source, budget)
    while (child := _IDLE.take() or _start_child(module, function)) is not None:
        done = asyncio.ensure_future(asyncio.to_thread(child.request, request))
        finished: set[asyncio.Future[bytes | None]] = set()
        try:
            limit = max(budget.seconds, 1.0) * MAX_WAIT_FACTOR
            finished, _ = await asyncio.wait([done], timeout=limit)
        finally:
            if not finished:
                child.end()  # its pipe closes, and so the waiting thread goes on
        reply = await done
        if reply is not None:
            _IDLE.put(child)
            return decode_items(json.loads(reply))
        status = child.end()
        if finished and status == 0:
            continue  # it had just ended for want of work
        late = not finished or status == -getattr(signal, "SIGPROF", 0)
        reason = budget.say_too_slow() if late else _BROKEN
        return [Skipped(source.name, reason)]
    return None


@dataclass(eq=False)
class _Child:
    """The parent's handle of a child process."""

    process: "subprocess.Popen[bytes]"

    def request(self, message: bytes) -> bytes | None:
        """Send a message and wait for the reply; None if the child ended."""
        pipe, replies = self.process.stdin, self.process.stdout
        assert pipe is not None and replies is not None
        try:
            pipe.write(message)
            pipe.flush()
            return _read_message(replies)
        except (OSError, ValueError):  # the pipe was closed at the other end, or here
            return None

    def end(self) -> int:
        """End the process, and the programs that it started; return its status."""
        if sys.platform == "win32":
            self.process.kill()
        elif self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        status = self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):  # what was not sent is lost with it
                if pipe is not None:
                    pipe.close()
        return status


class _IdleChildren:
    """Children without work, of this process alone."""

    def __init__(self) -> None:
        self._children: list[_Child] = []
        self._process = os.getpid()

    def take(self) -> _Child | None:
        """Return one, or None."""
        if self._process != os.getpid():  # a forked process must not use those of its parent
            self._children, self._process = [], os.getpid()
        while self._children:
            try:
                child = self._children.pop()
            except IndexError:  # another thread took the last one
                return None
            if child.process.poll() is None:
                return child
            child.end()
        return None

    def put(self, child: _Child) -> None:
        """Keep one."""
        self._children.append(child)


_IDLE = _IdleChildren()


def _start_child(module: str, function: str) -> _Child | None:
    if not sys.executable:
        return None
    command = (sys.executable, "-c", _CHILD_CODE, json.dumps(sys.path), module, function)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=sys.platform != "win32",
        )
    except OSError:
        return None
    return _Child(process)


def _frame(value: object) -> bytes:
    raw = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return len(raw).to_bytes(8, "little") + raw


def _read_message(pipe: IO[bytes]) -> bytes | None:
    """The next message; None where the pipe ends before it does."""
    head = pipe.read(8)
    size = int.from_bytes(head, "little")
    raw = pipe.read(size) if len(head) == 8 else b""
    return raw if len(head) == 8 and len(raw) == size else None


def _encode_request(source: SourceFile, budget: ReadBudget) -> bytes:
    # The child may have started in another folder.
    where = os.fsencode(os.path.abspath(source.path)).hex()
    return _frame([where, source.name, source.row_names, asdict(budget)])


def encode_items(items: Sequence[ReadItem]) -> list[Any]:
    """What was read as plain lists."""
    return [
        ["document", d.id, d.text, d.title, d.names, dict(d.metadata), d.page_starts, d.origin]
        if isinstance(d := item, Document)
        else ["skipped" if isinstance(item, Skipped) else "end", asdict(item)]
        for item in items
    ]


def decode_items(raw: list[Any]) -> list[ReadItem]:
    """What was read from its lists."""
    items: list[ReadItem] = []
    for kind, *cells in raw:
        if kind == "document":
            name, text, title, names, metadata, starts, origin = cells
            read = (name, text, title, tuple(names), metadata, tuple(starts), origin)
            items.append(Document(*read))
        else:
            items.append({"skipped": Skipped, "end": FileEnd}[kind](**cells[0]))
    return items


def main(module: str, function: str) -> None:
    """Parse what is asked for until the input ends or nothing comes for a while."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # a parser that prints must not garble replies
    read = getattr(importlib.import_module(module), function)
    _limit_memory()
    while True:
        idle = threading.Timer(_IDLE_SECONDS, os._exit, (0,))
        idle.daemon = True
        idle.start()
        message = _read_message(sys.stdin.buffer)
        idle.cancel()
        if message is None:
            os._exit(0)
        where, name, row_names, limits = json.loads(message)
        source = SourceFile(Path(os.fsdecode(bytes.fromhex(where))), name, row_names)
        budget = ReadBudget(**limits)
        _limit_seconds(budget.seconds)
        try:
            items = _limit_text(source, list(read(source, budget)))
        except Exception as error:  # noqa: BLE001  (the edge of a worker: one file, and it is told)
            shown = " ".join(f"{type(error).__name__} {error}".split())[:_MAX_SHOWN]
            items = [Skipped(name, f"{_BROKEN} ({shown})")]
        _limit_seconds(0.0)
        replies.write(_frame(encode_items(items)))
        replies.flush()


def _limit_seconds(seconds: float) -> None:
    """End this process after so much processor time; 0 sets no limit."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds and max(seconds, _LEAST_SECONDS))


def _limit_memory() -> None:
    if sys.platform == "win32":
        return
    import resource

    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = _MAX_MEMORY if hard == resource.RLIM_INFINITY else min(_MAX_MEMORY, hard)
    with suppress(ValueError):  # where the system knows no such limit
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _limit_text(source: SourceFile, items: list[ReadItem]) -> list[ReadItem]:
    size = sum(len(item.text) for item in items if isinstance(item, Document))
    if size <= _FREE_CHARACTERS:
        return items
    most = max(_FREE_CHARACTERS, _MAX_RATIO * source.path.stat().st_size)
    if size > most:
        return [Skipped(source.name, f"unpacks to {size} characters, more than {most}")]
    return items
