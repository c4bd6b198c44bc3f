"""One page that draws the graph: no server, no library, nothing loaded from elsewhere."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.errors import StoreError
from clew.export.graph import Graph, Stated
from clew.view import View

_HUBS = 0.5  # of the nodes are those with the most facts; the others join them
_FACTS = 40  # told of each node
_EDGES = 6_000  # drawn in all
_PLACES = 3  # cited for each fact
_QUOTE = 300  # characters of a citation's quote


@dataclass(frozen=True)
class Page:
    """Writes the page of the `top` nodes with the most facts, or of those around one name."""

    top: int = 300
    around: str = ""
    title: str = "Clew"

    async def __call__(self, graph: Graph, file: Path) -> int:
        """Write it; return how many nodes it does not show."""
        view = graph.view
        chosen = _around(view, self.around, self.top) if self.around else _best(view, self.top)
        shown = await _content(graph, chosen)
        template = resources.files("clew.export").joinpath("page.html").read_text("utf-8")
        # `<` never stands in the JSON, so no name can end the script element.
        packed = json.dumps(shown, ensure_ascii=False).replace("<", "\\u003c")
        packed = packed.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
        title = self.title.replace("&", "&amp;").replace("<", "&lt;")
        head, tail = template.split("{{graph}}")
        page = head.replace("{{title}}", title) + packed + tail
        await asyncio.to_thread(file.write_text, page, encoding="utf-8")
        return view.count("entity") - len(chosen)


def _best(view: View, top: int) -> list[int]:
    """The entities with the most facts, and those that join most of them to each other."""
    members, facts = view.links("fact_entity"), view.links("entity_fact")
    hubs = _highest(facts.degrees(), round(top * _HUBS) or 1)
    if len(facts.degrees()) <= top:
        return [int(at) for at in _highest(facts.degrees(), top)]
    _, edges = facts.edges_of(hubs)
    _, ends = members.edges_of(facts.columns[edges].astype(np.int64))
    met = np.bincount(members.columns[ends], minlength=len(facts.degrees()))
    met[hubs] = 0
    bridges = _highest(met, top - len(hubs))
    return [*hubs.tolist(), *bridges[met[bridges] > 0].tolist()]


def _highest(numbers: NDArray[np.integer], count: int) -> NDArray[np.int64]:
    """Where the highest numbers are, the first of equal ones first."""
    found: NDArray[np.int64] = np.lexsort((np.arange(len(numbers)), -numbers))[:count]
    return found


def _around(view: View, name: str, top: int) -> list[int]:
    """An entity and those nearest to it, each ring by its number of facts."""
    [bearers] = view.named([name])
    if not len(bearers):
        raise StoreError(
            f"nothing is called {name!r} here; `clew search {name!r}` finds what is close"
        )
    members, facts = view.links("fact_entity"), view.links("entity_fact")
    degrees = facts.degrees()
    chosen = dict.fromkeys(int(at) for at in bearers[:top])
    ring = list(chosen)
    while ring and len(chosen) < top:
        near: set[int] = set()
        for at in ring:
            for fact in facts.row(at)[: top * 4]:
                near.update(int(m) for m in members.row(int(fact)))
        ring = sorted(near - chosen.keys(), key=lambda at: (-int(degrees[at]), at))
        ring = ring[: top - len(chosen)]
        chosen |= dict.fromkeys(ring)
    return list(chosen)


async def _content(graph: Graph, chosen: Sequence[int]) -> dict[str, Any]:
    view = graph.view
    found = await graph.named(chosen)
    place = {at: number for number, at in enumerate(chosen)}
    links = view.links("entity_fact")
    degrees = links.degrees()
    nodes = []
    for at in chosen:
        entity = found[at]
        nodes.append(
            {
                "name": entity.name,
                "type": entity.type,
                "description": entity.description[:_QUOTE],
                "degree": int(degrees[at]),
                "aliases": list(entity.aliases[:5]),
                "attributes": dict(list(entity.attributes.items())[:12]),
            }
        )
    wanted = _facts(view, chosen, place)
    stated = [one async for one in graph.facts(wanted)]
    facts, edges = [], []
    for number, one in enumerate(stated):
        ends = [place[at] for at in one.at if at in place]
        facts.append({"text": one.fact.text, "nodes": sorted(set(ends)), "cited": _cited(one)})
        edges += [[ends[0], other, number] for other in dict.fromkeys(ends[1:])]
    relations = [one.fact.relation for one in stated]
    return {
        "nodes": nodes,
        "edges": edges[:_EDGES],
        "facts": facts,
        "relations": relations,
        "all": view.count("entity"),
    }


def _facts(view: View, chosen: Sequence[int], place: dict[int, int]) -> list[int]:
    """Facts among the chosen first, then a few of each node's others."""
    members, links = view.links("fact_entity"), view.links("entity_fact")
    inside: dict[int, None] = {}
    others: dict[int, None] = {}
    for at in chosen:
        kept = 0
        for fact in map(int, links.row(at)[: _FACTS * 50]):
            ends = {int(m) for m in members.row(fact)}
            if len(ends & place.keys()) > 1 or ends == {at}:
                inside[fact] = None
            elif kept < _FACTS:
                others[fact] = None
                kept += 1
    return [*list(inside)[:_EDGES], *(fact for fact in others if fact not in inside)]


def _cited(stated: Stated) -> list[dict[str, Any]]:
    """The first places that say a fact, with the words that stand there."""
    return [
        {"doc": p.doc, "start": p.start, "end": p.end, "quote": p.quote[:_QUOTE]}
        for p in stated.said[:_PLACES]
    ]
