"""Selects communities to merge: members fit the other as well as their own (Youtu eq. 7)."""

from collections.abc import Iterator

import numpy as np

from clew.graph.cluster.perception import (
    CommunityProfiles,
    affinities_from_profiles,
    iterate_blocks,
    top_columns,
)
from clew.graph.cluster.ties import count_by_community, jaccard_overlap, select_rows
from clew.graph.cluster.vectors import Doubles, Floats, Ints, group_sums
from clew.graph.csr import expand_ranges, sorted_unique

_MEMBER_BLOCK = 1 << 19  # members scored against another community at once


def select_merges(scene: CommunityProfiles, labels: Ints) -> tuple[Ints, Ints, Doubles]:
    """Return disjoint pairs to merge and their scores, best first, within the size limit."""
    how = scene.how
    one, other = _nearest_pairs(scene.centroids, how.candidates)
    if how.max_size is not None:
        fits = scene.sizes[one] + scene.sizes[other] <= how.max_size
        one, other = one[fits], other[fits]
    if not len(one):
        return one, other, np.zeros(0)
    if how.rule == "expected":
        score = compute_gaps(scene, labels, one, other)
        cost, wanted = score, score < how.threshold
    else:
        score = centre_similarity(scene, affinities_from_profiles(scene, labels)[1], one, other)
        cost, wanted = -score, score >= how.threshold
    order = np.lexsort((other, one, cost))
    picked = _select_disjoint(one, other, order[wanted[order]], len(scene.sizes))
    return one[picked], other[picked], score[picked]


def compute_gaps(scene: CommunityProfiles, labels: Ints, one: Ints, other: Ints) -> Doubles:
    """Return how much better members fit their own community on average (eq. 7).

    The larger direction counts; the mean cosine has a closed form, the overlap is counted.
    """
    sizes = scene.sizes
    order, begin = np.argsort(labels, kind="stable"), np.cumsum(sizes) - sizes
    units = group_sums(scene.vectors, labels, len(sizes), scene.inverse) / sizes[:, None]
    cosine = scene.how.semantic * (units @ scene.centroids.T.astype(np.float64))
    own = np.zeros(len(sizes))
    for rows in iterate_blocks(np.arange(len(labels))):
        fit = scene.relational_score(rows, labels[rows])
        own += np.bincount(labels[rows], weights=fit, minlength=len(sizes))
    own = own / sizes + np.diag(cosine)
    found: Doubles = np.empty((2, len(one)))
    for direction, (own_side, other_side) in enumerate(((one, other), (other, one))):
        found[direction] = own[own_side] - cosine[own_side, other_side]
        for part in _split_by_size(sizes[own_side]):
            which, at = expand_ranges(
                begin[own_side[part]], begin[own_side[part]] + sizes[own_side[part]]
            )
            fit = scene.relational_score(order[at], other_side[part][which])
            found[direction, part] -= np.bincount(which, weights=fit) / sizes[own_side[part]]
    larger: Doubles = found.max(axis=0)
    return larger


def centre_similarity(scene: CommunityProfiles, centres: Ints, one: Ints, other: Ints) -> Doubles:
    """Return the similarity of the centres of each pair of communities."""
    units = scene.vectors[centres] * scene.inverse[centres][:, None]
    count = len(centres)
    counts = count_by_community(
        select_rows(scene.evidence, centres), np.arange(count), count, scene.how.profile
    )
    shared = jaccard_overlap(scene.evidence, centres[one], counts, other)
    cosine: Doubles = np.einsum("ij,ij->i", units[one], units[other]).astype(np.float64)
    return scene.how.relational * shared + scene.how.semantic * cosine


def _nearest_pairs(centroids: Floats, candidates: int) -> tuple[Ints, Ints]:
    """Pair each community with its nearest ones, the lower number first."""
    count = len(centroids)
    if count < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    near = []
    for rows in iterate_blocks(np.arange(count)):
        cosine = centroids[rows] @ centroids.T
        cosine[np.arange(len(rows)), rows] = -2  # nothing merges with itself
        near.append(top_columns(cosine, min(candidates, count - 1)))
    other = np.concatenate(near)
    one, other = np.repeat(np.arange(count), other.shape[1]), other.ravel()
    distinct_pair = one != other
    low, high = np.minimum(one, other)[distinct_pair], np.maximum(one, other)[distinct_pair]
    keys = sorted_unique(low * count + high)
    return keys // count, keys % count


def _select_disjoint(one: Ints, other: Ints, order: Ints, count: int) -> Ints:
    """Select pairs in order, skipping those with a community already taken."""
    taken, chosen = np.zeros(count, np.bool_), []
    for at in order.tolist():
        if not (taken[one[at]] or taken[other[at]]):
            taken[one[at]] = taken[other[at]] = True
            chosen.append(at)
    return np.array(chosen, np.int64)


def _split_by_size(sizes: Ints) -> Iterator[Ints]:
    """Yield runs of pairs with at most about `_MEMBER_BLOCK` members in total."""
    run = (np.cumsum(sizes) - sizes) // _MEMBER_BLOCK
    for begin, end in zip(*_run_bounds(run), strict=True):
        yield np.arange(begin, end)


def _run_bounds(numbers: Ints) -> tuple[Ints, Ints]:
    begins = np.flatnonzero(np.diff(numbers, prepend=-1))
    return begins, np.append(begins[1:], len(numbers))
