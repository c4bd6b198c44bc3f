"""The entity graph of a generation, built once and cached."""

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, Ints
from clew.graph.entity_graph import EntityGraph, build_entity_graph
from clew.graph.traverse import FactGraph
from clew.index.view import View
from clew.retrieve.labels import has_vectors

# With more relations than this, and embedded sentences, steps are scored by their sentences.
MAX_RELATION_LABELS = 512


def entity_graph(view: View) -> EntityGraph:
    """Return entities joined by facts, with parallel edges."""
    if "joined" not in view.memo:
        members = view.links("fact_entity")
        view.memo["joined"] = build_entity_graph(members, view.count("entity"))
    graph: EntityGraph = view.memo["joined"]
    return graph


def neighbour_graph(view: View) -> Csr:
    """Return the entity graph with parallel edges merged and counted as weight."""
    if "merged" not in view.memo:
        view.memo["merged"] = entity_graph(view).links.sum_duplicates()
    links: Csr = view.memo["merged"]
    return links


def facts_between(view: View, one: int, other: int) -> NDArray[np.int32]:
    """Return the facts that join two entities."""
    graph = entity_graph(view)
    begin, end = int(graph.links.starts[one]), int(graph.links.starts[one + 1])
    first = begin + int(np.searchsorted(graph.links.columns[begin:end], other, "left"))
    last = begin + int(np.searchsorted(graph.links.columns[begin:end], other, "right"))
    return graph.facts[first:last]


def build_traversal(view: View, within: Ints | None = None) -> FactGraph:
    """Return the whole graph, or the part with the facts `within` (ascending), as steps."""
    names = len(view.arrays.get("relation_fact", ()))
    labels = view.relations
    if names > MAX_RELATION_LABELS and has_vectors(view, "fact"):
        labels = np.full(len(labels), -1, np.int32)
    facts, members = view.links("entity_fact"), view.links("fact_entity")
    return FactGraph(facts, members, labels, names, within)
