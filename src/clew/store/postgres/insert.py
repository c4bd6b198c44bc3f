"""Rows of new documents, chunks, entities and facts, inserted by COPY.

The cells are those of a folder's tables; columns named `*_code` are added for the arrays.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count

from clew.errors import StoreError
from clew.store.checksums import checksum_cells
from clew.store.merge import (
    FactMention,
    Mention,
    embedded_text,
    entity_form_rows,
    id_code,
    label_code,
    merge_entity,
    merge_fact,
    node_code,
)
from clew.store.postgres.connections import Connection
from clew.store.postgres.tables import Row, copy_in, find_keys
from clew.store.postgres.versions import end_rows
from clew.store.protocol import Addition, Array
from clew.store.sqlite import rows
from clew.store.sqlite.insert import (
    ChunkRow,
    PreparedExtraction,
    entity_to_cells,
    fact_to_cells,
    keep_unstored,
)
from clew.text.entity_types import classify_type
from clew.text.unicode import digest
from clew.types import LITERAL_TYPES, Entity, Fact, Kind

FindVectorRows = Callable[[Kind, Sequence[str]], Array]
_MAX_INT64 = (1 << 63) - 1
DOCUMENT_COLUMNS = ("key", "id", "title", "text", "metadata", "pages", "stamp", "checksum")
SOURCE_COLUMNS = ("name", "document", "checksum")
CHUNK_COLUMNS = (
    *("key", "id", "document", "start", "stop", "text", "heading", "page", "vector_row"),
    *("failed", "checksum", "extracted"),
)
ENTITY_COLUMNS = (
    *("key", "id", "name", "name_hash", "type", "description", "aliases", "attributes"),
    *("support", "vector_row", "checksum", "type_code", "id_code", "literal", "exact"),
)
FORM_COLUMNS = ("entity", "hash", "weight", "part")
FACT_COLUMNS = (
    *("key", "id", "text", "relation", "keywords", "description", "weight", "support"),
    *("vector_row", "checksum", "relation_code", "weight_code"),
)
PARTICIPANT_COLUMNS = ("fact", "ordinal", "entity", "role")
MENTION_COLUMNS = (
    *("entity", "chunk", "surface", "type", "description", "spans", "times", "about"),
    *("aliases", "attributes", "about_code", "class_code"),
)
SAYING_COLUMNS = (
    *("fact", "chunk", "text", "relation", "keywords", "description", "weight", "start", "stop"),
)


def to_thousandths(number: float) -> int:
    """A number in thousandths, rounded away from zero as SQLite does, within 64 bits."""
    scaled = number * 1000
    if abs(scaled) >= _MAX_INT64:
        return _MAX_INT64 if scaled > 0 else -_MAX_INT64
    return int(scaled + 0.5) if scaled >= 0 else int(scaled - 0.5)


def make_entity_row(key: int, identity: str, cells: Row, vector_row: int) -> Row:
    """A row of `entities` from its cells: name, hash, type and what follows."""
    kind = str(cells[2])
    codes = label_code(kind), id_code(identity), int(kind in LITERAL_TYPES)
    node = node_code(identity, str(cells[0]))
    return (key, identity, *cells, vector_row, checksum_cells(identity, *cells), *codes, node)


def make_fact_row(key: int, identity: str, cells: Row, vector_row: int) -> Row:
    """A row of `facts` from its cells: text, relation and what follows."""
    codes = (label_code(str(cells[1])), to_thousandths(cells[4]))
    return (key, identity, *cells, vector_row, checksum_cells(identity, *cells), *codes)


def make_mention_row(entity: int, chunk: int, cells: Row) -> Row:
    """A row of `mentions` from its cells: surface, type and what follows."""
    return (entity, chunk, *cells, to_thousandths(cells[5]), classify_type(str(cells[1])))


def take_keys(db: Connection, table: str, many: int) -> int:
    """Reserve keys of a table; return the first."""
    row = db.execute(
        "UPDATE counters SET last = last + %s WHERE name = %s RETURNING last", (many, table)
    ).fetchone()
    if row is None:
        raise StoreError(
            f"the table counters has lost the row of {table!r}; `clew restore FILE` restores a "
            "backup"
        )
    return int(row[0]) - many + 1


def find_documents(db: Connection, additions: Sequence[Addition]) -> dict[str, tuple[int, str]]:
    """Key and stamp, by id, of the documents that are already stored."""
    found = db.execute(
        "SELECT id, key, stamp FROM documents WHERE id = ANY(%s::text[])",
        ([a.document.id for a in additions],),
    )
    return {name: (key, stamp) for name, key, stamp in found}


def insert_documents(
    db: Connection, additions: Sequence[Addition]
) -> tuple[list[Addition], list[ChunkRow]]:
    """Insert documents and names; return those without chunks, and their future chunk rows."""
    stored = find_documents(db, additions)
    new = {a.document.id: a for a in reversed(additions) if a.document.id not in stored}
    listed = [a for a in additions if new.get(a.document.id) is a]
    first = take_keys(db, "documents", len(listed))
    made = {a.document.id: key for key, a in enumerate(listed, first)}
    cells = [rows.document_to_row(a.document, a.stamp) for a in listed]
    copy_in(
        db,
        "documents",
        DOCUMENT_COLUMNS,
        [(key, *row, checksum_cells(*row)) for key, row in enumerate(cells, first)],
    )
    keys = {name: key for name, (key, _) in stored.items()} | made
    _set_names(db, {name: keys[a.document.id] for a in additions for name in a.document.names})
    _set_stamps(
        db,
        {
            stored[a.document.id][0]: a.stamp
            for a in additions
            if a.document.id in stored and a.stamp != stored[a.document.id][1]
        },
    )
    fresh = _filter_without_chunks(db, additions, keys)
    numbers = count(take_keys(db, "chunks", sum(len(a.chunks) for a in fresh)))
    return fresh, [
        (next(numbers), chunk, extraction.failed, keys[a.document.id])
        for a in fresh
        for chunk, extraction in zip(a.chunks, a.extractions, strict=True)
    ]


def _set_names(db: Connection, owners: Mapping[str, int]) -> None:
    """Insert the names that are not there yet; none belongs to another document any more."""
    found = db.execute("SELECT name FROM sources WHERE name = ANY(%s::text[])", (list(owners),))
    held = {name for (name,) in found}
    new = [(name, key, checksum_cells(name, key)) for name, key in owners.items()]
    copy_in(db, "sources", SOURCE_COLUMNS, [row for row in new if row[0] not in held])


def _set_stamps(db: Connection, stamps: Mapping[int, str]) -> None:
    """Change the stamps of stored documents, by key."""
    if not stamps:
        return
    found = db.execute(
        "SELECT key, id, title, text, metadata, pages FROM documents WHERE key = ANY(%s::bigint[])",
        (list(stamps),),
    ).fetchall()
    end_rows(db, "documents", "key", list(stamps))
    changed = [
        (key, *cells, stamps[key], checksum_cells(*cells, stamps[key])) for key, *cells in found
    ]
    copy_in(db, "documents", DOCUMENT_COLUMNS, changed)


def _filter_without_chunks(
    db: Connection, additions: Sequence[Addition], keys: Mapping[str, int]
) -> list[Addition]:
    """Additions whose chunks are not stored; of a repeated document only the first."""
    held = {
        row[0]
        for row in db.execute(
            "SELECT DISTINCT document FROM chunks WHERE document = ANY(%s::bigint[])",
            (list(keys.values()),),
        )
    }
    return keep_unstored(additions, keys, held)


def insert_chunks(
    db: Connection,
    vector_rows: FindVectorRows,
    many: Sequence[ChunkRow],
    prepared: Iterable[PreparedExtraction],
) -> None:
    """Insert chunks, each with its vector row and the checksum of what was extracted from it."""
    at = vector_rows("chunk", [digest(embedded_text(chunk)) for _, chunk, _, _ in many]).tolist()
    made = []
    for (key, chunk, failed, document), row, one in zip(many, at, prepared, strict=True):
        span = (chunk.start, chunk.end, chunk.text)
        # Its document's id and title are shown with it: they are in the checksum.
        whole = (chunk.id, chunk.document, *span, chunk.title, chunk.heading, chunk.page)
        checksum = checksum_cells(*whole, failed)
        place = (key, chunk.id, document, *span, chunk.heading, chunk.page, row)
        made.append((*place, failed, checksum, one.checksum))
    copy_in(db, "chunks", CHUNK_COLUMNS, made)


def insert_new_entities(
    db: Connection, mentions: Sequence[Mapping[str, Mention]]
) -> tuple[dict[str, int], list[Entity]]:
    """Merge the new entities and insert their name forms; return all keys and the new ones."""
    by_id: dict[str, list[Mention]] = defaultdict(list)
    for found in mentions:
        for key, mention in found.items():
            by_id[key].append(mention)
    known = find_keys(db, "entities", by_id)
    made = [merge_entity(key, by_id[key]) for key in sorted(by_id.keys() - known.keys())]
    first = take_keys(db, "entities", len(made))
    new = {entity.id: key for key, entity in enumerate(made, first)}
    copy_in(
        db,
        "forms",
        FORM_COLUMNS,
        [(new[entity.id], *form) for entity in made for form in entity_form_rows(entity)],
    )
    return known | new, made


def merge_new_facts(
    db: Connection, mentions: Sequence[Mapping[str, tuple[object, FactMention]]]
) -> tuple[dict[str, int], list[Fact]]:
    """The same for facts, which have no forms."""
    by_id: dict[str, list[FactMention]] = defaultdict(list)
    for found in mentions:
        for key, (_, mention) in found.items():
            by_id[key].append(mention)
    known = find_keys(db, "facts", by_id)
    made = [merge_fact(key, (), by_id[key]) for key in sorted(by_id.keys() - known.keys())]
    first = take_keys(db, "facts", len(made))
    return known | {fact.id: key for key, fact in enumerate(made, first)}, made


def entity_rows(
    keys: Mapping[str, int], entities: Sequence[Entity], vector_rows: FindVectorRows
) -> list[Row]:
    """Rows of `entities`, each with its vector row."""
    at = vector_rows("entity", [digest(embedded_text(one)) for one in entities]).tolist()
    return [
        make_entity_row(keys[one.id], one.id, entity_to_cells(one), row)
        for one, row in zip(entities, at, strict=True)
    ]


def fact_rows(
    keys: Mapping[str, int], facts: Sequence[Fact], vector_rows: FindVectorRows
) -> list[Row]:
    """Rows of `facts`, each with its vector row."""
    at = vector_rows("fact", [digest(embedded_text(one)) for one in facts]).tolist()
    return [
        make_fact_row(keys[one.id], one.id, fact_to_cells(one), row)
        for one, row in zip(facts, at, strict=True)
    ]
