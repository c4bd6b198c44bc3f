"""One writer at a time, held by the operating system, so a killed writer leaves no lock."""

import asyncio
import json
import os
import sys
import time
from contextlib import suppress
from io import FileIO
from pathlib import Path
from types import TracebackType

from clew.errors import Locked, StoreError

_PAUSE = 0.05  # seconds between two tries

if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 30  # a locked byte cannot be read there, so one is locked where nothing is written

    def _locked(file: FileIO) -> bool:
        """Take the lock, if nobody has it."""
        os.lseek(file.fileno(), _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlocked(file: FileIO) -> None:
        """Give it back; closing does so too, but only some time later."""
        os.lseek(file.fileno(), _FAR, os.SEEK_SET)
        with suppress(OSError):  # it was not ours
            msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _locked(file: FileIO) -> bool:
        """Take the lock, if nobody has it."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlocked(file: FileIO) -> None:
        """Closing does it, when the last process that inherited the file has closed it."""


class WriterLock:
    """A context manager around an exclusive lock on one file; waits up to `patience` seconds."""

    def __init__(self, path: Path, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._file: FileIO | None = None

    def __enter__(self) -> "WriterLock":
        """Take the lock or say who holds it."""
        file, deadline = self._opened(), time.monotonic() + self._patience
        try:
            while not self._taken(file, deadline):
                time.sleep(_PAUSE)
        except BaseException:
            file.close()
            raise
        self._file = file
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go."""
        if self._file is not None:
            _unlocked(self._file)
            self._file.close()
            self._file = None

    async def __aenter__(self) -> "WriterLock":
        """The same, while other tasks go on; one that is cancelled leaves no lock."""
        file, deadline = self._opened(), time.monotonic() + self._patience
        try:
            while not self._taken(file, deadline):  # noqa: ASYNC110  (no event tells of it)
                await asyncio.sleep(_PAUSE)
        except BaseException:
            file.close()
            raise
        self._file = file
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go."""
        self.__exit__(kind, error, trace)

    def files(self) -> tuple[int, ...]:
        """The open file that holds the lock: whoever inherits it holds it too."""
        if self._file is None or sys.platform == "win32":
            return ()
        return (self._file.fileno(),)

    def _opened(self) -> FileIO:
        try:
            return self._path.open("a+b", buffering=0)
        except OSError as error:
            raise StoreError(f"cannot write to {self._path.parent}: {error.strerror}") from error

    def _taken(self, file: FileIO, deadline: float) -> bool:
        if _locked(file):
            with suppress(OSError):  # on a full disk nobody learns who writes; it can be written
                file.truncate(0)
                file.write(json.dumps({"pid": os.getpid()}).encode())
            return True
        if time.monotonic() >= deadline:
            raise Locked(self._holder())
        return False

    def _holder(self) -> str:
        try:
            pid = json.loads(self._path.read_bytes())["pid"]
        except (OSError, ValueError, KeyError):
            pid = "unknown"
        return (
            f"process {pid} is writing to {self._path.parent}; wait for it to end, "
            "or set a longer `wait` in clew.toml"
        )
