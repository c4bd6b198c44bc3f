"""Selects representative facts per community: of its strongest members, or linking members."""

import numpy as np

from clew.graph.csr import Csr, build_csr
from clew.graph.forest import CommunityForest, Floats, Ints
from clew.view import View

_SHARED_FACT_BONUS = 0.5  # added weight for each further member a fact links
_REPEAT_PENALTY = 0.3  # subtracted for each further fact of the same member


def select_facts(view: View, forest: CommunityForest, most: int) -> Csr:
    """Return community → at most `most` weighted facts; parents take turns among children."""
    links = view.links("entity_fact")
    community = np.repeat(np.arange(len(forest)), forest.entities.degrees())
    entity, fit = forest.entities.columns.astype(np.int64), forest.entities.weights
    which, edge = links.edges_of(entity)
    fact = links.columns[edge].astype(np.int64)
    owner, fact, weight = _weigh_facts(view, community[which], fact, (entity[which], fit[which]))
    found = _keep_best(len(forest), owner, fact, weight, most)
    return _add_upper_levels(forest, found, most)


def _weigh_facts(
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
    weight = score[best] / top[community] + _SHARED_FACT_BONUS * np.minimum(linked - 1, 2)
    # Facts of one member by weight: the first counts fully, each further one less.
    rank = _rank_within_groups(
        community * np.int64(len(node) and int(node.max()) + 1) + node[best], -weight
    )
    return community, fact, (weight - _REPEAT_PENALTY * rank).astype(np.float32)


def _rank_within_groups(group: Ints, cost: Floats) -> Ints:
    """Return the rank of each element within its group, lowest cost first."""
    order = np.lexsort((np.arange(len(group)), cost, group))
    sorted_group = group[order]
    begin = np.flatnonzero(np.diff(sorted_group, prepend=sorted_group[:1] - 1))
    place = np.arange(len(group)) - np.repeat(begin, np.diff(np.append(begin, len(group))))
    found = np.empty(len(group), np.int64)
    found[order] = place
    return found


def _keep_best(rows: int, row: Ints, column: Ints, weight: Floats, most: int) -> Csr:
    keep = _rank_within_groups(row, -weight) < most
    return build_csr(rows, row[keep], column[keep], weight[keep])


def _add_upper_levels(forest: CommunityForest, found: Csr, most: int) -> Csr:
    """Add facts of upper levels: every child's first before any second, large children first."""
    sizes = forest.sizes()
    row = np.repeat(np.arange(len(forest)), found.degrees())
    column, weight = found.columns.astype(np.int64), found.weights
    for level in range(int(forest.level.max(initial=0)), 0, -1):
        lower = forest.level[row] == level
        up = forest.parent[row[lower]]
        rank = _rank_within_groups(row[lower], -weight[lower]).astype(np.float32)
        share = sizes[row[lower]] / np.maximum(sizes[up], 1)
        added = _keep_best(
            len(forest), up, column[lower], (share - rank).astype(np.float32), 2 * most
        )
        added = _drop_duplicates(added, most)
        row = np.concatenate([row, np.repeat(np.arange(len(forest)), added.degrees())])
        column = np.concatenate([column, added.columns.astype(np.int64)])
        weight = np.concatenate([weight, added.weights])
    return build_csr(len(forest), row, column, weight)


def _drop_duplicates(links: Csr, most: int) -> Csr:
    """Keep a fact of several children once, with its highest weight."""
    row = np.repeat(np.arange(len(links)), links.degrees())
    order = np.lexsort((-links.weights, links.columns, row))
    pair = np.stack([row[order], links.columns[order]])
    new = np.ones(len(order), np.bool_)
    new[1:] = (pair[:, 1:] != pair[:, :-1]).any(axis=0)
    kept = order[new]
    return _keep_best(
        len(links), row[kept], links.columns[kept].astype(np.int64), links.weights[kept], most
    )
