"""One writer at a time, held by the operating system, so a killed writer leaves no lock."""

import json
import os
import time
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from clew.errors import Locked, StoreError

try:
    import fcntl
except ImportError:  # pragma: no cover  (Windows)
    fcntl = None  # type: ignore[assignment]


class WriterLock:
    """A context manager around an exclusive lock on one file; waits up to `patience` seconds."""

    def __init__(self, path: Path, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._file: BinaryIO | None = None

    def __enter__(self) -> "WriterLock":
        """Take the lock or say who holds it."""
        try:
            self._file = self._path.open("a+b")
        except OSError as error:
            raise StoreError(f"cannot write to {self._path.parent}: {error.strerror}") from error
        deadline = time.monotonic() + self._patience
        while not self._taken():
            if time.monotonic() >= deadline:
                raise Locked(self._holder())
            time.sleep(0.05)
        self._file.truncate(0)
        self._file.write(json.dumps({"pid": os.getpid()}).encode())
        self._file.flush()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def files(self) -> tuple[int, ...]:
        """The open file that holds the lock: whoever inherits it holds it too."""
        return (self._file.fileno(),) if self._file is not None and fcntl is not None else ()

    def _taken(self) -> bool:
        if self._file is None or fcntl is None:
            return self._file is not None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _holder(self) -> str:
        try:
            pid = json.loads(self._path.read_bytes())["pid"]
        except (OSError, ValueError, KeyError):
            pid = "unknown"
        if self._file is not None:
            self._file.close()
            self._file = None
        return (
            f"process {pid} is writing to {self._path.parent}; wait for it to end, "
            "or give this command a longer --wait"
        )
