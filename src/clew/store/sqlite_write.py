"""Apply a change in one transaction: remove, add, merge touched elements, set vector rows."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter

from clew.store import sqlite_rows as rows
from clew.store.draft import Drafted, drafted
from clew.store.merge import embedded_text, merge_entity, merge_fact, name_forms
from clew.store.protocol import Addition, Change, settled
from clew.store.sqlite_documents import add_chunks, add_documents, documents_there
from clew.store.sqlite_fresh import VectorRows, entity_cells, new_entities, new_facts
from clew.text import digest
from clew.types import Entity, Extraction, Fact, Kind


def _at_once() -> None:
    """Return at once: usually all vectors are stored before the write."""


@dataclass
class Touched:
    """Keys that a change touched and that must be merged again."""

    entities: set[int] = field(default_factory=set)
    facts: set[int] = field(default_factory=set)
    chunks: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    """Added chunks, and removed chunks."""
    complete_entities: set[int] = field(default_factory=set)
    complete_facts: set[int] = field(default_factory=set)
    """New elements, which need no merging."""


@dataclass(frozen=True)
class Writer:
    """Applies changes to an open transaction; `vector_rows` finds rows by content hash."""

    db: sqlite3.Connection
    vector_rows: VectorRows
    draft: Callable[[Extraction], Drafted] = drafted
    vectors_there: Callable[[], None] = _at_once
    """Returns when all vectors are stored."""

    def apply(self, change: Change) -> Touched:
        """Remove, add and merge; return what was touched."""
        touched = Touched()
        change = replace(change, add=settled(change.add))
        self._remove(change, touched)
        self._add(change.add, touched)
        self.merge_entities(touched.entities - touched.complete_entities)
        self.merge_facts(touched.facts - touched.complete_facts)
        if change.embedder or change.afresh:
            self._find_rows_anew()
        return touched

    def _find_rows_anew(self) -> None:
        """Look up every element's vector row again."""
        for kind, (select, write) in _ROWS.items():
            found = self.db.execute(select).fetchall()
            texts = [f"{title}\n{text}" if title else text for _, title, text in found]
            at = self.vector_rows(kind, [digest(text) for text in texts])
            self.db.executemany(
                write, [(int(row), key) for row, (key, _, _) in zip(at, found, strict=True)]
            )

    # -- removing

    def _remove(self, change: Change, touched: Touched) -> None:
        """Remove names, then documents without a name, and chunks with an outdated stamp."""
        candidates = self._keys(
            "SELECT document FROM sources WHERE name IN (SELECT value FROM json_each(?))",
            change.remove,
        )
        self.db.execute(
            "DELETE FROM sources WHERE name IN (SELECT value FROM json_each(?))",
            (json.dumps(list(change.remove)),),
        )
        candidates += self._moved(change.add)
        orphans = self._keys(
            "SELECT key FROM documents WHERE key IN (SELECT value FROM json_each(?)) "
            "AND key NOT IN (SELECT document FROM sources)",
            candidates,
        )
        stored = documents_there(self.db, change.add)
        outdated = [
            stored[a.document.id][0]
            for a in change.add
            if a.document.id in stored and stored[a.document.id][1] != a.stamp
        ]
        self.drop_chunks([*orphans, *outdated], touched)
        listed = json.dumps(orphans)
        self.db.execute(
            "DELETE FROM documents WHERE key IN (SELECT value FROM json_each(?))", (listed,)
        )

    def _moved(self, additions: Sequence[Addition]) -> list[int]:
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

    def drop_chunks(self, documents: list[int], touched: Touched) -> None:
        """Delete chunks with their mentions, and record what must be merged again."""
        chunks = self._keys(
            "SELECT key FROM chunks WHERE document IN (SELECT value FROM json_each(?))", documents
        )
        if not chunks:
            return
        touched.gone += chunks
        listed = json.dumps(chunks)
        touched.entities.update(
            self._keys(
                "SELECT entity FROM mentions WHERE chunk IN (SELECT value FROM json_each(?))",
                chunks,
            )
        )
        touched.facts.update(
            self._keys(
                "SELECT fact FROM sayings WHERE chunk IN (SELECT value FROM json_each(?))", chunks
            )
        )
        for statement in (
            "DELETE FROM mentions WHERE chunk IN (SELECT value FROM json_each(?))",
            "DELETE FROM sayings WHERE chunk IN (SELECT value FROM json_each(?))",
            "DELETE FROM chunks WHERE key IN (SELECT value FROM json_each(?))",
        ):
            self.db.execute(statement, (listed,))

    def _keys(self, statement: str, values: Sequence[str] | Sequence[int]) -> list[int]:
        return [row[0] for row in self.db.execute(statement, (json.dumps(list(values)),))]

    # -- adding

    def _add(self, additions: Sequence[Addition], touched: Touched) -> None:
        """Insert first what needs no vectors: the last ones may still be computed."""
        fresh, chunks = add_documents(self.db, additions)
        touched.chunks = [key for key, *_ in chunks]
        prepared = [self.draft(e) for a in fresh for e in a.extractions]
        entities = new_entities(self.db, [one.mentions for one in prepared])
        facts = new_facts(self.db, [one.sayings for one in prepared])
        self._add_mentions(prepared, entities.keys, touched.chunks)
        self._add_sayings(prepared, facts.keys, entities.keys, touched.chunks)
        self.vectors_there()
        add_chunks(self.db, self.vector_rows, chunks)
        entities.write(self.db, self.vector_rows)
        facts.write(self.db, self.vector_rows)
        touched.entities.update(entities.keys.values())
        touched.facts.update(facts.keys.values())
        touched.complete_entities = {entities.keys[one.id] for one in entities.made}
        touched.complete_facts = {facts.keys[one.id] for one in facts.made}

    def _add_mentions(
        self, prepared: Sequence[Drafted], keys: Mapping[str, int], chunks: Sequence[int]
    ) -> None:
        self.db.executemany(
            "INSERT INTO mentions VALUES (?,?,?,?,?,?,?,?,?,?)",
            _in_key_order(
                (keys[key], chunk, *cells)
                for chunk, one in zip(chunks, prepared, strict=True)
                for key, cells in zip(one.mentions, one.mention_cells, strict=True)
            ),
        )

    def _add_sayings(
        self,
        prepared: Sequence[Drafted],
        keys: Mapping[str, int],
        entities: Mapping[str, int],
        chunks: Sequence[int],
    ) -> None:
        self.db.executemany(
            "INSERT OR IGNORE INTO participants VALUES (?,?,?,?)",
            _in_key_order(
                (keys[key], ordinal, entities[member.entity], member.role)
                for one in prepared
                for key, (members, _) in one.sayings.items()
                for ordinal, member in enumerate(members)
            ),
        )
        self.db.executemany(
            "INSERT INTO sayings VALUES (?,?,?,?,?,?,?,?,?)",
            _in_key_order(
                (keys[key], chunk, *cells)
                for chunk, one in zip(chunks, prepared, strict=True)
                for key, cells in zip(one.sayings, one.saying_cells, strict=True)
            ),
        )

    def add_document(self, addition: Addition) -> list[int] | None:
        """Insert a document, its names and chunks; return chunk keys, or None if already stored."""
        fresh, chunks = add_documents(self.db, [addition])
        add_chunks(self.db, self.vector_rows, chunks)
        return [key for key, *_ in chunks] if fresh else None

    # -- merging

    def merge_entities(self, touched: set[int]) -> None:
        """Merge these entities again from all their mentions; delete those without any."""
        cursor = self.db.execute(
            # Equal mentions are grouped and counted: a hub has a million of them.
            "SELECT m.entity, e.id, count(*), m.surface, m.type, m.description, max(m.about), "
            "m.aliases, m.attributes FROM mentions m JOIN entities e ON e.key = m.entity "
            "WHERE m.entity IN (SELECT value FROM json_each(?)) "
            "GROUP BY m.entity, m.surface, m.type, m.description, m.aliases, m.attributes",
            (json.dumps(sorted(touched)),),
        )
        merged: dict[int, Entity] = {}
        for key, group in groupby(cursor, itemgetter(0)):
            group_rows = list(group)
            mentions = [one for row in group_rows for one in [rows.mention(row[3:])] * row[2]]
            merged[key] = merge_entity(group_rows[0][1], mentions)
        self._drop("entities", touched - merged.keys())
        self._write_entities(merged)

    def _write_entities(self, merged: dict[int, Entity]) -> None:
        found = self.vector_rows("entity", [digest(embedded_text(e)) for e in merged.values()])
        self.db.executemany(
            "UPDATE entities SET name=?, name_hash=?, type=?, description=?, aliases=?, "
            "attributes=?, support=?, row=? WHERE key=?",
            (
                (*entity_cells(e), int(row), key)
                for (key, e), row in zip(merged.items(), found, strict=True)
            ),
        )
        listed = json.dumps(list(merged))
        self.db.execute(
            "DELETE FROM forms WHERE entity IN (SELECT value FROM json_each(?))", (listed,)
        )
        self.db.executemany(
            "INSERT INTO forms VALUES (?,?,?,?)",
            ((key, *form) for key, e in merged.items() for form in name_forms(e)),
        )

    def merge_facts(self, touched: set[int]) -> None:
        """The same for facts."""
        listed = json.dumps(sorted(touched))
        cursor = self.db.execute(
            "SELECT s.fact, f.id, f.text, s.text, s.relation, s.keywords, s.description, s.weight "
            "FROM sayings s JOIN facts f ON f.key = s.fact "
            "WHERE s.fact IN (SELECT value FROM json_each(?)) ORDER BY s.fact, s.chunk",
            (listed,),
        )
        merged: dict[int, Fact] = {}
        for key, group in groupby(cursor, itemgetter(0)):
            group_rows = list(group)
            mentions = [rows.saying((row[3] or row[2], *row[4:])) for row in group_rows]
            merged[key] = merge_fact(group_rows[0][1], (), mentions)
        self._drop("facts", touched - merged.keys())
        found = self.vector_rows("fact", [digest(embedded_text(f)) for f in merged.values()])
        self.db.executemany(
            "UPDATE facts SET text=?, relation=?, keywords=?, description=?, weight=?, support=?, "
            "row=? WHERE key=?",
            (
                (
                    *(f.text, f.relation, rows.packed(f.keywords), f.description, f.weight),
                    *(f.support, int(row), key),
                )
                for (key, f), row in zip(merged.items(), found, strict=True)
            ),
        )

    def _drop(self, table: str, keys: set[int]) -> None:
        listed = json.dumps(sorted(keys))
        for statement in _DROP[table]:
            self.db.execute(statement, (listed,))


def _in_key_order(many: Iterable[rows.Row]) -> list[rows.Row]:
    """Sort rows by their two keys, so that table pages are written sequentially."""
    return sorted(many)  # the keys are the first cells


_ROWS: dict[Kind, tuple[str, str]] = {
    "chunk": (
        "SELECT c.key, d.title, c.text FROM chunks c JOIN documents d ON d.key = c.document",
        "UPDATE chunks SET row = ? WHERE key = ?",
    ),
    "entity": ("SELECT key, '', name FROM entities", "UPDATE entities SET row = ? WHERE key = ?"),
    "fact": ("SELECT key, '', text FROM facts", "UPDATE facts SET row = ? WHERE key = ?"),
}
_DROP = {
    "entities": (
        "DELETE FROM entities WHERE key IN (SELECT value FROM json_each(?))",
        "DELETE FROM forms WHERE entity IN (SELECT value FROM json_each(?))",
    ),
    "facts": (
        "DELETE FROM facts WHERE key IN (SELECT value FROM json_each(?))",
        "DELETE FROM participants WHERE fact IN (SELECT value FROM json_each(?))",
    ),
}
