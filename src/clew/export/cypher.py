"""Export a Cypher script: entities as `:Entity`, facts as `:FACT` with the relation a property.

Names and relations are only written as string literals, never as labels or types, so that no name
can inject a command.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TextIO

from clew.export.graph import ExportedFact, ExportGraph

_ROWS_PER_STATEMENT = 500  # per statement
_ESCAPES = str.maketrans(
    {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
)
_ENTITY_STATEMENT = (
    "MERGE (e:Entity {name: row.name}) SET e.type = row.type, e.description = row.description, "
    "e.aliases = row.aliases, e.attributes = row.attributes"
)
_TRIPLE_STATEMENT = (
    "MATCH (h:Entity {name: row.head}) MATCH (t:Entity {name: row.tail}) "
    "MERGE (h)-[f:FACT {id: row.id}]->(t) SET f.relation = row.relation, f.text = row.text, "
    "f.weight = row.weight, f.description = row.description, f.said = row.said"
)
_NARY_STATEMENT = (
    "MERGE (f:Fact {id: row.id}) SET f.relation = row.relation, f.text = row.text, "
    "f.weight = row.weight, f.description = row.description, f.said = row.said "
    "WITH f, row UNWIND row.members AS member MATCH (e:Entity {name: member.name}) "
    "MERGE (f)-[:MEMBER {role: member.role}]->(e)"
)
CypherValue = str | float | list[str] | list[dict[str, str]]


async def write_cypher(graph: ExportGraph, file: Path) -> int:
    """Write a script for `cypher-shell -f`; running it twice gives the same graph."""
    with file.open("w", encoding="utf-8", newline="\n") as out:
        out.write(
            "CREATE CONSTRAINT entity_name IF NOT EXISTS FOR (e:Entity) REQUIRE e.name IS UNIQUE;\n"
        )
        rows = _StatementWriter(out, _ENTITY_STATEMENT)
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
        edges, nary = (
            _StatementWriter(out, _TRIPLE_STATEMENT),
            _StatementWriter(out, _NARY_STATEMENT),
        )
        async for fact in graph.facts():
            if fact.triple:
                edges.add(
                    {"head": fact.triple[0], "tail": fact.triple[2], **_fact_properties(fact)}
                )
            else:
                members: list[dict[str, str]] = [{"name": n, "role": r} for n, r in fact.members]
                nary.add({"members": members, **_fact_properties(fact)})
        edges.flush()
        nary.flush()
    return 0


def _fact_properties(exported: ExportedFact) -> dict[str, CypherValue]:
    fact = exported.fact
    return {
        "id": fact.id,
        "relation": fact.relation,
        "text": fact.text,
        "weight": fact.weight,
        "description": fact.description,
        "said": [place.label for place in exported.sources],
    }


class _StatementWriter:
    """Collects rows and writes them in batches of one statement."""

    def __init__(self, out: TextIO, statement: str) -> None:
        self._out = out
        self._statement = statement
        self._held: list[str] = []

    def add(self, row: Mapping[str, CypherValue]) -> None:
        self._held.append(_format_map(row))
        if len(self._held) >= _ROWS_PER_STATEMENT:
            self.flush()

    def flush(self) -> None:
        if self._held:
            rows = ",\n".join(self._held)
            self._out.write(f"UNWIND [\n{rows}\n] AS row\n{self._statement};\n")
            self._held = []


def _format_map(row: Mapping[str, CypherValue]) -> str:
    return "{" + ", ".join(f"{name}: {_format_value(cell)}" for name, cell in row.items()) + "}"


def _format_value(cell: CypherValue) -> str:
    if isinstance(cell, str):
        return quote_string(cell)
    if isinstance(cell, float):
        return repr(cell).replace("e+", "e")  # not every Cypher grammar has a plus in exponents
    return "[" + ", ".join(_format_items(cell)) + "]"


def _format_items(cells: Iterable[str | dict[str, str]]) -> Iterator[str]:
    for cell in cells:
        yield quote_string(cell) if isinstance(cell, str) else _format_map(cell)


def quote_string(text: str) -> str:
    """Quote a Cypher string; never writes `\\u`, which Cypher decodes before it parses quotes."""
    return "'" + text.translate(_ESCAPES).replace("\\\\u", "\\\\' + 'u") + "'"
