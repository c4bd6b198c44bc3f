"""Edges between similar names, of which a change costs what it changed.

Many vectors are compared within cells: a pivot is one name in `PER_CELL`, chosen by a hash of what
it says, and a vector belongs to the cells of its nearest pivots. So which pairs are compared does
not depend on the order in which names came. What was found is kept; later only names that are new,
or that moved to another cell, are compared, and the result is the same as if all were.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, Floats, Ints, Mask, build_csr, isin_sorted, sorted_unique

EXACT = 4096  # up to this many vectors, all pairs are compared
NEAREST_PIVOTS = 3  # pivots whose cells a vector belongs to
PER_CELL = 256  # vectors per pivot, on average
_BLOCK_ROWS = 2048  # vectors compared at a time
_FEW = 24  # vectors that are compared without reading all others of a cell
_DIGITS = 5  # of a cosine: the others depend on what it is computed beside
_SCALE = 10.0**_DIGITS
_HASH_FACTOR = 0x9E3779B97F4A7C15
_RANK_BITS = 32


@dataclass(frozen=True, slots=True)
class NamedVectors:
    """Names with unit vectors, ascending by key."""

    keys: Ints
    codes: Ints
    """A number of each name that depends on what it says; equals are ordered by it."""
    marks: Ints
    """A number that changes if the vector of a name does."""
    read: Callable[[Ints], Floats]
    """The vectors at some positions."""
    compare: Callable[[Floats, Ints], Floats]
    """Cosines of a few vectors with those at some positions: quicker than to read these."""


@dataclass(frozen=True, slots=True)
class SimilarNames:
    """For each name its cells and the best of the names that are similar to it."""

    keys: Ints
    marks: Ints
    cells: Ints
    """Names × nearest pivots: the codes of these, best first."""
    reach: Floats
    """Cosine with the last of these pivots."""
    others: NDArray[np.int32]
    """Names × most: positions of similar names, best first; -1 for none."""
    cosines: Floats
    """Parallel to `others`."""
    has_more: Mask
    """Whether there were more of them."""

    def edges(self) -> Csr:
        """Join similar names, both ways, if one of both has the other among its best."""
        count = len(self.keys)
        row, column = np.nonzero(self.others >= 0)
        other = self.others[row, column].astype(np.int64)
        one, two = np.minimum(row, other), np.maximum(row, other)
        pair, first = np.unique(one * max(count, 1) + two, return_index=True)
        one, two, weight = pair // max(count, 1), pair % max(count, 1), self.cosines[row, column]
        weight = np.minimum(weight[first], 1)
        source, target = np.concatenate([one, two]), np.concatenate([two, one])
        return build_csr(count, source, target, np.concatenate([weight, weight]))


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Similar names: the one whose list it is, the other, and their cosine."""

    source: Ints
    target: Ints
    cosine: Floats


def find_similar_names(
    given: NamedVectors, least: float, most: int, known: SimilarNames | None = None
) -> SimilarNames:
    """Find for each name up to `most` others with a cosine of at least `least`.

    `known` is what was found of other names, for the same `least` and `most`.
    """
    count = len(given.keys)
    if known is None or known.others.shape[1] != most or not _same_way(given, known):
        known = _nothing_known(most)
    before, now = _match(known, given)
    cells, reach, is_new = _assign_cells(given, known, before, now)
    kept, asked = _keep_pairs(known, before, now, is_new)
    found = [kept, *_compare_in_cells(given, cells, (is_new, asked), least, most)]
    pairs = _Pairs(*(np.concatenate([getattr(p, f.name) for p in found]) for f in fields(_Pairs)))
    others, cosines, has_more = _take_best(pairs, given.codes, most)
    was_cut = np.zeros(count, np.bool_)
    was_cut[now] = known.has_more[before]
    has_more |= was_cut & ~asked
    return SimilarNames(given.keys, given.marks, cells, reach, others, cosines, has_more)


def _nothing_known(most: int) -> SimilarNames:
    none, numbers = np.zeros(0, np.int64), np.zeros((0, most), np.int32)
    cells = np.zeros((0, NEAREST_PIVOTS), np.int64)
    reach, cosines = np.zeros(0, np.float32), np.zeros((0, most), np.float32)
    return SimilarNames(none, none, cells, reach, numbers, cosines, np.zeros(0, np.bool_))


def _same_way(given: NamedVectors, known: SimilarNames) -> bool:
    """Whether the known names were in cells, or all in one, as those now are."""
    return (len(given.keys) <= EXACT) == (len(known.keys) <= EXACT)


def _match(known: SimilarNames, given: NamedVectors) -> tuple[Ints, Ints]:
    """Positions, before and now, of the names that stay as they were."""
    _, before, now = np.intersect1d(known.keys, given.keys, assume_unique=True, return_indices=True)
    same = known.marks[before] == given.marks[now]
    return before[same], now[same]


# -- cells


def _assign_cells(
    given: NamedVectors, known: SimilarNames, before: Ints, now: Ints
) -> tuple[Ints, Floats, Mask]:
    """The cells of each name, its cosine with the last pivot, and whether they are others now."""
    count = len(given.keys)
    cells = np.zeros((count, NEAREST_PIVOTS), np.int64)
    reach, is_new = np.zeros(count, np.float32), np.ones(count, np.bool_)
    cells[now], reach[now], is_new[now] = known.cells[before], known.reach[before], False
    pivots = _choose_pivots(given) if count > EXACT else np.zeros(0, np.int64)
    if len(pivots) < NEAREST_PIVOTS:
        cells[:] = 0  # one cell has all
        return cells, reach, is_new
    held = sorted_unique(known.cells.ravel())
    codes = given.codes[pivots]
    moved = is_new | ~isin_sorted(cells.ravel(), codes).reshape(cells.shape).all(axis=1)
    # A pivot that is nobody's is like a new one: it is compared again.
    added = pivots[~isin_sorted(codes, held)]
    if len(added) and not moved.all():
        moved |= _find_nearer(given, added, reach, np.flatnonzero(~moved))
    at = np.flatnonzero(moved)
    fresh, reach[at] = _find_pivots(given, pivots, at)
    is_new[at] |= (fresh != cells[at]).any(axis=1)
    cells[at] = fresh
    return cells, reach, is_new


def _choose_pivots(given: NamedVectors) -> Ints:
    """One in `PER_CELL` names, ascending by code, each code once."""
    mixed = given.codes.astype(np.uint64) * np.uint64(_HASH_FACTOR)
    chosen = np.flatnonzero((mixed >> np.uint64(32)) % np.uint64(PER_CELL) == 0)
    _, first = np.unique(given.codes[chosen], return_index=True)
    pivots: Ints = chosen[first]
    return pivots


def _find_nearer(given: NamedVectors, pivots: Ints, reach: Floats, at: Ints) -> Mask:
    """Mark those of the names at `at` to which one of these pivots is as near as their last."""
    marked, wanted = np.zeros(len(given.keys), np.bool_), given.read(pivots).T
    for some in _split(at):
        marked[some] = _round((given.read(some) @ wanted).max(axis=1)) >= reach[some]
    return marked


def _find_pivots(given: NamedVectors, pivots: Ints, at: Ints) -> tuple[Ints, Floats]:
    """The codes of the nearest pivots of names, of equals the smallest, and the last's cosine."""
    codes, vectors = given.codes[pivots], np.ascontiguousarray(given.read(pivots).T)
    cells, reach = np.zeros((len(at), NEAREST_PIVOTS), np.int64), np.zeros(len(at), np.float32)
    done = 0
    for some in _split(at):
        cosines = _round(given.read(some) @ vectors)
        best = _best_columns(cosines, NEAREST_PIVOTS)
        here = slice(done, done + len(some))
        cells[here] = codes[best]
        reach[here] = cosines[np.arange(len(some)), best[:, -1]]
        done = here.stop
    return cells, reach


def _best_columns(cosines: Floats, most: int) -> Ints:
    """The columns of the highest values of each row, best first; of equals the first."""
    rank = np.arange(cosines.shape[1], dtype=np.int64)
    packed = np.rint(cosines * _SCALE).astype(np.int64) << _RANK_BITS
    packed -= rank
    if packed.shape[1] > most:
        packed = np.partition(packed, packed.shape[1] - most, axis=1)[:, -most:]
    packed.sort(axis=1)
    found: Ints = (-packed[:, ::-1]) & ((1 << _RANK_BITS) - 1)
    return found


def _split(at: Ints) -> Iterator[Ints]:
    for begin in range(0, len(at), _BLOCK_ROWS):
        yield at[begin : begin + _BLOCK_ROWS]


def _round(cosines: Floats) -> Floats:
    found: Floats = np.round(cosines, _DIGITS)
    return found


# -- pairs


def _keep_pairs(known: SimilarNames, before: Ints, now: Ints, is_new: Mask) -> tuple[_Pairs, Mask]:
    """The known pairs of names that are as before, and the names to be compared with all again.

    Of a name that had more than were kept, and lost one of these, nobody knows which is next.
    """
    position = np.full(len(known.keys), -1, np.int64)
    position[before] = np.where(is_new[now], -1, now)
    others = known.others.astype(np.int64)
    is_held = others >= 0
    target = np.where(is_held, position[others] if len(position) else -1, -1)
    is_lost: Mask = np.any(is_held & (target < 0), axis=1)
    asked = is_new.copy()
    asked[now] |= known.has_more[before] & is_lost[before]
    row, column = np.nonzero(target >= 0)
    source = position[row]
    keep = source >= 0
    keep[keep] = ~asked[source[keep]]
    row, column, source = row[keep], column[keep], source[keep]
    return _Pairs(source, target[row, column], known.cosines[row, column]), asked


def _compare_in_cells(
    given: NamedVectors, cells: Ints, which: tuple[Mask, Mask], least: float, most: int
) -> Iterator[_Pairs]:
    """Compare names that are new or asked for with all that share a cell with them."""
    is_new, asked = which
    width = NEAREST_PIVOTS if cells.any() else 1
    members = np.repeat(np.arange(len(cells)), width)
    held = cells[:, :width].ravel()
    order = np.lexsort((given.codes[members], held))  # of a cell by code: so equals are ordered
    members, held = members[order], held[order]
    for cell in np.split(members, np.flatnonzero(np.diff(held)) + 1):
        mine = np.flatnonzero(asked[cell])
        if not len(mine) or len(cell) < 2:
            continue
        vectors = given.read(cell) if len(mine) > _FEW else None
        for some in _split(mine):
            if vectors is None:
                cosines = given.compare(given.read(cell[some]), cell)
            else:
                cosines = vectors[some] @ vectors.T
            cosines[np.arange(len(some)), some] = -1  # not with itself
            row, column, cosine = _select(cosines, least, most + 1)
            yield _Pairs(cell[some[row]], cell[column], cosine)
            # The others learn of the new ones.
            fresh, rest = np.flatnonzero(is_new[cell[some]]), np.flatnonzero(~asked[cell])
            if len(fresh) and len(rest):
                row, column, cosine = _select(cosines[np.ix_(fresh, rest)].T, least, most + 1)
                yield _Pairs(cell[rest[row]], cell[some[fresh[column]]], cosine)


def _select(cosines: Floats, least: float, most: int) -> tuple[Ints, Ints, Floats]:
    """Rows, columns and values of at least `least`, of a row the best; of equals the first."""
    row, column = np.nonzero(cosines >= least - 1 / _SCALE)
    value = _round(cosines[row, column])
    keep = value >= np.float32(least)
    row, column, value = row[keep], column[keep], value[keep]
    return _cut(row, column, value, most)


def _cut(row: Ints, rank: Ints, value: Floats, most: int) -> tuple[Ints, Ints, Floats]:
    """Keep the best `most` of each row, of equals those of the lowest rank."""
    counts = np.bincount(row)
    if not len(row) or int(counts.max()) <= most:
        return row, rank, value
    crowded = counts[row] > most
    keep = ~crowded
    at = np.flatnonzero(crowded)
    at = at[np.lexsort((rank[at], -value[at], row[at]))]
    place = np.arange(len(at)) - np.searchsorted(row[at], row[at], "left")
    keep[at[place < most]] = True
    return row[keep], rank[keep], value[keep]


def _take_best(pairs: _Pairs, codes: Ints, most: int) -> tuple[NDArray[np.int32], Floats, Mask]:
    """Each name's best others and their cosines, and whether there are more."""
    count = len(codes)
    rank = np.empty(count, np.int64)
    rank[np.argsort(codes, kind="stable")] = np.arange(count)
    _, first = np.unique(pairs.source * max(count, 1) + pairs.target, return_index=True)
    source, target, cosine = pairs.source[first], pairs.target[first], pairs.cosine[first]
    order = np.lexsort((rank[target], -cosine, source))
    source, target, cosine = source[order], target[order], cosine[order]
    place = np.arange(len(source)) - np.searchsorted(source, source, "left")
    others, cosines = np.full((count, most), -1, np.int32), np.zeros((count, most), np.float32)
    keep = place < most
    others[source[keep], place[keep]] = target[keep]
    cosines[source[keep], place[keep]] = cosine[keep]
    has_more = np.zeros(count, np.bool_)
    has_more[source[~keep]] = True
    return others, cosines, has_more
