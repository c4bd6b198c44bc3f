"""Export JSON lines: one object per entity, fact and community, without loss."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from clew.export.graph import Community, ExportedFact, ExportGraph
from clew.types import Entity


async def write_jsonl(graph: ExportGraph, file: Path) -> int:
    """Write everything; return 0, the number of facts left out."""
    with file.open("w", encoding="utf-8", newline="\n") as out:
        out.write(_to_json_line({"kind": "meta", "format": "clew-graph", "version": 1}))
        async for _, entity in graph.entities():
            out.write(_to_json_line(_entity_row(entity)))
        async for fact in graph.facts():
            out.write(_to_json_line(_fact_row(fact)))
        names = await graph.disambiguated_names()
        for community in graph.communities:
            out.write(_to_json_line(_community_row(community, names)))
    return 0


def _to_json_line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"


def _entity_row(entity: Entity) -> dict[str, Any]:
    row: dict[str, Any] = {"kind": "entity", "id": entity.id, "name": entity.name}
    row |= {"type": entity.type, "description": entity.description}
    row |= {"aliases": list(entity.aliases), "attributes": dict(entity.attributes)}
    return row | {"support": entity.support}


def _fact_row(stated: ExportedFact) -> dict[str, Any]:
    fact = stated.fact
    row: dict[str, Any] = {"kind": "fact", "id": fact.id}
    if stated.triple:
        row |= dict(zip(("head", "relation", "tail"), stated.triple, strict=True))
    else:
        row |= {"clew_members": [list(one) for one in stated.members], "relation": fact.relation}
    row |= {"text": fact.text, "weight": fact.weight, "description": fact.description}
    return row | {
        "keywords": list(fact.keywords),
        "support": fact.support,
        "said": [{"doc": p.doc, "start": p.start, "end": p.end} for p in stated.sources],
    }


def _community_row(community: Community, renamed: Mapping[int, str]) -> dict[str, Any]:
    row: dict[str, Any] = {"kind": "community", **asdict(community)}
    if positions := row.pop("at"):
        members = zip(positions, community.members, strict=True)
        row["members"] = [renamed.get(at, name) for at, name in members]
    return row
