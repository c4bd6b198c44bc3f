"""The write lock of a knowledge base, between processes and between the tasks of one process.

`WriterLock` locks a file: the operating system holds the lock, so a killed writer leaves none.
`TaskLock` is reentrant within one process.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from weakref import WeakKeyDictionary

from clew.errors import Locked, StoreError

_POLL_INTERVAL = 0.05  # seconds between two attempts

if sys.platform == "win32":
    import msvcrt

    _LOCK_OFFSET = 1 << 30  # Windows cannot read a locked byte, so an unused one is locked

    def _try_lock(file: FileIO) -> bool:
        os.lseek(file.fileno(), _LOCK_OFFSET, os.SEEK_SET)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(file: FileIO) -> None:
        """Release the lock; closing the file would do so only after a delay."""
        os.lseek(file.fileno(), _LOCK_OFFSET, os.SEEK_SET)
        with suppress(OSError):  # not held by this process
            msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(file: FileIO) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: FileIO) -> None:
        """Do nothing: closing releases it once all processes that inherited the file have."""


class WriterLock:
    """A context manager around an exclusive lock on one file; waits up to `patience` seconds."""

    def __init__(self, path: Path, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._file: FileIO | None = None

    def __enter__(self) -> "WriterLock":
        """Take the lock, or raise `Locked` with the holder's process id."""
        with closing(self._failed_attempts()) as attempts:
            for _ in attempts:
                time.sleep(_POLL_INTERVAL)
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        if self._file is not None:
            _unlock(self._file)
            self._file.close()
            self._file = None

    async def __aenter__(self) -> "WriterLock":
        """The same without blocking the event loop; a cancelled wait leaves no lock."""
        with closing(self._failed_attempts()) as attempts:
            for _ in attempts:
                await asyncio.sleep(_POLL_INTERVAL)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Release the lock."""
        self.__exit__()

    def files(self) -> tuple[int, ...]:
        """File descriptors that hold the lock: a child that inherits them holds it too."""
        if self._file is None or sys.platform == "win32":
            return ()
        return (self._file.fileno(),)

    def _failed_attempts(self) -> Generator[None]:
        """Try to take the lock, once per step, until it is held."""
        try:
            file = self._path.open("a+b", buffering=0)
        except OSError as error:
            raise StoreError(
                f"cannot write to {self._path.parent}: {error.strerror or error}"
            ) from error
        deadline = time.monotonic() + self._patience
        try:
            while not _try_lock(file):
                if time.monotonic() >= deadline:
                    raise Locked(self._holder_message())
                yield
        except BaseException:
            file.close()
            raise
        with suppress(OSError):  # on a full disk the holder is not recorded
            file.truncate(0)
            file.write(json.dumps({"pid": os.getpid()}).encode())
        self._file = file

    def _holder_message(self) -> str:
        try:
            pid = json.loads(self._path.read_bytes())["pid"]
        except (OSError, ValueError, KeyError):
            pid = "unknown"
        return (
            f"process {pid} is writing to {self._path.parent}; wait for it to end, "
            "or set a longer `wait` in clew.toml"
        )


@dataclass(eq=False)
class _Hold:
    """One acquisition; a task that outlives it no longer holds the lock."""

    lock: "TaskLock"
    open: bool = True


# Per task: tasks started while the lock is held inherit it, all others have to wait.
_HELD_LOCKS: ContextVar[tuple[_Hold, ...]] = ContextVar("clew_held_locks", default=())


class TaskLock:
    """Lock for writing to one store, shared by all tasks and event loops."""

    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    @property
    def is_held(self) -> bool:
        """Whether the current task, or the one that started it, holds the lock."""
        return any(hold.lock is self and hold.open for hold in _HELD_LOCKS.get())

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[bool]:
        """Acquire the lock; yields False if it is already held by this task."""
        if self.is_held:
            yield False
            return
        async with self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            with self.hold():
                yield True

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock without waiting, if the caller knows that it is free."""
        before, hold = _HELD_LOCKS.get(), _Hold(self)
        _HELD_LOCKS.set((*before, hold))
        try:
            yield
        finally:
            hold.open = False
            _HELD_LOCKS.set(before)
