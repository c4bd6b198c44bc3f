"""Export a self-contained HTML page that draws the graph, with the parts of the server's page.

`page/graph.js` and `page/graph.css` are built from `page/src/export.tsx` by `make page`.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.errors import StoreError
from clew.export.graph import ExportedFact, ExportGraph
from clew.index.view import View

_HUB_SHARE = 0.5  # share of nodes chosen by number of facts; the others connect these
_FACTS_PER_NODE = 40  # listed per node
_MAX_EDGES = 6_000  # drawn in total
_SOURCES_PER_FACT = 3  # cited per fact
_MAX_QUOTE_CHARS = 300  # characters of a citation's quote


@dataclass(frozen=True)
class GraphPage:
    """Writes a page of the `top` nodes with the most facts, or of those around one name."""

    top: int = 300
    around: str = ""
    title: str = "Clew"

    async def __call__(self, graph: ExportGraph, file: Path) -> int:
        """Write the page; return how many nodes are not shown."""
        view = graph.view
        chosen = (
            _select_neighbourhood(view, self.around, self.top)
            if self.around
            else _select_hubs(view, self.top)
        )
        shown = {"title": self.title, **await _build_page_data(graph, chosen)}
        parts = resources.files("clew.export")
        template = parts.joinpath("page.html").read_text("utf-8")
        script = parts.joinpath("page/graph.js").read_text("utf-8")
        style = parts.joinpath("page/graph.css").read_text("utf-8")
        # `<` is escaped in the JSON, so that no name can close the script element.
        packed = json.dumps(shown, ensure_ascii=False).replace("<", "\\u003c")
        packed = packed.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
        page = Template(template).substitute(
            title=escape(self.title),
            graph=packed,
            style=style,
            script=script.replace("</script", "<\\/script"),
        )
        await asyncio.to_thread(file.write_text, page, encoding="utf-8")
        return view.count("entity") - len(chosen)


def _select_hubs(view: View, top: int) -> list[int]:
    """Return the entities with the most facts, and those that connect most of them."""
    members, facts = view.links("fact_entity"), view.links("entity_fact")
    hubs = _top_positions(facts.degrees(), round(top * _HUB_SHARE) or 1)
    if len(facts.degrees()) <= top:
        return [int(at) for at in _top_positions(facts.degrees(), top)]
    _, edges = facts.edges_of(hubs)
    _, ends = members.edges_of(facts.columns[edges].astype(np.int64))
    links = np.bincount(members.columns[ends], minlength=len(facts.degrees()))
    links[hubs] = 0
    bridges = _top_positions(links, top - len(hubs))
    return [*hubs.tolist(), *bridges[links[bridges] > 0].tolist()]


def _top_positions(numbers: NDArray[np.integer], count: int) -> NDArray[np.int64]:
    """Return the positions of the highest numbers; ties by position."""
    found: NDArray[np.int64] = np.lexsort((np.arange(len(numbers)), -numbers))[:count]
    return found


def _select_neighbourhood(view: View, name: str, top: int) -> list[int]:
    """Return an entity and its nearest ones by breadth-first search, most facts first."""
    [named] = view.find_by_own_name([name])
    if not len(named):
        raise StoreError(f"no entity is named {name!r}; `clew search {name!r}` finds similar ones")
    members, facts = view.links("fact_entity"), view.links("entity_fact")
    degrees = facts.degrees()
    chosen = dict.fromkeys(int(at) for at in named[:top])
    ring = list(chosen)
    while ring and len(chosen) < top:
        neighbours: set[int] = set()
        for at in ring:
            for fact in facts.row(at)[: top * 4]:
                neighbours.update(int(m) for m in members.row(int(fact)))
        ring = sorted(neighbours - chosen.keys(), key=lambda at: (-int(degrees[at]), at))
        ring = ring[: top - len(chosen)]
        chosen |= dict.fromkeys(ring)
    return list(chosen)


async def _build_page_data(graph: ExportGraph, chosen: Sequence[int]) -> dict[str, Any]:
    view = graph.view
    entities = await graph.entities_at(chosen)
    number_of = {at: number for number, at in enumerate(chosen)}
    links = view.links("entity_fact")
    degrees = links.degrees()
    nodes = []
    for at in chosen:
        entity = entities[at]
        nodes.append(
            {
                "name": entity.name,
                "type": entity.type,
                "description": entity.description[:_MAX_QUOTE_CHARS],
                "degree": int(degrees[at]),
                "aliases": list(entity.aliases[:5]),
                "attributes": dict(list(entity.attributes.items())[:12]),
                "community": -1,
            }
        )
    positions = _select_facts(view, chosen, number_of)
    exported = [one async for one in graph.facts(positions)]
    facts, edges = [], []
    for number, one in enumerate(exported):
        ends = [number_of[at] for at in one.positions if at in number_of]
        shown = {"text": one.fact.text, "relation": one.fact.relation}
        facts.append({**shown, "nodes": sorted(set(ends)), "cited": _cite_sources(one)})
        edges += [[ends[0], other, number] for other in dict.fromkeys(ends[1:])]
    return {
        "nodes": nodes,
        "edges": edges[:_MAX_EDGES],
        "facts": facts,
        "communities": [],
        "all": view.count("entity"),
    }


def _select_facts(view: View, chosen: Sequence[int], number_of: dict[int, int]) -> list[int]:
    """Return the facts among the chosen entities, then a few others of each."""
    members, links = view.links("fact_entity"), view.links("entity_fact")
    inside: dict[int, None] = {}
    others: dict[int, None] = {}
    for at in chosen:
        kept = 0
        for fact in map(int, links.row(at)[: _FACTS_PER_NODE * 50]):
            ends = {int(m) for m in members.row(fact)}
            if len(ends & number_of.keys()) > 1 or ends == {at}:
                inside[fact] = None
            elif kept < _FACTS_PER_NODE:
                others[fact] = None
                kept += 1
    return [*list(inside)[:_MAX_EDGES], *(fact for fact in others if fact not in inside)]


def _cite_sources(stated: ExportedFact) -> list[dict[str, Any]]:
    """Return the first sources of a fact with their quotes."""
    return [
        {"doc": p.doc, "start": p.start, "end": p.end, "quote": p.quote[:_MAX_QUOTE_CHARS]}
        for p in stated.sources[:_SOURCES_PER_FACT]
    ]
