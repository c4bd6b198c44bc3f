"""Write the rows of the next generation: remove, add, merge touched elements."""

import sys
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, LiteralString

import numpy as np

from clew.kb_address import DatabaseAddress
from clew.store.merge import entity_form_rows, merge_entity, merge_fact
from clew.store.postgres.connections import Connection
from clew.store.postgres.insert import (
    ENTITY_COLUMNS,
    FACT_COLUMNS,
    FORM_COLUMNS,
    MENTION_COLUMNS,
    PARTICIPANT_COLUMNS,
    SAYING_COLUMNS,
    FindVectorRows,
    entity_rows,
    fact_rows,
    find_documents,
    insert_chunks,
    insert_documents,
    insert_new_entities,
    make_mention_row,
    merge_new_facts,
)
from clew.store.postgres.tables import copy_in, searchable_text
from clew.store.postgres.versions import end_rows
from clew.store.protocol import (
    FORGET_REPLIES,
    Addition,
    Array,
    Change,
    DeriveArrays,
    resolve_duplicate_names,
)
from clew.store.sqlite import rows
from clew.store.sqlite.insert import PreparedExtraction, prepare_extraction
from clew.store.sqlite.write import TouchedElements
from clew.store.sqlite.writer_process import (
    WriterProcess,
    read_messages,
    receive_additions,
    run_writer,
)
from clew.text.unicode import digest, mark_text
from clew.types import Entity, Extraction, Fact, Kind

if TYPE_CHECKING:
    from clew.store.postgres.store import PostgresStore

Preparation = tuple[Callable[[Extraction], PreparedExtraction], Callable[[], None]]
"""How extractions are prepared, and what waits for their vectors."""
UNPREPARED: Preparation = (prepare_extraction, lambda: None)
_ADDITIONS_PER_BATCH = 2000  # of a stream, which need not fit into memory
_MERGE_BLOCK = 20_000  # elements merged per block
_CONTENT: dict[Kind, LiteralString] = {
    "chunk": "SELECT c.key, c.vector_row, d.title, c.heading, c.text FROM chunks c "
    "JOIN documents d ON d.key = c.document ORDER BY c.key",
    "entity": "SELECT key, vector_row, '', '', name FROM entities ORDER BY key",
    "fact": "SELECT key, vector_row, '', '', text FROM facts ORDER BY key",
}
_ELEMENTS: dict[Kind, LiteralString] = {"chunk": "chunks", "entity": "entities", "fact": "facts"}
_MENTIONS: LiteralString = (
    "SELECT m.entity, e.id, count(*), m.surface, m.type, m.description, max(m.about), "
    "m.aliases, m.attributes FROM mentions m JOIN entities e ON e.key = m.entity "
    "WHERE m.entity = ANY(%s::bigint[]) GROUP BY m.entity, e.id, m.surface, m.type, m.description, "
    "m.aliases, m.attributes ORDER BY m.entity"
)
_STATEMENTS: LiteralString = (
    "SELECT s.fact, f.id, f.text, s.text, s.relation, s.keywords, s.description, s.weight "
    "FROM sayings s JOIN facts f ON f.key = s.fact WHERE s.fact = ANY(%s::bigint[]) "
    "ORDER BY s.fact, s.chunk"
)


def iterate_content_hashes(db: Connection, kind: Kind) -> Iterator[tuple[int, int, str]]:
    """Yield key, vector row and the hash of the embedded text of every element of a kind."""
    for key, row, *parts in db.execute(_CONTENT[kind]):
        yield key, row, digest(searchable_text(*parts))


def find_all_vector_rows(db: Connection, find_rows: FindVectorRows) -> dict[Kind, Array]:
    """The keys (ascending) and vector rows of every element, looked for anew."""
    found: dict[Kind, Array] = {}
    for kind in _ELEMENTS:
        held = list(iterate_content_hashes(db, kind))
        at = find_rows(kind, [key for _, _, key in held])
        keys = np.array([key for key, _, _ in held], np.int64)
        found[kind] = np.stack([keys, np.asarray(at, np.int64)], axis=1)
    return found


def set_vector_rows(db: Connection, found: Mapping[Kind, Array]) -> None:
    """Set the vector rows of elements by key."""
    for kind, rows_of_kind in found.items():
        table = _ELEMENTS[kind]
        db.execute(
            f"UPDATE {table} SET vector_row = new.row FROM unnest(%s::bigint[], %s::bigint[]) "  # noqa: S608
            f"AS new(key, row) WHERE {table}.key = new.key AND vector_row != new.row",
            (rows_of_kind[:, 0].tolist(), rows_of_kind[:, 1].tolist()),
        )


def forget_replies(db: Connection, marks: Collection[str]) -> None:
    """Forget what models replied to these texts, and to prompts that may have quoted them."""
    if marks:
        db.execute(FORGET_REPLIES)
        db.execute(
            "DELETE FROM memory WHERE kind = 'reply' AND left(key, %s) = ANY(%s::text[])",
            (len(mark_text("")), list(marks)),
        )


def merge_stored_entities(db: Connection, keys: Collection[int]) -> Iterator[tuple[int, Entity]]:
    """Merge these entities from all their mentions; those without any are left out."""
    # Equal mentions are grouped and counted: a hub has a million of them.
    for key, group in groupby(db.execute(_MENTIONS, (sorted(keys),)), itemgetter(0)):
        found = list(group)
        mentions = [one for row in found for one in [rows.row_to_mention(row[3:])] * row[2]]
        yield key, merge_entity(found[0][1], mentions)


def merge_stored_facts(db: Connection, keys: Collection[int]) -> Iterator[tuple[int, Fact]]:
    """The same for facts."""
    for key, group in groupby(db.execute(_STATEMENTS, (sorted(keys),)), itemgetter(0)):
        found = list(group)
        mentions = [rows.row_to_fact_mention((row[3] or row[2], *row[4:])) for row in found]
        yield key, merge_fact(found[0][1], (), mentions)


@dataclass(frozen=True)
class PostgresWriter:
    """Applies changes to an open transaction; `vector_rows` finds rows by content hash."""

    db: Connection
    vector_rows: FindVectorRows
    prepare: Callable[[Extraction], PreparedExtraction] = prepare_extraction
    wait: Callable[[], None] = lambda: None
    """Called before vectors are first looked for: they may still be in the making."""
    forgotten: set[str] = field(default_factory=set)
    """Marks of removed texts, whose replies are to be forgotten when this is published."""

    def apply(self, change: Change) -> TouchedElements:
        """Remove, add and merge; return what was touched."""
        touched = TouchedElements()
        self._remove_documents(replace(change, add=()), touched)
        for batch in chain([change.add], _batch(change.bulk or ())):
            added = resolve_duplicate_names(batch)
            self._remove_documents(Change(add=added), touched)
            self._insert_additions(added, touched)
        for block in _split(touched.entities - touched.complete_entities):
            self._merge_entities(block)
        for block in _split(touched.facts - touched.complete_facts):
            self._merge_facts(block)
        return touched

    # -- removing

    def _remove_documents(self, change: Change, touched: TouchedElements) -> None:
        """Remove names, then documents without a name, and chunks with an outdated stamp."""
        candidates = end_rows(self.db, "sources", "name", change.remove, "document")
        candidates += self._take_over_names(change.add)
        orphans = self._find_orphans(candidates)
        stored = find_documents(self.db, change.add) if change.add else {}
        outdated = [
            stored[a.document.id][0]
            for a in change.add
            if a.document.id in stored and stored[a.document.id][1] != a.stamp
        ]
        if change.remove and orphans:
            texts = self.db.execute(
                "SELECT text FROM chunks WHERE document = ANY(%s::bigint[])", (orphans,)
            )
            self.forgotten.update(mark_text(text) for text in ("", *(row[0] for row in texts)))
        self._drop_chunks([*orphans, *outdated], touched)
        end_rows(self.db, "documents", "key", orphans)

    def _find_orphans(self, documents: Sequence[int]) -> list[int]:
        """Those of the documents that have no name any more."""
        found = self.db.execute(
            "SELECT key FROM documents WHERE key = ANY(%s::bigint[]) "
            "AND NOT EXISTS (SELECT FROM sources WHERE document = documents.key)",
            (list(documents),),
        )
        return [int(row[0]) for row in found]

    def _take_over_names(self, additions: Sequence[Addition]) -> list[int]:
        """Remove names that move to an added document; return the documents that lose them."""
        new_owner = {name: a.document.id for a in additions for name in a.document.names}
        if not new_owner:
            return []
        held = self.db.execute(
            "SELECT s.name, d.id, d.key FROM sources s JOIN documents d ON d.key = s.document "
            "WHERE s.name = ANY(%s::text[])",
            (list(new_owner),),
        )
        moved = [(name, key) for name, document, key in held if new_owner[name] != document]
        end_rows(self.db, "sources", "name", [name for name, _ in moved])
        return [key for _, key in moved]

    def _drop_chunks(self, documents: list[int], touched: TouchedElements) -> None:
        """Delete chunks with their mentions, and record what must be merged again."""
        chunks = end_rows(self.db, "chunks", "document", documents, "key")
        touched.removed_chunks += chunks
        added = set(touched.chunks) & set(chunks)
        if added:  # of an earlier batch of the same change
            touched.chunks = [key for key in touched.chunks if key not in added]
        touched.entities.update(end_rows(self.db, "mentions", "chunk", chunks, "entity"))
        gone = end_rows(self.db, "sayings", "chunk", chunks, "fact")
        touched.facts.update(gone)
        touched.complete_entities -= touched.entities if chunks else set()
        touched.complete_facts -= set(gone)

    # -- adding

    def _insert_additions(self, additions: Sequence[Addition], touched: TouchedElements) -> None:
        if not additions:
            return
        fresh, chunks = insert_documents(self.db, additions)
        added = [key for key, *_ in chunks]
        prepared = [self.prepare(e) for a in fresh for e in a.extractions]
        entities, new = insert_new_entities(self.db, [one.mentions for one in prepared])
        facts, stated = merge_new_facts(self.db, [one.fact_mentions for one in prepared])
        self._insert_mentions(prepared, entities, added)
        self._insert_fact_mentions(prepared, facts, {fact.id for fact in stated}, entities, added)
        self.wait()
        insert_chunks(self.db, self.vector_rows, chunks, prepared)
        rows_of_entities = entity_rows(entities, new, self.vector_rows)
        copy_in(self.db, "entities", ENTITY_COLUMNS, rows_of_entities)
        copy_in(self.db, "facts", FACT_COLUMNS, fact_rows(facts, stated, self.vector_rows))
        touched.chunks += added
        touched.entities.update(entities.values())
        touched.facts.update(facts.values())
        # Those that an earlier batch of a stream had made new are mentioned again.
        touched.complete_entities -= set(entities.values())
        touched.complete_facts -= set(facts.values())
        touched.complete_entities |= {entities[one.id] for one in new}
        touched.complete_facts |= {facts[one.id] for one in stated}

    def _insert_mentions(
        self, prepared: Sequence[PreparedExtraction], keys: Mapping[str, int], chunks: Sequence[int]
    ) -> None:
        # Rows are sorted by their keys, so that index pages are written sequentially.
        made = sorted(
            (keys[key], chunk, cells)
            for chunk, one in zip(chunks, prepared, strict=True)
            for key, cells in zip(one.mentions, one.mention_cells, strict=True)
        )
        copy_in(self.db, "mentions", MENTION_COLUMNS, [make_mention_row(*one) for one in made])

    def _insert_fact_mentions(
        self,
        prepared: Sequence[PreparedExtraction],
        keys: Mapping[str, int],
        new: Collection[str],
        entities: Mapping[str, int],
        chunks: Sequence[int],
    ) -> None:
        """Insert statements, and the participants of new facts: an id determines them."""
        members = {
            key: participants
            for one in prepared
            for key, (participants, _) in one.fact_mentions.items()
            if key in new
        }
        copy_in(
            self.db,
            "participants",
            PARTICIPANT_COLUMNS,
            sorted(
                (keys[key], ordinal, entities[member.entity], member.role)
                for key, participants in members.items()
                for ordinal, member in enumerate(participants)
            ),
        )
        copy_in(
            self.db,
            "sayings",
            SAYING_COLUMNS,
            sorted(
                (keys[key], chunk, *cells)
                for chunk, one in zip(chunks, prepared, strict=True)
                for key, cells in zip(one.fact_mentions, one.fact_mention_cells, strict=True)
            ),
        )

    # -- merging

    def _merge_entities(self, touched: set[int]) -> None:
        """Merge these entities again from all their mentions; delete those without any."""
        merged = dict(merge_stored_entities(self.db, touched))
        end_rows(self.db, "forms", "entity", sorted(touched))
        end_rows(self.db, "entities", "key", sorted(touched))
        keys = {entity.id: key for key, entity in merged.items()}
        made = entity_rows(keys, list(merged.values()), self.vector_rows)
        copy_in(self.db, "entities", ENTITY_COLUMNS, made)
        forms = ((key, *form) for key, e in merged.items() for form in entity_form_rows(e))
        copy_in(self.db, "forms", FORM_COLUMNS, forms)

    def _merge_facts(self, touched: set[int]) -> None:
        """The same for facts."""
        merged = dict(merge_stored_facts(self.db, touched))
        end_rows(self.db, "participants", "fact", sorted(touched - merged.keys()))
        end_rows(self.db, "facts", "key", sorted(touched))
        keys = {fact.id: key for key, fact in merged.items()}
        made = fact_rows(keys, list(merged.values()), self.vector_rows)
        copy_in(self.db, "facts", FACT_COLUMNS, made)


def _batch(additions: Iterable[Addition]) -> Iterator[list[Addition]]:
    stream = iter(additions)
    while batch := list(islice(stream, _ADDITIONS_PER_BATCH)):
        yield batch


def _split(keys: set[int]) -> Iterator[set[int]]:
    """Blocks of bounded size, in order."""
    listed = sorted(keys)
    for at in range(0, len(listed), _MERGE_BLOCK):
        yield set(listed[at : at + _MERGE_BLOCK])


# -- the writer process


@asynccontextmanager
async def open_writer_process(
    store: "PostgresStore", derive: DeriveArrays, documents: int
) -> AsyncIterator[WriterProcess | None]:
    """Start a writer process for a locked schema; None if not worthwhile or not possible.

    As that of a folder: rows that need no vectors are copied into the tables while the last texts
    are embedded. The parent holds the writer's lock; if either process is killed, the child's
    connection ends and its transaction is undone. The address goes by the child's input, as
    everybody on the machine can read the arguments of a process.
    """
    given = (derive.__module__, derive.__name__)
    async with run_writer(__name__, given, documents) as writer:
        if writer is not None:
            where = (store.address.url, store.address.schema, str(store.folder), store.files_at)
            writer.send_message("open", where)
        yield writer


def main(module: str, name: str) -> None:
    """Run until the input ends, at the latest when the parent exits."""
    from clew.store.postgres.store import PostgresStore

    stream = read_messages(sys.stdin.buffer)
    _, (url, schema, folder, files) = next(stream)
    store = PostgresStore(DatabaseAddress(url, schema), Path(folder), files=files)
    receive_additions(stream, store, module, name)
