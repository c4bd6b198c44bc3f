"""A Cypher script: entities as `:Entity`, facts as `:FACT` with their relation as a property.

Names and relations are data: they stand in string literals only, never as labels or types, so no
name can become a command.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TextIO

from clew.export.graph import Graph, Stated

_ROWS = 500  # per statement
_ESCAPES = str.maketrans(
    {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
)
_NODES = (
    "MERGE (e:Entity {name: row.name}) SET e.type = row.type, e.description = row.description, "
    "e.aliases = row.aliases, e.attributes = row.attributes"
)
_EDGES = (
    "MATCH (h:Entity {name: row.head}) MATCH (t:Entity {name: row.tail}) "
    "MERGE (h)-[f:FACT {id: row.id}]->(t) SET f.relation = row.relation, f.text = row.text, "
    "f.weight = row.weight, f.description = row.description, f.said = row.said"
)
_NARY = (
    "MERGE (f:Fact {id: row.id}) SET f.relation = row.relation, f.text = row.text, "
    "f.weight = row.weight, f.description = row.description, f.said = row.said "
    "WITH f, row UNWIND row.members AS member MATCH (e:Entity {name: member.name}) "
    "MERGE (f)-[:MEMBER {role: member.role}]->(e)"
)
Cell = str | float | list[str] | list[dict[str, str]]


async def write_cypher(graph: Graph, file: Path) -> int:
    """Write a script for `cypher-shell -f`; it may be run twice."""
    with file.open("w", encoding="utf-8", newline="\n") as out:
        out.write(
            "CREATE CONSTRAINT entity_name IF NOT EXISTS FOR (e:Entity) REQUIRE e.name IS UNIQUE;\n"
        )
        rows = _Rows(out, _NODES)
        async for _, entity in graph.entities():
            rows.add(
                {
                    "name": entity.name,
                    "type": entity.type,
                    "description": entity.description,
                    "aliases": list(entity.aliases),
                    "attributes": json.dumps(dict(entity.attributes), ensure_ascii=False),
                }
            )
        rows.flush()
        edges, nary = _Rows(out, _EDGES), _Rows(out, _NARY)
        async for stated in graph.facts():
            if stated.triple:
                edges.add({"head": stated.triple[0], "tail": stated.triple[2], **_fact(stated)})
            else:
                who: list[dict[str, str]] = [{"name": n, "role": r} for n, r in stated.members]
                nary.add({"members": who, **_fact(stated)})
        edges.flush()
        nary.flush()
    return 0


def _fact(stated: Stated) -> dict[str, Cell]:
    fact = stated.fact
    return {
        "id": fact.id,
        "relation": fact.relation,
        "text": fact.text,
        "weight": fact.weight,
        "description": fact.description,
        "said": [place.told for place in stated.said],
    }


class _Rows:
    """Gathers rows and writes them as one statement."""

    def __init__(self, out: TextIO, statement: str) -> None:
        self._out = out
        self._statement = statement
        self._held: list[str] = []

    def add(self, row: Mapping[str, Cell]) -> None:
        self._held.append(_map(row))
        if len(self._held) >= _ROWS:
            self.flush()

    def flush(self) -> None:
        if self._held:
            rows = ",\n".join(self._held)
            self._out.write(f"UNWIND [\n{rows}\n] AS row\n{self._statement};\n")
            self._held = []


def _map(row: Mapping[str, Cell]) -> str:
    return "{" + ", ".join(f"{name}: {_value(cell)}" for name, cell in row.items()) + "}"


def _value(cell: Cell) -> str:
    if isinstance(cell, str):
        return literal(cell)
    if isinstance(cell, float):
        return repr(cell).replace("e+", "e")  # a plus is not in every Cypher's grammar
    return "[" + ", ".join(_parts(cell)) + "]"


def _parts(cells: Iterable[str | dict[str, str]]) -> Iterator[str]:
    for cell in cells:
        yield literal(cell) if isinstance(cell, str) else _map(cell)


def literal(text: str) -> str:
    """A Cypher string; `\\u` is never written, which Cypher decodes before it looks for quotes."""
    return "'" + text.translate(_ESCAPES).replace("\\\\u", "\\\\' + 'u") + "'"
