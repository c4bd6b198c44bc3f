"""Apply a change in one transaction: remove, add, merge touched elements, set vector rows."""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter

from clew.errors import StoreError
from clew.store.merge import embedded_text, entity_form_rows, merge_entity, merge_fact
from clew.store.protocol import FORGET_REPLIES, Addition, Change, resolve_duplicate_names
from clew.store.sqlite import rows
from clew.store.sqlite.connections import DAMAGED_ROW
from clew.store.sqlite.insert import (
    FindVectorRows,
    PreparedExtraction,
    entity_to_cells,
    fact_to_cells,
    find_documents,
    insert_chunks,
    insert_documents,
    merge_new_entities,
    merge_new_facts,
    prepare_extraction,
)
from clew.store.sqlite.rows import Row
from clew.store.sqlite.unmerged import ChangedMentions
from clew.text.unicode import digest, mark_text
from clew.types import Chunk, Entity, Extraction, Fact, Kind

_VECTOR_ROW_QUERIES: dict[Kind, tuple[str, str]] = {
    "chunk": (
        "SELECT c.key, c.row, c.text, d.title, c.heading FROM chunks c "
        "JOIN documents d ON d.key = c.document",
        "UPDATE chunks SET row = ? WHERE key = ?",
    ),
    "entity": (
        "SELECT key, row, name FROM entities",
        "UPDATE entities SET row = ? WHERE key = ?",
    ),
    "fact": ("SELECT key, row, text FROM facts", "UPDATE facts SET row = ? WHERE key = ?"),
}
_SELECT_MENTIONED = "SELECT entity FROM mentions WHERE chunk IN (SELECT value FROM json_each(?))"
_SELECT_STATED = "SELECT fact FROM sayings WHERE chunk IN (SELECT value FROM json_each(?))"
_SELECT_MENTIONS = (
    "SELECT m.entity, e.id, count(*), m.surface, m.type, m.description, max(m.about), "
    "m.aliases, m.attributes FROM mentions m JOIN entities e ON e.key = m.entity "
)
_GROUP_MENTIONS = "GROUP BY m.entity, m.surface, m.type, m.description, m.aliases, m.attributes"
_SELECT_STATEMENTS = (
    "SELECT s.fact, f.id, f.text, s.text, s.relation, s.keywords, s.description, s.weight "
    "FROM sayings s JOIN facts f ON f.key = s.fact "
)
_WHERE_ENTITY = "WHERE m.entity IN (SELECT value FROM json_each(?)) "
_WHERE_FACT = "WHERE s.fact IN (SELECT value FROM json_each(?)) "
_DELETE_STATEMENTS = {
    "entities": ("DELETE FROM entities WHERE key = ?", "DELETE FROM forms WHERE entity = ?"),
    "facts": ("DELETE FROM facts WHERE key = ?", "DELETE FROM participants WHERE fact = ?"),
}


def iterate_content_hashes(db: sqlite3.Connection, kind: Kind) -> Iterator[tuple[int, int, str]]:
    """Yield key, vector row and the hash of the embedded text of every element of a kind."""
    for key, row, text, *place in db.execute(_VECTOR_ROW_QUERIES[kind][0]):
        # A chunk is embedded with its title and its headings.
        if not all(isinstance(cell, str) for cell in (text, *place)) or not isinstance(row, int):
            raise StoreError(DAMAGED_ROW)
        whole = embedded_text(Chunk("", "", 0, 0, text, *place)) if place else text
        yield key, row, digest(whole)


def merge_stored_entities(
    db: sqlite3.Connection, keys: Collection[int] | None = None
) -> Iterator[tuple[int, Entity]]:
    """Merge these entities (or all) from all their mentions; those without any are left out."""
    where, given = _restrict(_WHERE_ENTITY, keys)
    # Equal mentions are grouped and counted: a hub has a million of them.
    cursor = db.execute(_SELECT_MENTIONS + where + _GROUP_MENTIONS, given)
    for key, group in groupby(cursor, itemgetter(0)):
        found = list(group)
        mentions = [rows.row_to_mention(row[3:]) for row in found]
        yield key, merge_entity(found[0][1], mentions, [row[2] for row in found])


def merge_stored_facts(
    db: sqlite3.Connection, keys: Collection[int] | None = None
) -> Iterator[tuple[int, Fact]]:
    """The same for facts."""
    where, given = _restrict(_WHERE_FACT, keys)
    cursor = db.execute(_SELECT_STATEMENTS + where + "ORDER BY s.fact, s.chunk", given)
    for key, group in groupby(cursor, itemgetter(0)):
        found = list(group)
        mentions = [rows.row_to_fact_mention((row[3] or row[2], *row[4:])) for row in found]
        yield key, merge_fact(found[0][1], (), mentions)


def _restrict(where: str, keys: Collection[int] | None) -> tuple[str, tuple[str, ...]]:
    """The condition on keys and its argument; none for all rows."""
    return ("", ()) if keys is None else (where, (json.dumps(sorted(keys)),))


def _no_wait() -> None:
    """Return at once: usually all vectors are stored before the write."""


@dataclass
class TouchedElements:
    """Keys that a change touched and that must be merged again."""

    entities: set[int] = field(default_factory=set)
    facts: set[int] = field(default_factory=set)
    chunks: list[int] = field(default_factory=list)
    """Added chunks."""
    removed_chunks: list[int] = field(default_factory=list)
    # New elements, which need no merging.
    complete_entities: set[int] = field(default_factory=set)
    complete_facts: set[int] = field(default_factory=set)
    mentions: ChangedMentions | None = None
    """What the change says about entities, if it is looked at."""


@dataclass(frozen=True)
class SqliteWriter:
    """Applies changes to an open transaction; `vector_rows` finds rows by content hash."""

    db: sqlite3.Connection
    vector_rows: FindVectorRows
    prepare: Callable[[Extraction], PreparedExtraction] = prepare_extraction
    wait_for_vectors: Callable[[], None] = _no_wait
    """Returns when all vectors are stored."""

    def apply(self, change: Change) -> TouchedElements:
        """Remove, add and merge; return what was touched."""
        touched = TouchedElements(mentions=ChangedMentions(self.db))
        change = replace(change, add=resolve_duplicate_names(change.add))
        self._remove_documents(change, touched)
        self._insert_additions(change.add, touched)
        known = touched.entities - touched.complete_entities
        if touched.mentions is not None:
            known = touched.mentions.update_supports(known)
        self.merge_entities(known)
        self.merge_facts(touched.facts - touched.complete_facts)
        if change.embedder:
            self._refresh_vector_rows(change.kinds or _VECTOR_ROW_QUERIES)
        return touched

    def _refresh_vector_rows(self, kinds: Collection[str]) -> None:
        """Look up the vector row of every element of these kinds again."""
        for kind in _VECTOR_ROW_QUERIES.keys() & kinds:
            write = _VECTOR_ROW_QUERIES[kind][1]
            found = list(iterate_content_hashes(self.db, kind))
            at = self.vector_rows(kind, [key for _, _, key in found])
            self.db.executemany(
                write, [(int(row), key) for row, (key, _, _) in zip(at, found, strict=True)]
            )

    # -- removing

    def _remove_documents(self, change: Change, touched: TouchedElements) -> None:
        """Remove names, then documents without a name, and chunks with an outdated stamp."""
        candidates = self._select_keys(
            "SELECT document FROM sources WHERE name IN (SELECT value FROM json_each(?))",
            change.remove,
        )
        self.db.execute(
            "DELETE FROM sources WHERE name IN (SELECT value FROM json_each(?))",
            (json.dumps(list(change.remove)),),
        )
        candidates += self._take_over_names(change.add)
        orphans = self._select_keys(
            "SELECT key FROM documents WHERE key IN (SELECT value FROM json_each(?)) "
            "AND key NOT IN (SELECT document FROM sources)",
            candidates,
        )
        stored = find_documents(self.db, change.add)
        outdated = [
            stored[a.document.id][0]
            for a in change.add
            if a.document.id in stored and stored[a.document.id][1] != a.stamp
        ]
        if change.remove and orphans:
            self.db.execute(FORGET_REPLIES)
            self.forget_extractions(orphans)
        self.drop_chunks([*orphans, *outdated], touched)
        self.db.executemany("DELETE FROM documents WHERE key = ?", [(key,) for key in orphans])

    def _take_over_names(self, additions: Sequence[Addition]) -> list[int]:
        """Remove names that move to an added document; return the documents that lose them."""
        new_owner = {name: a.document.id for a in additions for name in a.document.names}
        held = self.db.execute(
            "SELECT s.name, d.id, d.key FROM sources s JOIN documents d ON d.key = s.document "
            "WHERE s.name IN (SELECT value FROM json_each(?))",
            (json.dumps(list(new_owner)),),
        )
        moved = [(name, key) for name, document, key in held if new_owner[name] != document]
        self.db.executemany("DELETE FROM sources WHERE name = ?", [(name,) for name, _ in moved])
        return [key for _, key in moved]

    def forget_extractions(self, documents: list[int]) -> None:
        """Forget what models replied to the texts of these documents' chunks."""
        texts = self.db.execute(
            "SELECT text FROM chunks WHERE document IN (SELECT value FROM json_each(?))",
            (json.dumps(documents),),
        )
        self.db.executemany(
            "DELETE FROM memory WHERE kind = 'reply' AND key GLOB ?",
            [(f"{mark_text(text)}*",) for (text,) in texts],
        )

    def drop_chunks(self, documents: list[int], touched: TouchedElements) -> None:
        """Delete chunks with their mentions, and record what must be merged again."""
        chunks = self._select_keys(
            "SELECT key FROM chunks WHERE document IN (SELECT value FROM json_each(?))", documents
        )
        if not chunks:
            return
        touched.removed_chunks += chunks
        if touched.mentions is not None:
            touched.mentions.note_removed(chunks)
        keys = [(key,) for key in chunks]
        for select, delete, elements in (
            (_SELECT_MENTIONED, "DELETE FROM mentions WHERE chunk = ?", touched.entities),
            (_SELECT_STATED, "DELETE FROM sayings WHERE chunk = ?", touched.facts),
        ):
            elements.update(self._select_keys(select, chunks))
            self.db.executemany(delete, keys)
        self.db.executemany("DELETE FROM chunks WHERE key = ?", keys)

    def _select_keys(self, statement: str, values: Sequence[str] | Sequence[int]) -> list[int]:
        return [row[0] for row in self.db.execute(statement, (json.dumps(list(values)),))]

    # -- adding

    def _insert_additions(self, additions: Sequence[Addition], touched: TouchedElements) -> None:
        """Insert first what needs no vectors: the last ones may still be computed."""
        fresh, chunks = insert_documents(self.db, additions)
        touched.chunks = [key for key, *_ in chunks]
        prepared = [self.prepare(e) for a in fresh for e in a.extractions]
        entities = merge_new_entities(self.db, [one.mentions for one in prepared])
        facts = merge_new_facts(self.db, [one.fact_mentions for one in prepared])
        mentions = self._insert_mentions(prepared, entities.keys, touched.chunks)
        self._insert_fact_mentions(prepared, facts.keys, entities.keys, touched.chunks)
        self.wait_for_vectors()
        insert_chunks(self.db, self.vector_rows, chunks, prepared)
        entities.insert(self.db, self.vector_rows)
        facts.insert(self.db, self.vector_rows)
        touched.entities.update(entities.keys.values())
        touched.facts.update(facts.keys.values())
        touched.complete_entities = {entities.keys[one.id] for one in entities.entities}
        touched.complete_facts = {facts.keys[one.id] for one in facts.facts}
        if touched.mentions is not None:
            touched.mentions.note_added(mentions, new=touched.complete_entities)

    def _insert_mentions(
        self, prepared: Sequence[PreparedExtraction], keys: Mapping[str, int], chunks: Sequence[int]
    ) -> list[Row]:
        """Insert the mentions; return their rows."""
        # Rows are sorted by their keys, so that table pages are written sequentially.
        rows: list[Row] = sorted(
            (keys[key], chunk, *cells)
            for chunk, one in zip(chunks, prepared, strict=True)
            for key, cells in zip(one.mentions, one.mention_cells, strict=True)
        )
        self.db.executemany("INSERT INTO mentions VALUES (?,?,?,?,?,?,?,?,?,?)", rows)
        return rows

    def _insert_fact_mentions(
        self,
        prepared: Sequence[PreparedExtraction],
        keys: Mapping[str, int],
        entities: Mapping[str, int],
        chunks: Sequence[int],
    ) -> None:
        self.db.executemany(
            "INSERT OR IGNORE INTO participants VALUES (?,?,?,?)",
            sorted(
                (keys[key], ordinal, entities[member.entity], member.role)
                for one in prepared
                for key, (members, _) in one.fact_mentions.items()
                for ordinal, member in enumerate(members)
            ),
        )
        self.db.executemany(
            "INSERT INTO sayings VALUES (?,?,?,?,?,?,?,?,?)",
            sorted(
                (keys[key], chunk, *cells)
                for chunk, one in zip(chunks, prepared, strict=True)
                for key, cells in zip(one.fact_mentions, one.fact_mention_cells, strict=True)
            ),
        )

    # -- merging

    def merge_entities(self, touched: set[int]) -> None:
        """Merge these entities again from all their mentions; delete those without any."""
        merged = dict(merge_stored_entities(self.db, touched))
        self._delete_elements("entities", touched - merged.keys())
        self._update_entities(merged)

    def _update_entities(self, merged: dict[int, Entity]) -> None:
        found = self.vector_rows("entity", [digest(embedded_text(e)) for e in merged.values()])
        self.db.executemany(
            "UPDATE entities SET name=?1, name_hash=?2, type=?3, description=?4, aliases=?5, "
            "attributes=?6, support=?7, row=?8, checksum=checksum(id,?1,?2,?3,?4,?5,?6,?7) "
            "WHERE key=?9",
            (
                (*entity_to_cells(e), int(row), key)
                for (key, e), row in zip(merged.items(), found, strict=True)
            ),
        )
        self.db.executemany("DELETE FROM forms WHERE entity = ?", [(key,) for key in merged])
        self.db.executemany(
            "INSERT INTO forms VALUES (?,?,?,?)",
            ((key, *form) for key, e in merged.items() for form in entity_form_rows(e)),
        )

    def merge_facts(self, touched: set[int]) -> None:
        """The same for facts."""
        merged = dict(merge_stored_facts(self.db, touched))
        self._delete_elements("facts", touched - merged.keys())
        found = self.vector_rows("fact", [digest(embedded_text(f)) for f in merged.values()])
        self.db.executemany(
            "UPDATE facts SET text=?1, relation=?2, keywords=?3, description=?4, weight=?5, "
            "support=?6, row=?7, checksum=checksum(id,?1,?2,?3,?4,?5,?6) WHERE key=?8",
            (
                (*fact_to_cells(f), int(row), key)
                for (key, f), row in zip(merged.items(), found, strict=True)
            ),
        )

    def _delete_elements(self, table: str, keys: set[int]) -> None:
        for statement in _DELETE_STATEMENTS[table]:
            self.db.executemany(statement, [(key,) for key in sorted(keys)])
