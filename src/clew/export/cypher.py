"""Export a Cypher script: entities as `:Entity`, facts as `:FACT` with the relation a property.

Names and relations are only written as string literals, never as labels or types, so that no name
can inject a command.
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
    """Write a script for `cypher-shell -f`; running it twice gives the same graph."""
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
        async for fact in graph.facts():
            if fact.triple:
                edges.add({"head": fact.triple[0], "tail": fact.triple[2], **_fact(fact)})
            else:
                members: list[dict[str, str]] = [{"name": n, "role": r} for n, r in fact.members]
                nary.add({"members": members, **_fact(fact)})
        edges.flush()
        nary.flush()
    return 0


def _fact(exported: Stated) -> dict[str, Cell]:
    fact = exported.fact
    return {
        "id": fact.id,
        "relation": fact.relation,
        "text": fact.text,
        "weight": fact.weight,
        "description": fact.description,
        "said": [place.told for place in exported.said],
    }


class _Rows:
    """Collects rows and writes them in batches of one statement."""

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
        return repr(cell).replace("e+", "e")  # not every Cypher grammar has a plus in exponents
    return "[" + ", ".join(_parts(cell)) + "]"


def _parts(cells: Iterable[str | dict[str, str]]) -> Iterator[str]:
    for cell in cells:
        yield literal(cell) if isinstance(cell, str) else _map(cell)


def literal(text: str) -> str:
    """Quote a Cypher string; never writes `\\u`, which Cypher decodes before it parses quotes."""
    return "'" + text.translate(_ESCAPES).replace("\\\\u", "\\\\' + 'u") + "'"
