"""Selects representative facts per community: of its strongest members, or linking members."""

import numpy as np

from clew.graph.csr import Csr, csr
from clew.graph.forest import Floats, Forest, Ints
from clew.view import View

_TOGETHER = 0.5  # added weight for each further member a fact links
_AGAIN = 0.3  # subtracted for each further fact of the same member


def speaking(view: View, forest: Forest, most: int) -> Csr:
    """Return community → at most `most` weighted facts; parents take turns among children."""
    links = view.links("entity_fact")
    community = np.repeat(np.arange(len(forest)), forest.entities.degrees())
    entity, fit = forest.entities.columns.astype(np.int64), forest.entities.weights
    which, edge = links.edges_of(entity)
    fact = links.columns[edge].astype(np.int64)
    owner, fact, weight = _weighed(view, community[which], fact, (entity[which], fit[which]))
    found = _best(len(forest), owner, fact, weight, most)
    return _with_upper(forest, found, most)


def _weighed(
    view: View, community: Ints, fact: Ints, member: tuple[Ints, Floats]
) -> tuple[Ints, Ints, Floats]:
    """Weigh each (community, fact) by the members it links and the score of the best one."""
    node, score = member
    width = max(view.count("fact"), 1)
    key = community * width + fact
    order = np.lexsort((node, -score, key))
    keys, first, linked = np.unique(key[order], return_index=True, return_counts=True)
    community, fact, best = keys // width, keys % width, order[first]
    top = np.full(int(community.max(initial=0)) + 1, 1e-9, np.float32)
    np.maximum.at(top, community, score[best])
    weight = score[best] / top[community] + _TOGETHER * np.minimum(linked - 1, 2)
    # Facts of one member by weight: the first counts fully, each further one less.
    rank = _rank(community * np.int64(len(node) and int(node.max()) + 1) + node[best], -weight)
    return community, fact, (weight - _AGAIN * rank).astype(np.float32)


def _rank(group: Ints, cost: Floats) -> Ints:
    """Return the rank of each element within its group, lowest cost first."""
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
    """Add facts of upper levels: every child's first before any second, large children first."""
    sizes = forest.sizes()
    row = np.repeat(np.arange(len(forest)), found.degrees())
    column, weight = found.columns.astype(np.int64), found.weights
    for level in range(int(forest.level.max(initial=0)), 0, -1):
        lower = forest.level[row] == level
        up = forest.parent[row[lower]]
        rank = _rank(row[lower], -weight[lower]).astype(np.float32)
        share = sizes[row[lower]] / np.maximum(sizes[up], 1)
        added = _best(len(forest), up, column[lower], (share - rank).astype(np.float32), 2 * most)
        added = _once(added, most)
        row = np.concatenate([row, np.repeat(np.arange(len(forest)), added.degrees())])
        column = np.concatenate([column, added.columns.astype(np.int64)])
        weight = np.concatenate([weight, added.weights])
    return csr(len(forest), row, column, weight)


def _once(links: Csr, most: int) -> Csr:
    """Keep a fact of several children once, with its highest weight."""
    row = np.repeat(np.arange(len(links)), links.degrees())
    order = np.lexsort((-links.weights, links.columns, row))
    pair = np.stack([row[order], links.columns[order]])
    new = np.ones(len(order), np.bool_)
    new[1:] = (pair[:, 1:] != pair[:, :-1]).any(axis=0)
    kept = order[new]
    return _best(
        len(links), row[kept], links.columns[kept].astype(np.int64), links.weights[kept], most
    )
