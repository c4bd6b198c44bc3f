"""Bulk writes of more documents than fit into memory, with set-based SQL.

The result is the same as with `SqliteWriter`. Extractions are first inserted into scratch tables
under content ids, then joined to keys in sorted order (which keeps the indexes' pages together),
and merged block by block by the ordinary code.
"""

import json
import sqlite3
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from clew.store.merge import embedded_text, release_memory
from clew.store.protocol import FORGET_REPLIES, Addition, Change
from clew.store.sqlite.insert import (
    PreparedExtraction,
    insert_chunks,
    insert_documents,
    prepare_extraction,
)
from clew.store.sqlite.rows import Row
from clew.store.sqlite.write import SqliteWriter, TouchedElements
from clew.types import Chunk, Document

_MERGE_BLOCK = 4_000  # elements merged per block
_CHUNK_BLOCK = 64  # chunks prepared and inserted together
_CACHE_KILOBYTES = 400_000  # page cache while writing …
_SPARING_KILOBYTES = 16_000  # … and where memory is to be spared
_CACHE_SHARE = 8  # of a bound on memory: a cache takes as much, and so does a sort
_SCRATCH_SCHEMA = """
CREATE TABLE scratch.mentions(
  entity TEXT, chunk INTEGER, surface TEXT, type TEXT, description TEXT, spans TEXT,
  times INTEGER, about REAL, aliases TEXT, attributes TEXT);
CREATE TABLE scratch.sayings(
  fact TEXT, chunk INTEGER, text TEXT, relation TEXT, keywords TEXT, description TEXT,
  weight REAL, start INTEGER, end INTEGER, own TEXT);
CREATE TABLE scratch.members(fact TEXT, ordinal INTEGER, entity TEXT, role TEXT);
CREATE TABLE scratch.entities(key INTEGER PRIMARY KEY);
CREATE TABLE scratch.facts(key INTEGER PRIMARY KEY);
"""
_SELECT_TEXTS = (
    "SELECT c.key, d.title, c.heading, c.text FROM chunks c JOIN documents d ON d.key = c.document "
)
_INSERT_TOUCHED = {
    "entities": "INSERT OR IGNORE INTO scratch.entities VALUES (?)",
    "facts": "INSERT OR IGNORE INTO scratch.facts VALUES (?)",
}
_SELECT_TOUCHED = {
    "entities": "SELECT key FROM scratch.entities WHERE key > ? ORDER BY key LIMIT ?",
    "facts": "SELECT key FROM scratch.facts WHERE key > ? ORDER BY key LIMIT ?",
}
_COUNT_TOUCHED = (
    "SELECT (SELECT count(*) FROM scratch.entities), (SELECT count(*) FROM scratch.facts)"
)
# Run in this order: ids first, then the rows that refer to them.
_JOIN_STATEMENTS = (
    "INSERT OR IGNORE INTO main.entities(id) "
    "SELECT DISTINCT entity FROM scratch.mentions ORDER BY entity",
    "INSERT INTO main.mentions SELECT e.key, m.chunk, m.surface, m.type, m.description, m.spans, "
    "m.times, m.about, m.aliases, m.attributes FROM scratch.mentions m "
    "JOIN main.entities e ON e.id = m.entity ORDER BY e.key, m.chunk",
    "INSERT OR IGNORE INTO scratch.entities "
    "SELECT DISTINCT e.key FROM scratch.mentions m JOIN main.entities e ON e.id = m.entity",
    # A fact stated by one chunk needs no merging; the others are merged afterwards.
    "INSERT OR IGNORE INTO main.facts(id, text, relation, keywords, description, weight, support) "
    "SELECT fact, CASE relation WHEN '' THEN own ELSE text END, relation, keywords, description, "
    "weight, count(*) FROM scratch.sayings GROUP BY fact ORDER BY fact",
    "INSERT OR IGNORE INTO main.participants SELECT f.key, m.ordinal, e.key, m.role "
    "FROM scratch.members m JOIN main.facts f ON f.id = m.fact "
    "JOIN main.entities e ON e.id = m.entity ORDER BY f.key, m.ordinal",
    "INSERT INTO main.sayings SELECT f.key, s.chunk, s.text, s.relation, s.keywords, "
    "s.description, s.weight, s.start, s.end FROM scratch.sayings s "
    "JOIN main.facts f ON f.id = s.fact ORDER BY f.key, s.chunk",
    "UPDATE main.facts SET text = s.own FROM scratch.sayings s "
    "WHERE s.own != '' AND facts.id = s.fact AND facts.text = ''",
    "UPDATE main.facts SET checksum = "
    "checksum(id, text, relation, keywords, description, weight, support) WHERE key > :last",
    "INSERT OR IGNORE INTO scratch.facts SELECT f.key FROM scratch.sayings s "
    "JOIN main.facts f ON f.id = s.fact GROUP BY f.key "
    "HAVING :embedded OR f.key <= :last OR count(*) > 1 OR max(s.keywords) != ''",
)


@contextmanager
def attach_scratch(
    db: sqlite3.Connection, folder: Path, change: Change, memory: int | None = None
) -> Iterator[None]:
    """Attach a temporary scratch database for a bulk write; sorting may spill to disk meanwhile."""
    if change.bulk is None:
        yield
        return
    path = folder / "scratch.sqlite"
    path.unlink(missing_ok=True)
    cache_size = int(db.execute("PRAGMA cache_size").fetchone()[0])
    db.execute("ATTACH ? AS scratch", (str(path),))
    try:
        db.execute("PRAGMA scratch.journal_mode = OFF")
        db.execute("PRAGMA scratch.synchronous = OFF")
        size = _SPARING_KILOBYTES if change.sparing else _CACHE_KILOBYTES
        if memory is not None:
            size = min(size, memory // _CACHE_SHARE // 1000)
        db.execute(f"PRAGMA main.cache_size = -{size}")
        db.execute("PRAGMA temp_store = FILE")
        db.executescript(_SCRATCH_SCHEMA)
        yield
    finally:
        db.execute("DETACH scratch")
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute(f"PRAGMA main.cache_size = {cache_size}")
        path.unlink(missing_ok=True)


class ChunkTexts(Mapping[int, str]):
    """Searchable text of chunks (all if `keys` is None), read on access."""

    def __init__(self, db: sqlite3.Connection, keys: Sequence[int] | None) -> None:
        self._db = db
        self._keys = keys

    def __getitem__(self, key: int) -> str:
        """Text of one chunk."""
        found = self._db.execute(_SELECT_TEXTS + "WHERE c.key = ?", (key,)).fetchone()
        if found is None:
            raise KeyError(key)
        return _searchable_text(*found[1:])

    def __iter__(self) -> Iterator[int]:
        """The keys, ascending."""
        if self._keys is not None:
            return iter(sorted(self._keys))
        return (row[0] for row in self._db.execute("SELECT key FROM chunks ORDER BY key"))

    def __len__(self) -> int:
        """Number of chunks."""
        if self._keys is not None:
            return len(self._keys)
        return int(self._db.execute("SELECT count(*) FROM chunks").fetchone()[0])

    def items(self) -> ItemsView[int, str]:
        """Stream all pairs in one query, without holding all of them in memory."""
        return _ChunkTextItems(self, self._db, self._keys)


class _ChunkTextItems(ItemsView[int, str]):
    def __init__(
        self, texts: ChunkTexts, db: sqlite3.Connection, keys: Sequence[int] | None
    ) -> None:
        super().__init__(texts)
        self._db = db
        self._keys = keys

    def __iter__(self) -> Iterator[tuple[int, str]]:
        if self._keys is None:
            found = self._db.execute(_SELECT_TEXTS + "ORDER BY c.key")
        else:
            where = "WHERE c.key IN (SELECT value FROM json_each(?)) ORDER BY c.key"
            found = self._db.execute(_SELECT_TEXTS + where, (json.dumps(list(self._keys)),))
        return ((key, _searchable_text(*chunk)) for key, *chunk in found)


def _searchable_text(title: str, heading: str, text: str) -> str:
    return embedded_text(Chunk("", "", 0, 0, text, title, heading))


@dataclass(frozen=True)
class BulkWriter:
    """Applies a change to an open transaction with the scratch database attached."""

    db: sqlite3.Connection
    writer: SqliteWriter
    facts_have_vectors: bool = False
    """Whether facts may have vectors, so that each vector row must be looked up."""

    def apply(self, change: Change) -> TouchedElements:
        """Remove names, add, delete unnamed documents and merge; return the touched chunks."""
        touched = TouchedElements()
        removed = self._remove_names(change.remove)
        unnamed = set(removed)
        for addition in chain(change.add, change.bulk or ()):
            unnamed |= self._find_losing_documents(addition.document)
            self._stage_addition(addition, touched)
        self._drop_orphans(unnamed, removed, touched)
        last = self.db.execute("SELECT coalesce(max(key), 0) FROM main.facts").fetchone()[0]
        for done, statement in enumerate(_JOIN_STATEMENTS, 1):
            self.db.execute(statement, {"embedded": self.facts_have_vectors, "last": last})
            change.progress("join", done, len(_JOIN_STATEMENTS))
        self._save_touched(touched)
        if change.sparing:
            release_memory()
        merged, elements = 0, sum(self.db.execute(_COUNT_TOUCHED).fetchone())
        for table, merge in (
            ("entities", self.writer.merge_entities),
            ("facts", self.writer.merge_facts),
        ):
            for count in self._merge_in_blocks(table, merge, change.sparing):
                merged += count
                change.progress("merge", merged, elements)
        return touched

    # -- names

    def _remove_names(self, names: Iterable[str]) -> set[int]:
        """Remove names; return the documents that may now have no name."""
        statement = "DELETE FROM sources WHERE name = ? RETURNING document"
        found = {row[0] for name in names for row in self.db.execute(statement, (name,)).fetchall()}
        if found:
            self.db.execute(FORGET_REPLIES)
        return found

    def _find_losing_documents(self, document: Document) -> set[int]:
        """Documents that lose a name to this one."""
        statement = (
            "SELECT s.document FROM sources s JOIN documents d ON d.key = s.document "
            "WHERE s.name = ? AND d.id != ?"
        )
        return {
            row[0]
            for name in document.names
            for row in self.db.execute(statement, (name, document.id))
        }

    def _drop_orphans(
        self, candidates: set[int], removed: set[int], touched: TouchedElements
    ) -> None:
        orphans = [
            key
            for key in sorted(candidates)
            if not self.db.execute("SELECT 1 FROM sources WHERE document = ?", (key,)).fetchone()
        ]
        for key in orphans:
            if key in removed:
                self.writer.forget_extractions([key])
            self.writer.drop_chunks([key], touched)
            self._save_touched(touched)
        self.db.executemany("DELETE FROM documents WHERE key = ?", [(key,) for key in orphans])

    # -- adding

    def _stage_addition(self, addition: Addition, touched: TouchedElements) -> None:
        """Insert document and chunks, and their extractions into the scratch tables."""
        outdated = self.db.execute(
            "SELECT key FROM documents WHERE id = ? AND stamp != ?",
            (addition.document.id, addition.stamp),
        ).fetchall()
        self.writer.drop_chunks([row[0] for row in outdated], touched)
        _, chunks = insert_documents(self.db, [addition])
        touched.chunks += [key for key, *_ in chunks]
        found = iter(addition.extractions if chunks else ())
        for at in range(0, len(chunks), _CHUNK_BLOCK):
            block = chunks[at : at + _CHUNK_BLOCK]
            prepared = [prepare_extraction(one) for one in islice(found, len(block))]
            insert_chunks(self.db, self.writer.vector_rows, block, prepared)
            self._stage_extractions([key for key, *_ in block], prepared)

    def _stage_extractions(self, chunks: list[int], prepared: list[PreparedExtraction]) -> None:
        mentions: list[Row] = []
        fact_mentions, members = [], []
        for chunk, one in zip(chunks, prepared, strict=True):
            found = zip(one.mentions, one.mention_cells, strict=True)
            mentions += [(entity, chunk, *cells) for entity, cells in found]
            stated = zip(one.fact_mentions.items(), one.fact_mention_cells, strict=True)
            for (fact, (participants, mention)), cells in stated:
                own = "" if mention.relation else mention.text
                fact_mentions.append((fact, chunk, *cells, own))
                members += [(fact, at, m.entity, m.role) for at, m in enumerate(participants)]
        self.db.executemany("INSERT INTO scratch.mentions VALUES (?,?,?,?,?,?,?,?,?,?)", mentions)
        self.db.executemany(
            "INSERT INTO scratch.sayings VALUES (?,?,?,?,?,?,?,?,?,?)", fact_mentions
        )
        self.db.executemany("INSERT INTO scratch.members VALUES (?,?,?,?)", members)

    # -- merging

    def _save_touched(self, touched: TouchedElements) -> None:
        """Move the touched keys to the scratch database, to bound memory."""
        for table, keys in (("entities", touched.entities), ("facts", touched.facts)):
            self.db.executemany(_INSERT_TOUCHED[table], ((key,) for key in keys))
            keys.clear()

    def _merge_in_blocks(
        self, table: str, merge: Callable[[set[int]], None], sparing: bool
    ) -> Iterator[int]:
        """Merge block by block; yield the size of each."""
        last = 0
        while found := self.db.execute(_SELECT_TOUCHED[table], (last, _MERGE_BLOCK)).fetchall():
            last = found[-1][0]
            merge({row[0] for row in found})
            if sparing:
                release_memory()
            yield len(found)
