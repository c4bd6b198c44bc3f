"""JSON lines: one object per entity, fact and community; nothing is left out."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from clew.export.graph import Community, Graph, Stated
from clew.types import Entity


async def write_jsonl(graph: Graph, file: Path) -> int:
    """Write everything; return the number of facts that had no place (none)."""
    with file.open("w", encoding="utf-8", newline="\n") as out:
        out.write(_line({"kind": "meta", "format": "clew-graph", "version": 1}))
        async for _, entity in graph.entities():
            out.write(_line(_entity(entity)))
        async for stated in graph.facts():
            out.write(_line(_fact(stated)))
        apart = await graph.apart()
        for community in graph.communities:
            out.write(_line(_community(community, apart)))
    return 0


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"


def _entity(entity: Entity) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": "entity", "id": entity.id, "name": entity.name}
    found |= {"type": entity.type, "description": entity.description}
    found |= {"aliases": list(entity.aliases), "attributes": dict(entity.attributes)}
    return found | {"support": entity.support}


def _fact(stated: Stated) -> dict[str, Any]:
    fact = stated.fact
    found: dict[str, Any] = {"kind": "fact", "id": fact.id}
    if stated.triple:
        found |= dict(zip(("head", "relation", "tail"), stated.triple, strict=True))
    else:
        found |= {"clew_members": [list(one) for one in stated.members], "relation": fact.relation}
    found |= {"text": fact.text, "weight": fact.weight, "description": fact.description}
    return found | {
        "keywords": list(fact.keywords),
        "support": fact.support,
        "said": [{"doc": p.doc, "start": p.start, "end": p.end} for p in stated.said],
    }


def _community(community: Community, apart: Mapping[int, str]) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": "community", **asdict(community)}
    if places := found.pop("at"):
        members = zip(places, community.members, strict=True)
        found["members"] = [apart.get(at, name) for at, name in members]
    return found
