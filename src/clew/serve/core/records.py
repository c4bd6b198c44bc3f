"""What a server process notes and writes together: the audit log and the uses of keys.

Noting never waits: another process may hold the database's lock, and the event loop must go on.
"""

import sqlite3
import threading
import time
from dataclasses import dataclass, field

from clew.serve.core.database import ServerDatabase
from clew.serve.core.keys import Key

_AUDIT_DAYS = 90
_AUDIT_MOST = 100_000  # lines kept while they cannot be written
_REFUSED_SECONDS = 60.0
_MAX_REFUSED_PATH = 200
_USED_INTERVAL = 60.0  # seconds between two records of a key's last use
_NO_KEY = "-"
_DAY = 86_400

_AuditLine = tuple[float, str, str, str, int, str]


@dataclass
class _Refusals:
    """Requests without a valid key that were refused with one status, since the first of them."""

    since: float
    method: str
    path: str
    request: str
    count: int = 0


@dataclass
class Records:
    """Notes of one process, safe to use from its threads; `flush` writes them."""

    database: ServerDatabase
    _audit: list[_AuditLine] = field(default_factory=list)
    _refused: dict[int, _Refusals] = field(default_factory=dict)
    _used: dict[str, float] = field(default_factory=dict)
    _saved_use: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note_access(self, key: Key, method: str, path: str, status: int, request: str) -> None:
        """Note one line of the audit log: who called what, never its content."""
        with self._lock:
            self._audit.append((time.time(), key.id, method, path, status, request))

    def note_refusal(self, method: str, path: str, status: int, request: str) -> None:
        """Count a refused request of nobody known; a minute of them is one line of the log."""
        first = _Refusals(time.time(), method, path[:_MAX_REFUSED_PATH], request)
        with self._lock:
            self._refused.setdefault(status, first).count += 1

    def note_use(self, key: Key) -> None:
        """Note that a key was used just now."""
        now = time.time()
        if now - self._saved_use.get(key.id, 0.0) > _USED_INTERVAL:
            self._used[key.id] = now

    def flush(self, *, at_end: bool = False) -> None:
        """Write what was noted so far; refusals once a minute, and at the end."""
        with self._lock:
            lines, self._audit = [*self._audit, *self._take_refusals(at_end=at_end)], []
            used = dict(self._used)
        if not lines and not used:
            return
        try:
            self._write(lines, used)
        except sqlite3.Error:
            with self._lock:
                self._audit = [*lines, *self._audit][-_AUDIT_MOST:]
            raise
        with self._lock:
            for key, when in used.items():
                self._saved_use[key] = when
                if self._used[key] == when:
                    del self._used[key]

    def forget_old(self) -> None:
        """Delete the lines of the audit log that are too old to be kept."""
        self.database.change("DELETE FROM audit WHERE time < ?", time.time() - _AUDIT_DAYS * _DAY)

    def _take_refusals(self, *, at_end: bool) -> list[_AuditLine]:
        taken: list[_AuditLine] = []
        for status, some in list(self._refused.items()):
            if at_end or time.time() - some.since > _REFUSED_SECONDS:
                del self._refused[status]
                shown = f"{some.request} and {some.count - 1} more"
                taken.append((some.since, _NO_KEY, some.method, some.path, status, shown))
        return taken

    def _write(self, lines: list[_AuditLine], used: dict[str, float]) -> None:
        with self.database.transaction() as db:
            db.executemany("INSERT INTO audit VALUES (?,?,?,?,?,?)", lines)
            rows = [(when, key) for key, when in used.items()]
            db.executemany("UPDATE keys SET used = ? WHERE id = ?", rows)
