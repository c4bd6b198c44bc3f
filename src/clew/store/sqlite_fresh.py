"""Elements that nobody spoke of before: merged from memory and written once, not read back."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from clew.store.merge import (
    Mention,
    Said,
    Saying,
    merge_entity,
    merge_fact,
    name_forms,
    name_hash,
)
from clew.store.protocol import Array
from clew.store.sqlite_rows import Row, packed
from clew.text import digest
from clew.types import Entity, Fact, Kind

VectorRows = Callable[[Kind, Sequence[str]], Array]


@dataclass(frozen=True, slots=True)
class NewEntities:
    """The keys of all entities mentioned, and the new ones, complete but for their vectors."""

    keys: dict[str, int]
    made: list[Entity]

    def write(self, db: sqlite3.Connection, vector_rows: VectorRows) -> None:
        """Keep the new ones, each with the place of its vector."""
        at = vector_rows("entity", [digest(one.name) for one in self.made]).tolist()
        db.executemany(
            "INSERT INTO entities(key,id,name,name_hash,type,description,aliases,attributes,"
            "support,row) VALUES (?,?,?,?,?,?,?,?,?,?)",
            [
                (self.keys[one.id], one.id, *entity_cells(one), row)
                for one, row in zip(self.made, at, strict=True)
            ],
        )


def new_entities(db: sqlite3.Connection, mentions: Sequence[Mapping[str, Mention]]) -> NewEntities:
    """Merge what is new; its names' forms are kept at once."""
    said: dict[str, list[Mention]] = defaultdict(list)
    for found in mentions:
        for key, mention in found.items():
            said[key].append(mention)
    known = _keys(db, "entities", said)
    made = [merge_entity(key, said[key]) for key in sorted(said.keys() - known.keys())]
    new = {one.id: key for key, one in enumerate(made, next_key(db, "entities"))}
    db.executemany(
        "INSERT INTO forms VALUES (?,?,?,?)",
        [(new[one.id], *form) for one in made for form in name_forms(one)],
    )
    return NewEntities(known | new, made)


def entity_cells(one: Entity) -> Row:
    """Name, hash, type, description, aliases, attributes, support."""
    aliases, attributes = packed(one.aliases), packed(one.attributes)
    told = (one.type, one.description, aliases, attributes)
    return (one.name, name_hash(one.name), *told, one.support)


@dataclass(frozen=True, slots=True)
class NewFacts:
    """The same for facts."""

    keys: dict[str, int]
    made: list[Fact]

    def write(self, db: sqlite3.Connection, vector_rows: VectorRows) -> None:
        """Keep the new ones, each with the place of its vector."""
        at = vector_rows("fact", [digest(one.text) for one in self.made]).tolist()
        db.executemany(
            "INSERT INTO facts(key,id,text,relation,keywords,description,weight,support,row) "
            "VALUES (?,?,?,?,?,?,?,?,?)",
            [
                (
                    *(self.keys[one.id], one.id, one.text, one.relation, packed(one.keywords)),
                    *(one.description, one.weight, one.support, row),
                )
                for one, row in zip(self.made, at, strict=True)
            ],
        )


def new_facts(db: sqlite3.Connection, sayings: Sequence[Said]) -> NewFacts:
    """Merge what is new."""
    said: dict[str, list[Saying]] = defaultdict(list)
    for found in sayings:
        for key, (_, saying) in found.items():
            said[key].append(saying)
    known = _keys(db, "facts", said)
    made = [merge_fact(key, (), said[key]) for key in sorted(said.keys() - known.keys())]
    new = {one.id: key for key, one in enumerate(made, next_key(db, "facts"))}
    return NewFacts(known | new, made)


def next_key(db: sqlite3.Connection, table: str) -> int:
    """The key that the table's next row gets; none is ever used twice."""
    held = db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    return int(held[0]) + 1 if held else 1


def _keys(db: sqlite3.Connection, table: str, ids: Iterable[str]) -> dict[str, int]:
    return dict(
        db.execute(
            f"SELECT id, key FROM {table} WHERE id IN (SELECT value FROM json_each(?))",  # noqa: S608
            (json.dumps(list(ids)),),
        )
    )
