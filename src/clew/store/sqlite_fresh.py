"""Elements that nobody spoke of before: merged from memory and written once, not read back."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from clew.store import sqlite_rows as rows
from clew.store.merge import (
    Mention,
    Said,
    Saying,
    embedded_text,
    merge_entity,
    merge_fact,
    name_forms,
    name_hash,
)
from clew.store.protocol import Array
from clew.text import digest
from clew.types import Entity, Kind

VectorRows = Callable[[Kind, Sequence[str]], Array]


def entity_keys(
    db: sqlite3.Connection, vector_rows: VectorRows, mentions: Sequence[Mapping[str, Mention]]
) -> tuple[dict[str, int], set[int]]:
    """The keys of all entities mentioned, and which of them are new and now complete."""
    said: dict[str, list[Mention]] = defaultdict(list)
    for found in mentions:
        for key, mention in found.items():
            said[key].append(mention)
    known = _keys(db, "entities", said)
    made = [merge_entity(key, said[key]) for key in sorted(said.keys() - known.keys())]
    at = vector_rows("entity", [digest(embedded_text(one)) for one in made]).tolist()
    db.executemany(
        "INSERT INTO entities(name,name_hash,type,description,aliases,attributes,support,row,id) "
        "VALUES (?,?,?,?,?,?,?,?,?)",
        [(*entity_cells(one), row, one.id) for one, row in zip(made, at, strict=True)],
    )
    new = _keys(db, "entities", [one.id for one in made])
    db.executemany(
        "INSERT INTO forms VALUES (?,?,?,?)",
        [(new[one.id], *form) for one in made for form in name_forms(one)],
    )
    return known | new, set(new.values())


def entity_cells(one: Entity) -> rows.Row:
    """Name, hash, type, description, aliases, attributes, support."""
    aliases, attributes = rows.packed(one.aliases), rows.packed(one.attributes)
    told = (one.type, one.description, aliases, attributes)
    return (one.name, name_hash(one.name), *told, one.support)


def fact_keys(
    db: sqlite3.Connection, vector_rows: VectorRows, sayings: Sequence[Said]
) -> tuple[dict[str, int], set[int]]:
    """The same for facts."""
    said: dict[str, list[Saying]] = defaultdict(list)
    for found in sayings:
        for key, (_, saying) in found.items():
            said[key].append(saying)
    known = _keys(db, "facts", said)
    made = [merge_fact(key, (), said[key]) for key in sorted(said.keys() - known.keys())]
    at = vector_rows("fact", [digest(one.text) for one in made]).tolist()
    db.executemany(
        "INSERT INTO facts(text,relation,keywords,description,weight,support,row,id) "
        "VALUES (?,?,?,?,?,?,?,?)",
        [
            (
                *(one.text, one.relation, rows.packed(one.keywords), one.description),
                *(one.weight, one.support, row, one.id),
            )
            for one, row in zip(made, at, strict=True)
        ],
    )
    new = _keys(db, "facts", [one.id for one in made])
    return known | new, set(new.values())


def _keys(db: sqlite3.Connection, table: str, ids: Iterable[str]) -> dict[str, int]:
    return dict(
        db.execute(
            f"SELECT id, key FROM {table} WHERE id IN (SELECT value FROM json_each(?))",  # noqa: S608
            (json.dumps(list(ids)),),
        )
    )
