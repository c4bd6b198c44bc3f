"""Selects communities to merge: members fit the other as well as their own (Youtu eq. 7)."""

from collections.abc import Iterator

import numpy as np

from clew.graph.cluster.perception import Scene, affinities_in, blocks, highest
from clew.graph.cluster.ties import overlap, some_rows, tally
from clew.graph.cluster.vectors import Doubles, Floats, Ints, group_sums
from clew.graph.csr import distinct, spread

_MEMBERS = 1 << 19  # members scored against another community at once


def mergeable(scene: Scene, labels: Ints) -> tuple[Ints, Ints, Doubles]:
    """Return disjoint pairs to merge and their scores, best first, within the size limit."""
    how = scene.how
    one, other = _pairs(scene.centroids, how.candidates)
    if how.max_size is not None:
        fits = scene.sizes[one] + scene.sizes[other] <= how.max_size
        one, other = one[fits], other[fits]
    if not len(one):
        return one, other, np.zeros(0)
    if how.rule == "expected":
        score = gaps(scene, labels, one, other)
        cost, wanted = score, score < how.threshold
    else:
        score = centre_similarity(scene, affinities_in(scene, labels)[1], one, other)
        cost, wanted = -score, score >= how.threshold
    order = np.lexsort((other, one, cost))
    picked = _disjoint(one, other, order[wanted[order]], len(scene.sizes))
    return one[picked], other[picked], score[picked]


def gaps(scene: Scene, labels: Ints, one: Ints, other: Ints) -> Doubles:
    """Return how much better members fit their own community on average (eq. 7).

    The larger direction counts; the mean cosine has a closed form, the overlap is counted.
    """
    sizes = scene.sizes
    order, begin = np.argsort(labels, kind="stable"), np.cumsum(sizes) - sizes
    units = group_sums(scene.vectors, labels, len(sizes), scene.inverse) / sizes[:, None]
    cosine = scene.how.semantic * (units @ scene.centroids.T.astype(np.float64))
    own = np.zeros(len(sizes))
    for rows in blocks(np.arange(len(labels))):
        fit = scene.relational(rows, labels[rows])
        own += np.bincount(labels[rows], weights=fit, minlength=len(sizes))
    own = own / sizes + np.diag(cosine)
    found: Doubles = np.empty((2, len(one)))
    for direction, (own_side, other_side) in enumerate(((one, other), (other, one))):
        found[direction] = own[own_side] - cosine[own_side, other_side]
        for part in _portions(sizes[own_side]):
            which, at = spread(begin[own_side[part]], begin[own_side[part]] + sizes[own_side[part]])
            fit = scene.relational(order[at], other_side[part][which])
            found[direction, part] -= np.bincount(which, weights=fit) / sizes[own_side[part]]
    larger: Doubles = found.max(axis=0)
    return larger


def centre_similarity(scene: Scene, centres: Ints, one: Ints, other: Ints) -> Doubles:
    """Return the similarity of the centres of each pair of communities."""
    units = scene.vectors[centres] * scene.inverse[centres][:, None]
    count = len(centres)
    counts = tally(some_rows(scene.evidence, centres), np.arange(count), count, scene.how.profile)
    shared = overlap(scene.evidence, centres[one], counts, other)
    cosine: Doubles = np.einsum("ij,ij->i", units[one], units[other]).astype(np.float64)
    return scene.how.relational * shared + scene.how.semantic * cosine


def _pairs(centroids: Floats, candidates: int) -> tuple[Ints, Ints]:
    """Pair each community with its nearest ones, the lower number first."""
    count = len(centroids)
    if count < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    near = []
    for rows in blocks(np.arange(count)):
        cosine = centroids[rows] @ centroids.T
        cosine[np.arange(len(rows)), rows] = -2  # nothing merges with itself
        near.append(highest(cosine, min(candidates, count - 1)))
    other = np.concatenate(near)
    one, other = np.repeat(np.arange(count), other.shape[1]), other.ravel()
    distinct_pair = one != other
    low, high = np.minimum(one, other)[distinct_pair], np.maximum(one, other)[distinct_pair]
    keys = distinct(low * count + high)
    return keys // count, keys % count


def _disjoint(one: Ints, other: Ints, order: Ints, count: int) -> Ints:
    """Select pairs in order, skipping those with a community already taken."""
    taken, chosen = np.zeros(count, np.bool_), []
    for at in order.tolist():
        if not (taken[one[at]] or taken[other[at]]):
            taken[one[at]] = taken[other[at]] = True
            chosen.append(at)
    return np.array(chosen, np.int64)


def _portions(sizes: Ints) -> Iterator[Ints]:
    """Yield runs of pairs with at most about `_MEMBER_BLOCK` members in total."""
    run = (np.cumsum(sizes) - sizes) // _MEMBERS
    for begin, end in zip(*_runs(run), strict=True):
        yield np.arange(begin, end)


def _runs(numbers: Ints) -> tuple[Ints, Ints]:
    begins = np.flatnonzero(np.diff(numbers, prepend=-1))
    return begins, np.append(begins[1:], len(numbers))
