"""Kills a process at its n-th change of a folder: the same moment in every run.

A moment in seconds is another one on a busy machine. Here a point is whatever changes files below
a folder, or begins, changes or ends an SQLite transaction; it is counted before it takes effect.
"""

import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

_CHANGES = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link"})
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_READING = ("SELECT", "PRAGMA", "WITH", "EXPLAIN")
_COMPARED = 24  # characters of a statement: rows inserted one after the other are one point


class KillPoints:
    """Counts the points of this process; at number `kill_at` it kills itself."""

    def __init__(self, folder: Path, kill_at: int = 0) -> None:
        self.count = 0
        self._folder = str(folder.resolve())
        self._kill_at = kill_at
        self._statement = ""

    def install(self) -> None:
        """Begin to count; there is no way back, as for any audit hook."""
        sys.addaudithook(self._on_event)
        connect = sqlite3.connect

        def connect_and_count(*arguments: Any, **options: Any) -> sqlite3.Connection:
            db: sqlite3.Connection = connect(*arguments, **options)
            db.set_trace_callback(self._on_statement)
            return db

        sqlite3.connect = connect_and_count  # type: ignore[assignment]

    def _on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITE_FLAGS:
                self._add_if_inside(path)
        elif event in _CHANGES:
            self._add_if_inside(arguments[0])

    def _on_statement(self, statement: str) -> None:
        start = statement.lstrip()[:_COMPARED]
        if start != self._statement and not start.upper().startswith(_READING):
            self._add()
        self._statement = start

    def _add_if_inside(self, path: Any) -> None:
        if isinstance(path, str | os.PathLike) and os.path.abspath(os.fspath(path)).startswith(
            self._folder
        ):
            self._add()

    def _add(self) -> None:
        self.count += 1
        if self.count == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
