"""Sorting and updating sparse matrices: the same as doing it the plain way."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.graph.csr import Ints, argsort_pairs, build_csr, group_equals
from clew.graph.csr_update import (
    GONE,
    find_moves,
    find_places,
    moves_from_places,
    update_csr,
)
from clew.sorted_columns import bisect_column
from clew.splice import splice


@pytest.mark.parametrize("seed", range(30))
def test_an_updated_matrix_equals_one_that_is_built(seed: int) -> None:
    draw = np.random.default_rng(seed)
    sizes = draw.integers(0, 12, 2)
    old_rows, old_columns = (np.flatnonzero(draw.random(2 * size) < 0.7) for size in sizes)
    # Some elements are gone, some are new, and most of the new ones are at the end.
    rows, columns = (
        np.append(old[draw.random(len(old)) < 0.8], 2 * size + np.arange(draw.integers(0, 4)))
        for old, size in zip((old_rows, old_columns), sizes, strict=True)
    )
    every = [(r, c) for r in {*old_rows, *rows} for c in {*old_columns, *columns}]
    known = {pair: float(draw.random()) for pair in every if draw.random() < 0.5}
    before = [p for p in known if p[0] in old_rows and p[1] in old_columns]
    now = [p for p in known if p[0] in rows and p[1] in columns]
    added = [p for p in now if p not in set(before)]
    old = _build(before, old_rows, old_columns, known)
    update = update_csr(
        old,
        (find_moves(old_rows, rows), find_moves(old_columns, columns)),
        _positions(added, rows, columns),
    )
    weights = update.carry(old.weights, np.array([known[pair] for pair in added]))
    fresh = _build(now, rows, columns, known)
    for found, wanted in (
        (update.starts, fresh.starts),
        (update.columns, fresh.columns),
        (weights, fresh.weights),
    ):
        assert found.dtype == wanted.dtype
        assert found.tolist() == wanted.tolist()


def _positions(pairs, rows, columns):
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return np.searchsorted(rows, both[:, 0]), np.searchsorted(columns, both[:, 1])


def _build(pairs, rows, columns, known):
    weights = np.array([known[pair] for pair in pairs], np.float32)
    return build_csr(len(rows), *_positions(pairs, rows, columns), weights)


def test_places_of_keys_that_are_gone() -> None:
    assert find_places(np.array([1, 5, 9]), np.array([1, 5, 9, 12])).tolist() == [0, 1, 2]
    assert find_places(np.array([1, 5, 9]), np.array([0, 9])).tolist() == [GONE, GONE, 1]
    assert find_places(np.array([1, 5]), np.array([], np.int64)).tolist() == [GONE, GONE]


@pytest.mark.parametrize("seed", range(20))
def test_sorts_equal_those_of_numpy(seed: int) -> None:
    draw = np.random.default_rng(seed)
    first = draw.integers(0, [3, 1000][seed % 2], seed * 3).astype(
        [np.int64, np.uint64][seed % 3 % 2]
    )
    second = draw.integers(0, 4, len(first))
    assert argsort_pairs(first, second).tolist() == np.lexsort((second, first)).tolist()
    for found, wanted in zip(
        group_equals(first), np.unique(first, return_index=True, return_inverse=True), strict=True
    ):
        assert found.tolist() == wanted.tolist()
    table = np.sort(second)[:, None] * [1, 7]
    for right, side in ((False, "left"), (True, "right")):
        found = bisect_column(table[:, 1], np.arange(-1, 30), right=right)
        assert found.tolist() == np.searchsorted(table[:, 1], np.arange(-1, 30), side).tolist()


@given(st.data())
def test_splicing_equals_deleting_and_inserting(data: st.DataObject) -> None:
    held = np.arange(data.draw(st.integers(0, 12)))
    gone = np.flatnonzero([data.draw(st.booleans()) for _ in held])
    at = np.sort(data.draw(st.lists(st.integers(0, len(held)), max_size=6))).astype(np.int64)
    added = 100 + np.arange(len(at))
    wanted = np.delete(np.insert(held, at, added), gone + np.searchsorted(at, gone, "right"))
    assert splice(held, gone, at, added).tolist() == wanted.tolist()


KEYS = st.sets(st.integers(0, 30)).map(sorted).map(partial(np.array, dtype=np.int64))


@given(old=KEYS, new=KEYS, data=st.data())
def test_moves_say_where_elements_were_and_are(old: Ints, new: Ints, data: st.DataObject) -> None:
    moves, places = find_moves(old, new), find_places(old, new)
    assert moves.places.tolist() == places.tolist()
    assert new[moves.added].tolist() == sorted({*new.tolist()} - {*old.tolist()})
    assert moves.all_stay == (new[: len(old)].tolist() == old.tolist())
    some = np.array(data.draw(st.lists(st.integers(0, len(old) - 1))) if len(old) else [], np.int64)
    assert moves.place(some).tolist() == places[some].tolist()
    at, known = moves.find_old(np.arange(len(new)))
    assert old[at[known]].tolist() == new[known].tolist()
    assert new[known].tolist() == sorted({*new.tolist()} & {*old.tolist()})
    kept = {*old[moves.places != GONE].tolist()}
    for place, key in zip(at[~known].tolist(), new[~known].tolist(), strict=True):
        later = [one for one in old.tolist() if one > key and one in kept]
        assert (old[place] if place < len(old) else None) == (later[0] if later else None)
    dropped = moves.drop(np.unique(some))
    held = np.where(np.isin(np.arange(len(old)), some), GONE, places)
    again = moves_from_places(held, len(new))
    assert dropped.gone.tolist() == again.gone.tolist()
    assert dropped.added.tolist() == again.added.tolist()
