"""Staging database of a graph import: rows of the graph file, written batch by batch.

It is a separate SQLite file, so readers of the knowledge base never see a partial import. Each
batch is committed together with its position in the graph file: a killed import resumes from
there.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from clew.errors import StoreError

ANONYMOUS_ID_PREFIX = "\x1f"  # prefix of ids that are only meaningful within their file
_NAMES_PER_BLOCK = 10_000  # names inserted per statement
STAGE_FORMAT = "2"  # format of the stage itself; a stage of another format is discarded
NodeRow = tuple[str, str, int, str]
"""Node id, field, rank (the name with the lowest is used), value."""
LinkRow = tuple[str, str, str, float, str, str, str, str]
"""Head id, relation, tail id, weight, description, keywords (packed), text, members (packed)."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS state(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS nodes(
  id TEXT NOT NULL, field TEXT NOT NULL, rank INTEGER NOT NULL, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS links(
  head TEXT NOT NULL, relation TEXT NOT NULL, tail TEXT NOT NULL, weight REAL NOT NULL,
  description TEXT NOT NULL, keywords TEXT NOT NULL, text TEXT NOT NULL, members TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS names(id TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
"""
_CHOOSE_NAMES = """
INSERT OR IGNORE INTO names
SELECT id, value FROM nodes WHERE field = 'name' ORDER BY id, rank, value
"""
_LINKS = """
SELECT l.head, coalesce(h.name, ''), l.relation, coalesce(r.name, ''), l.tail,
  coalesce(t.name, ''), coalesce(max(-1e308, min(total(l.weight), 1e308)), 0.0),
  l.description, l.keywords, l.text, l.members
FROM links l LEFT JOIN names h ON h.id = l.head LEFT JOIN names r ON r.id = l.relation
  LEFT JOIN names t ON t.id = l.tail
GROUP BY l.head, l.relation, l.tail, l.description, l.keywords, l.text, l.members
ORDER BY l.head, l.relation, l.tail, l.description, l.keywords, l.text, l.members
"""
_NODES = """
SELECT DISTINCT n.id, n.field, n.rank, n.value, coalesce(x.name, '')
FROM nodes n LEFT JOIN names x ON x.id = n.id ORDER BY n.id, n.field, n.rank, n.value
"""
_UNNAMED_IRIS = """
SELECT id FROM (
  SELECT head AS id FROM links UNION SELECT tail FROM links UNION SELECT relation FROM links
  UNION SELECT id FROM nodes
) WHERE id LIKE '<_%>' AND id NOT IN (SELECT id FROM names)
"""
_SHARED_NAMES = """
SELECT name, id FROM names WHERE name IN (SELECT name FROM names GROUP BY name HAVING count(*) > 1)
ORDER BY name, id
"""


@dataclass(frozen=True, slots=True)
class StageProgress:
    """How far a file has been read: byte position, line, and rows read and rejected."""

    place: int = 0
    line: int = 0
    rows: int = 0
    bad: int = 0
    shown: tuple[tuple[int, str], ...] = ()
    """The first bad rows: line and reason."""
    done: bool = False
    shared_names: int = 0
    """Names shared by several nodes."""


class GraphStage:
    """The rows of one graph file; `seal` identifies the file and the reader options."""

    def __init__(self, path: Path, seal: str) -> None:
        """Open the stage, or start a new one if its seal differs."""
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = self._open(f"{STAGE_FORMAT} {seal}")

    def _open(self, seal: str) -> sqlite3.Connection:
        for _ in range(2):
            try:
                db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            except sqlite3.OperationalError as error:
                raise StoreError(
                    f"cannot open {self._path} ({error}); check its permissions"
                ) from error
            try:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = NORMAL")
                db.execute("PRAGMA cache_size = -65536")
                db.executescript(_SCHEMA)
                held = dict(db.execute("SELECT key, value FROM state"))
                if held.get("seal", seal) == seal:
                    db.execute("INSERT OR REPLACE INTO state VALUES ('seal', ?)", (seal,))
                    return db
            except sqlite3.DatabaseError:
                pass  # damaged by a power cut; the graph file can be read again
            db.close()
            self._unlink()
        raise StoreError(f"cannot write to {self._path.parent}; is the disk full?")

    def load_progress(self) -> StageProgress:
        """How far the file has been read."""
        held = dict(self._db.execute("SELECT key, value FROM state"))
        if "progress" not in held:
            return StageProgress()
        found = json.loads(held["progress"])
        found["shown"] = tuple((line, reason) for line, reason in found["shown"])
        return StageProgress(**found)

    def commit_rows(
        self, nodes: Sequence[NodeRow], links: Sequence[LinkRow], progress: StageProgress
    ) -> None:
        """Commit rows together with the read position."""
        with self._transaction():
            self._db.executemany("INSERT INTO nodes VALUES (?,?,?,?)", nodes)
            self._db.executemany("INSERT INTO links VALUES (?,?,?,?,?,?,?,?)", links)
            self._save_progress(progress)

    def assign_names(self, progress: StageProgress, label: Callable[[str], str]) -> StageProgress:
        """After reading, give every node one unique name; `label` names IRIs without a name."""
        with self._transaction():
            self._db.execute(_CHOOSE_NAMES)
            for block in _batches(self._stream(_UNNAMED_IRIS)):
                self._db.executemany(
                    "INSERT OR IGNORE INTO names VALUES (?,?)",
                    [(key, label(key)) for (key,) in block],
                )
            shared = 0
            for name, group in groupby(self._db.execute(_SHARED_NAMES).fetchall(), itemgetter(0)):
                shared += 1
                keys = [key for _, key in group]
                self._db.executemany(
                    "UPDATE names SET name = ? WHERE id = ?", _disambiguate_names(name, keys, label)
                )
            final = replace(progress, done=True, shared_names=shared)
            self._save_progress(final)
        return final

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Commit what the block writes; refuse in one sentence if the disk does not take it."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            raise StoreError(
                f"cannot write to {self._path.parent} ({error}); nothing was changed; "
                "is the disk full?"
            ) from error
        finally:
            if self._db.in_transaction:
                self._db.rollback()

    def _save_progress(self, progress: StageProgress) -> None:
        state = {name: getattr(progress, name) for name in StageProgress.__slots__}
        self._db.execute(
            "INSERT OR REPLACE INTO state VALUES ('progress', ?)", (json.dumps(state),)
        )

    def iter_links(self) -> Iterator[tuple[Any, ...]]:
        """Yield links by head, relation and tail; equal links are merged, weights summed."""
        yield from self._stream(_LINKS)

    def iter_nodes(self) -> Iterator[tuple[Any, ...]]:
        """Yield node rows by id, each with the node's name in the last column."""
        yield from self._stream(_NODES)

    def count_lines(self) -> int:
        """Number of lines that nodes and links will be, about."""
        count = "SELECT (SELECT count(*) FROM links) + (SELECT count(DISTINCT id) FROM nodes)"
        return int(self._db.execute(count).fetchone()[0])

    def _stream(self, statement: str) -> Iterator[tuple[Any, ...]]:
        # A separate connection: several readers may stream concurrently.
        with closing(sqlite3.connect(self._path, check_same_thread=False)) as db:
            try:
                db.execute("PRAGMA cache_size = -65536")
                yield from db.execute(statement)
            except sqlite3.DatabaseError as error:
                raise StoreError(f"cannot read {self._path} ({error}); try again") from error

    def close(self) -> None:
        """Close the file; it stays for the next run."""
        self._db.close()

    def delete(self) -> None:
        """Delete the stage after a complete import."""
        self._db.close()
        self._unlink()

    def _unlink(self) -> None:
        for end in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + end).unlink(missing_ok=True)


def _batches(rows: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    while block := list(islice(rows, _NAMES_PER_BLOCK)):
        yield block


def _disambiguate_names(
    name: str, keys: Sequence[str], label: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    """Disambiguate nodes with the same name by the end of their id, or all of it, in brackets."""
    short = [label(key) for key in keys]
    distinct = len(set(short)) == len(short) and name not in short
    for key, end in zip(keys, short, strict=True):
        suffix = end if distinct else key[1:-1] if key.startswith("<") else key
        yield f"{name} ({suffix.lstrip(ANONYMOUS_ID_PREFIX)})", key
