"""Functions run in a child process with limits on processor time and memory.

A hostile page of a PDF can then at worst end the child, which costs its picture and nothing else.
"""

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from clew.errors import ClewError, InputError

_MAX_MEMORY = 4 << 30
_GRACE = 15.0  # seconds beyond the budget until the child is killed


def _serve_child(pipe: Connection) -> None:
    """Do what comes through the pipe until it closes."""
    while True:
        try:
            work, arguments, seconds = pipe.recv()
        except EOFError:
            return
        _limit_resources(seconds)
        try:
            pipe.send((True, work(*arguments)))
        except ClewError as error:
            pipe.send((False, str(error)))


def _limit_resources(allowed: float) -> None:
    """Limit memory, and processor time to that used so far and that of one call more."""
    if sys.platform == "win32":
        return
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime + allowed) + 1
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


class LimitedProcess:
    """A child process that calls functions, one after the other; started again when it ends."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._context = multiprocessing.get_context("spawn")
        self._child: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._lock = threading.Lock()
        self._used = 0.0

    def call(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of a module in the child; raise `InputError` where that ends it."""
        with self._lock:
            return self._call(work, arguments)

    def close_idle(self, seconds: float) -> None:
        """End the child if it had nothing to do for so long."""
        if self._child is None or not self._lock.acquire(blocking=False):
            return  # it has something to do
        try:
            if time.monotonic() - self._used > seconds:
                self.close()
        finally:
            self._lock.release()

    def _call(self, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        if self._child is None or not self._child.is_alive():
            self._start()
        assert self._pipe is not None
        self._used = time.monotonic()
        try:
            self._pipe.send((work, arguments, self.seconds))
            if self._pipe.poll(self.seconds + _GRACE):
                good, found = self._pipe.recv()
                self._used = time.monotonic()
                if not good:
                    raise InputError(found)
                return found
            reason = "took too long"
        except (EOFError, OSError):
            reason = "needed too much memory or processor time"
        self.close()
        raise InputError(reason)

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
