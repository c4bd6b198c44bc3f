"""Prize-collecting Steiner tree: connect the nodes of highest prize at the lowest edge cost."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from clew.graph.csr import Csr, Ints

MAX_NODES = 20_000  # nodes visited
MAX_DEGREE = 300  # a hub with more edges is reached but not passed through


@dataclass(frozen=True, slots=True)
class SteinerRegions:
    """Voronoi regions of the prized nodes, grown level by level."""

    origin: Ints
    parent: Ints
    depth: Ints
    bridges: list[tuple[int, int, int]]
    """(path length between two prized nodes, and the two nodes where their regions meet)"""


def prize_collecting_tree(
    links: Csr, prizes: Mapping[int, float], cost: float, max_depth: int = 6
) -> set[int]:
    """Return the nodes of a tree with a high sum of prizes minus `cost` per edge.

    Regions grow from all prized nodes at once; where they meet, the shortest paths form a spanning
    tree (Mehlhorn), and branches that cost more than their prizes are pruned. `links` are
    undirected; `max_depth` bounds how far a region grows, in edges.
    """
    if not prizes:
        return set()
    regions = _grow_regions(links, np.array(sorted(prizes), np.int64), max_depth)
    edges = _connect_regions(regions)
    return _choose_best_subtree(edges, prizes, cost)


def _grow_regions(links: Csr, seeds: Ints, max_depth: int) -> SteinerRegions:
    count = len(links)
    origin, parent = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    depth = np.zeros(count, np.int64)
    origin[seeds] = seeds
    frontier, seen = seeds, len(seeds)
    bridges: dict[tuple[int, int], tuple[int, int, int]] = {}
    for level in range(max_depth):
        passable = frontier[links.degrees_of(frontier) <= MAX_DEGREE] if level else frontier
        at, edge = links.edges_of(passable)
        source, target = passable[at], links.columns[edge].astype(np.int64)
        unreached = origin[target] < 0
        # Of several edges to a node, the first counts.
        new, first = np.unique(target[unreached], return_index=True)
        origin[new], parent[new] = origin[source[unreached][first]], source[unreached][first]
        depth[new] = level + 1
        meets = origin[target] != origin[source]
        _record_bridges(bridges, source[meets], target[meets], origin, depth)
        frontier, seen = new, seen + len(new)
        if not len(frontier) or seen > MAX_NODES:
            break
    return SteinerRegions(origin, parent, depth, sorted(bridges.values()))


def _record_bridges(
    bridges: dict[tuple[int, int], tuple[int, int, int]],
    source: Ints,
    target: Ints,
    origin: Ints,
    depth: Ints,
) -> None:
    length = depth[source] + depth[target] + 1
    order = np.lexsort((target, source, length))
    low = np.minimum(origin[source], origin[target])[order]
    high = np.maximum(origin[source], origin[target])[order]
    _, first = np.unique(low * len(origin) + high, return_index=True)
    for at in first.tolist():
        pair = (int(low[at]), int(high[at]))
        edge = order[at]
        found = (int(length[edge]), int(source[edge]), int(target[edge]))
        bridges[pair] = min(found, bridges.get(pair, found))


def _connect_regions(regions: SteinerRegions) -> set[tuple[int, int]]:
    """Return the edges of a spanning forest over the regions, shortest bridges first (Kruskal)."""
    root: dict[int, int] = {}

    def top(node: int) -> int:
        while root.get(node, node) != node:
            node = root[node]
        return node

    edges: set[tuple[int, int]] = set()
    for _, one, other in regions.bridges:
        a, b = top(int(regions.origin[one])), top(int(regions.origin[other]))
        if a == b:
            continue
        root[a] = b
        edges.add((min(one, other), max(one, other)))
        for node in (one, other):
            while (up := int(regions.parent[node])) >= 0:
                edges.add((min(node, up), max(node, up)))
                node = up
    return edges


def _choose_best_subtree(
    edges: set[tuple[int, int]], prizes: Mapping[int, float], cost: float
) -> set[int]:
    """Return the nodes of the subtree with the highest prizes minus costs."""
    neighbours: dict[int, list[int]] = defaultdict(list)
    for one, other in sorted(edges):
        neighbours[one].append(other)
        neighbours[other].append(one)
    best, chosen = 0.0, set[int]()
    left = set(neighbours) | set(prizes)
    while left:
        start = min(left)
        tree = _traverse_tree(neighbours, start)
        left -= set(tree)
        value, kept = _prune_tree(tree, prizes, cost)
        if value > best:
            best, chosen = value, kept
    return chosen


def _traverse_tree(neighbours: Mapping[int, list[int]], start: int) -> dict[int, int]:
    """Return node → parent (-1 for the start) in breadth-first order."""
    parent = {start: -1}
    for node in (order := [start]):
        for other in neighbours.get(node, ()):
            if other not in parent:
                parent[other] = node
                order.append(other)
    return parent


def _prune_tree(
    tree: Mapping[int, int], prizes: Mapping[int, float], cost: float
) -> tuple[float, set[int]]:
    """Return the highest value of a connected part of one tree, and its nodes."""
    value = {node: prizes.get(node, 0.0) for node in tree}
    children: dict[int, list[int]] = defaultdict(list)
    for node in reversed(tree):
        parent = tree[node]
        if parent >= 0 and value[node] > cost:
            value[parent] += value[node] - cost
            children[parent].append(node)
    top = max(value, key=lambda node: (value[node], -node))
    kept = [top]
    for node in kept:
        kept += children[node]
    return value[top], set(kept)
