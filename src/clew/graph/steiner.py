"""A prize-collecting tree: joins the nodes worth most by edges that cost least."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr

Ints = NDArray[np.int64]

MOST = 20_000  # nodes that are looked at
BUSY = 300  # a node with more edges is reached but not passed through


@dataclass(frozen=True, slots=True)
class Grown:
    """Regions grown around the prized nodes, level by level."""

    origin: Ints
    parent: Ints
    depth: Ints
    bridges: list[tuple[int, int, int]]
    """(edges on the way between two prized nodes, and the two nodes where their regions meet)"""


def prized_tree(links: Csr, prizes: Mapping[int, float], cost: float, reach: int = 6) -> set[int]:
    """The nodes of a tree with a high sum of prizes minus `cost` per edge.

    Regions grow from all prized nodes at once; where they meet, the shortest ways are joined to a
    tree (Mehlhorn's), and branches that cost more than they bring are cut off. `links` are
    undirected; `reach` bounds how far a region grows.
    """
    if not prizes:
        return set()
    grown = _grow(links, np.array(sorted(prizes), np.int64), reach)
    edges = _spanning(grown)
    return _worth(edges, prizes, cost)


def _grow(links: Csr, seeds: Ints, reach: int) -> Grown:
    count = len(links)
    origin, parent = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    depth = np.zeros(count, np.int64)
    origin[seeds] = seeds
    front, seen = seeds, len(seeds)
    bridges: dict[tuple[int, int], tuple[int, int, int]] = {}
    for level in range(reach):
        open_ = front[links.degrees_of(front) <= BUSY] if level else front
        at, edge = links.edges_of(open_)
        source, target = open_[at], links.columns[edge].astype(np.int64)
        fresh = origin[target] < 0
        # Of several ways to a node, the first counts.
        new, first = np.unique(target[fresh], return_index=True)
        origin[new], parent[new] = origin[source[fresh][first]], source[fresh][first]
        depth[new] = level + 1
        meets = origin[target] != origin[source]
        _bridge(bridges, source[meets], target[meets], origin, depth)
        front, seen = new, seen + len(new)
        if not len(front) or seen > MOST:
            break
    return Grown(origin, parent, depth, sorted(bridges.values()))


def _bridge(
    bridges: dict[tuple[int, int], tuple[int, int, int]],
    source: Ints,
    target: Ints,
    origin: Ints,
    depth: Ints,
) -> None:
    """Keep the shortest meeting of every two regions."""
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


def _spanning(grown: Grown) -> set[tuple[int, int]]:
    """The edges of a tree over all regions that meet, shortest bridges first."""
    root: dict[int, int] = {}

    def top(node: int) -> int:
        while root.get(node, node) != node:
            node = root[node]
        return node

    edges: set[tuple[int, int]] = set()
    for _, one, other in grown.bridges:
        a, b = top(int(grown.origin[one])), top(int(grown.origin[other]))
        if a == b:
            continue
        root[a] = b
        edges.add((min(one, other), max(one, other)))
        for node in (one, other):
            while (up := int(grown.parent[node])) >= 0:
                edges.add((min(node, up), max(node, up)))
                node = up
    return edges


def _worth(edges: set[tuple[int, int]], prizes: Mapping[int, float], cost: float) -> set[int]:
    """The subtree that brings most: a branch stays where its prizes outweigh its edges."""
    near: dict[int, list[int]] = defaultdict(list)
    for one, other in sorted(edges):
        near[one].append(other)
        near[other].append(one)
    best, chosen = 0.0, set[int]()
    left = set(near) | set(prizes)
    while left:
        start = min(left)
        tree = _ordered(near, start)
        left -= set(tree)
        value, kept = _pruned(tree, prizes, cost)
        if value > best:
            best, chosen = value, kept
    return chosen


def _ordered(near: Mapping[int, list[int]], start: int) -> dict[int, int]:
    """Node → the node it was reached from (-1 for the first), in the order reached."""
    above = {start: -1}
    for node in (order := [start]):
        for other in near.get(node, ()):
            if other not in above:
                above[other] = node
                order.append(other)
    return above


def _pruned(
    tree: Mapping[int, int], prizes: Mapping[int, float], cost: float
) -> tuple[float, set[int]]:
    """The most a connected part of one tree is worth, and its nodes."""
    worth = {node: prizes.get(node, 0.0) for node in tree}
    below: dict[int, list[int]] = defaultdict(list)
    for node in reversed(tree):
        above = tree[node]
        if above >= 0 and worth[node] > cost:
            worth[above] += worth[node] - cost
            below[above].append(node)
    top = max(worth, key=lambda node: (worth[node], -node))
    kept = [top]
    for node in kept:
        kept += below[node]
    return worth[top], set(kept)
