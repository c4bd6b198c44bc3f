"""Insert entities and facts not yet in the database, merged in memory and written once."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from clew.store.merge import (
    FactMention,
    FactMentions,
    Mention,
    entity_form_rows,
    merge_entity,
    merge_fact,
    name_hash,
)
from clew.store.protocol import Array
from clew.store.sqlite_rows import Row, pack
from clew.text import digest
from clew.types import Entity, Fact, Kind

FindVectorRows = Callable[[Kind, Sequence[str]], Array]


@dataclass(frozen=True, slots=True)
class NewEntities:
    """Keys of all mentioned entities, and the new entities, complete except for vector rows."""

    keys: dict[str, int]
    entities: list[Entity]

    def insert(self, db: sqlite3.Connection, vector_rows: FindVectorRows) -> None:
        """Insert the new ones, each with its vector row."""
        at = vector_rows("entity", [digest(one.name) for one in self.entities]).tolist()
        db.executemany(
            "INSERT INTO entities(key,id,name,name_hash,type,description,aliases,attributes,"
            "support,row) VALUES (?,?,?,?,?,?,?,?,?,?)",
            [
                (self.keys[one.id], one.id, *entity_to_cells(one), row)
                for one, row in zip(self.entities, at, strict=True)
            ],
        )


def merge_new_entities(
    db: sqlite3.Connection, mentions: Sequence[Mapping[str, Mention]]
) -> NewEntities:
    """Merge the new entities and insert their name forms."""
    by_id: dict[str, list[Mention]] = defaultdict(list)
    for found in mentions:
        for key, mention in found.items():
            by_id[key].append(mention)
    known = _find_keys(db, "entities", by_id)
    made = [merge_entity(key, by_id[key]) for key in sorted(by_id.keys() - known.keys())]
    new = {entity.id: key for key, entity in enumerate(made, next_key(db, "entities"))}
    db.executemany(
        "INSERT INTO forms VALUES (?,?,?,?)",
        [(new[entity.id], *form) for entity in made for form in entity_form_rows(entity)],
    )
    return NewEntities(known | new, made)


def entity_to_cells(entity: Entity) -> Row:
    """Cells: name, hash, type, description, aliases, attributes, support."""
    aliases, attributes = pack(entity.aliases), pack(entity.attributes)
    merged = (entity.type, entity.description, aliases, attributes)
    return (entity.name, name_hash(entity.name), *merged, entity.support)


@dataclass(frozen=True, slots=True)
class NewFacts:
    """The same for facts."""

    keys: dict[str, int]
    facts: list[Fact]

    def insert(self, db: sqlite3.Connection, vector_rows: FindVectorRows) -> None:
        """Insert the new ones, each with its vector row."""
        at = vector_rows("fact", [digest(one.text) for one in self.facts]).tolist()
        db.executemany(
            "INSERT INTO facts(key,id,text,relation,keywords,description,weight,support,row) "
            "VALUES (?,?,?,?,?,?,?,?,?)",
            [
                (
                    *(self.keys[one.id], one.id, one.text, one.relation, pack(one.keywords)),
                    *(one.description, one.weight, one.support, row),
                )
                for one, row in zip(self.facts, at, strict=True)
            ],
        )


def merge_new_facts(db: sqlite3.Connection, sayings: Sequence[FactMentions]) -> NewFacts:
    """Merge the new facts."""
    by_id: dict[str, list[FactMention]] = defaultdict(list)
    for found in sayings:
        for key, (_, mention) in found.items():
            by_id[key].append(mention)
    known = _find_keys(db, "facts", by_id)
    made = [merge_fact(key, (), by_id[key]) for key in sorted(by_id.keys() - known.keys())]
    new = {fact.id: key for key, fact in enumerate(made, next_key(db, "facts"))}
    return NewFacts(known | new, made)


def next_key(db: sqlite3.Connection, table: str) -> int:
    """Key of the table's next row; keys are never reused."""
    held = db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    return int(held[0]) + 1 if held else 1


def _find_keys(db: sqlite3.Connection, table: str, ids: Iterable[str]) -> dict[str, int]:
    return dict(
        db.execute(
            f"SELECT id, key FROM {table} WHERE id IN (SELECT value FROM json_each(?))",  # noqa: S608
            (json.dumps(list(ids)),),
        )
    )
