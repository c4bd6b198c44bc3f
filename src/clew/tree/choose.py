"""Which facts speak for a community: those of its strongest members, those that join members."""

import numpy as np

from clew.graph.csr import Csr, csr
from clew.graph.forest import Floats, Forest, Ints
from clew.view import View

_TOGETHER = 0.5  # a fact that joins one more member counts so much more
_AGAIN = 0.3  # each further fact of the same member counts so much less


def speaking(view: View, forest: Forest, most: int) -> Csr:
    """Community → at most so many facts, weighed; upper ones take turns among those below."""
    links = view.links("entity_fact")
    community = np.repeat(np.arange(len(forest)), forest.entities.degrees())
    entity, fit = forest.entities.columns.astype(np.int64), forest.entities.weights
    which, edge = links.edges_of(entity)
    fact = links.columns[edge].astype(np.int64)
    home, fact, weight = _weighed(view, community[which], fact, (entity[which], fit[which]))
    found = _best(len(forest), home, fact, weight, most)
    return _with_upper(forest, found, most)


def _weighed(
    view: View, home: Ints, fact: Ints, member: tuple[Ints, Floats]
) -> tuple[Ints, Ints, Floats]:
    """One row a (community, fact): how many members it joins, and how strong the best is."""
    who, fit = member
    width = max(view.count("fact"), 1)
    key = home * width + fact
    order = np.lexsort((who, -fit, key))
    keys, first, joins = np.unique(key[order], return_index=True, return_counts=True)
    home, fact, best = keys // width, keys % width, order[first]
    top = np.full(int(home.max(initial=0)) + 1, 1e-9, np.float32)
    np.maximum.at(top, home, fit[best])
    weight = fit[best] / top[home] + _TOGETHER * np.minimum(joins - 1, 2)
    # Facts of one member in the order of their weight: the first counts fully, the next less.
    rank = _rank(home * np.int64(len(who) and int(who.max()) + 1) + who[best], -weight)
    return home, fact, (weight - _AGAIN * rank).astype(np.float32)


def _rank(group: Ints, cost: Floats) -> Ints:
    """The place of each within its group, the least cost first."""
    order = np.lexsort((np.arange(len(group)), cost, group))
    sorted_group = group[order]
    begin = np.flatnonzero(np.diff(sorted_group, prepend=sorted_group[:1] - 1))
    place = np.arange(len(group)) - np.repeat(begin, np.diff(np.append(begin, len(group))))
    found = np.empty(len(group), np.int64)
    found[order] = place
    return found


def _best(rows: int, row: Ints, column: Ints, weight: Floats, most: int) -> Csr:
    keep = _rank(row, -weight) < most
    return csr(rows, row[keep], column[keep], weight[keep])


def _with_upper(forest: Forest, found: Csr, most: int) -> Csr:
    """Every child's first fact before any child's second, larger children first."""
    sizes = forest.sizes()
    row = np.repeat(np.arange(len(forest)), found.degrees())
    column, weight = found.columns.astype(np.int64), found.weights
    for level in range(int(forest.level.max(initial=0)), 0, -1):
        lower = forest.level[row] == level
        up = forest.parent[row[lower]]
        turn = _rank(row[lower], -weight[lower]).astype(np.float32)
        share = sizes[row[lower]] / np.maximum(sizes[up], 1)
        fresh = _best(len(forest), up, column[lower], (share - turn).astype(np.float32), 2 * most)
        fresh = _once(fresh, most)
        row = np.concatenate([row, np.repeat(np.arange(len(forest)), fresh.degrees())])
        column = np.concatenate([column, fresh.columns.astype(np.int64)])
        weight = np.concatenate([weight, fresh.weights])
    return csr(len(forest), row, column, weight)


def _once(links: Csr, most: int) -> Csr:
    """A fact that two children chose counts once, with its higher weight."""
    row = np.repeat(np.arange(len(links)), links.degrees())
    order = np.lexsort((-links.weights, links.columns, row))
    pair = np.stack([row[order], links.columns[order]])
    new = np.ones(len(order), np.bool_)
    new[1:] = (pair[:, 1:] != pair[:, :-1]).any(axis=0)
    kept = order[new]
    return _best(
        len(links), row[kept], links.columns[kept].astype(np.int64), links.weights[kept], most
    )
