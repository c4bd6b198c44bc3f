"""Tables with rows dropped and inserted that are not put together: they read as if they were."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import DamagedArrays
from clew.splice import splice
from clew.store import edited_rows
from clew.store.array_files import save_arrays
from clew.store.edited_rows import EditedRows, edit_rows
from clew.store.mapped_arrays import MappedArrays
from clew.store.protocol import Array
from clew.store.row_edits import Edits
from clew.store.spliced_arrays import splice_rows

NONE = np.zeros(0, np.int64)
NAME = "raw_mentions"


@pytest.fixture(autouse=True)
def _all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edited_rows, "MIN_EDITED_BYTES", 0)


def draw_change(data: st.DataObject, size: int) -> tuple[Array, Array, Array]:
    """Rows to drop, places, and as many rows to insert before these."""
    rows = st.lists(st.integers(0, size - 1), max_size=6, unique=True) if size else st.just([])
    places = data.draw(st.lists(st.integers(0, size), max_size=6).map(sorted))
    gone = np.array(data.draw(rows.map(sorted)), np.int64)
    added = np.arange(3 * len(places), dtype=np.int32).reshape(-1, 3) - 500
    return gone, np.array(places, np.int64), added


@given(data=st.data())
def test_rows_columns_and_stretches_are_those_of_the_array(data: st.DataObject) -> None:
    expected: Array = np.arange(60, dtype=np.int32).reshape(-1, 3)
    found: Array = expected
    for _ in range(3):
        change = draw_change(data, len(expected))
        edited = edit_rows(NAME, found, *change)
        assert isinstance(edited, EditedRows)
        expected, found = splice(expected, *change), edited
    assert found.shape == expected.shape and found.nbytes == expected.nbytes
    assert len(found) == len(expected) and found.dtype == expected.dtype
    size = len(expected)
    at = np.array(data.draw(st.lists(st.integers(-size, size - 1), max_size=9)), np.int64)
    low, high = data.draw(st.tuples(st.integers(-size, size + 2), st.integers(-size, size + 2)))
    for key in (at, (at, 1), slice(low, high), (slice(low, high), 2), expected[:, 1] > 9, -1):
        assert np.array_equal(found[key], expected[key])
    assert np.array_equal(found[:, 1][at], expected[at, 1])
    assert np.array_equal(found[:, 2] >= 30, expected[:, 2] >= 30)
    assert found[:, 0].tolist() == expected[:, 0].tolist()
    assert np.array_equal(np.concatenate([found, found[:0]]), expected)
    with pytest.raises(IndexError):
        found[np.array([size])]


@given(
    numbers=st.lists(st.integers(0, 40)),
    wanted=st.lists(st.integers(-1, 41)),
    cuts=st.lists(st.integers(0, 40), min_size=4, max_size=4).map(sorted),
)
def test_places_in_an_ascending_column(
    numbers: list[int], wanted: list[int], cuts: list[int]
) -> None:
    column = np.sort(np.array([*numbers, 20], np.int64))
    # Pieces in turns from the earlier array, where others lie between them, and from the new rows.
    bounds = np.array([0, *np.minimum(cuts, len(column)), len(column)])
    sizes, from_new = np.diff(bounds), np.array([False, True, False, True, False])
    own = np.repeat(from_new, sizes)
    begins = np.where(from_new, ~np.cumsum(np.where(from_new, sizes, 0)) + sizes, bounds[:-1])
    edits = Edits(begins, sizes, column[own][:, None])
    base = np.where(own, 7, column)
    edited = EditedRows(base[:, None], edits)[:, 0]
    assert edited.tolist() == column.tolist()
    for right, side in ((False, "left"), (True, "right")):
        places = edited.bisect(np.array(wanted, np.int64), right=right)
        assert places.tolist() == np.searchsorted(column, wanted, side).tolist()  # type: ignore[call-overload]


def test_a_generation_is_saved_and_read_without_putting_it_together(tmp_path: Path) -> None:
    held = {NAME: np.arange(30_000, dtype=np.int32).reshape(-1, 3)}
    seal = save_arrays(tmp_path / "0", held, durable=False)
    expected = held[NAME]
    for number in range(1, 6):
        previous = MappedArrays(tmp_path / str(number - 1), seal)
        change = np.array([5 * number]), np.array([700, 900]), np.full((2, 3), number, np.int32)
        made = splice_rows(previous, NAME, previous[NAME], *change)
        expected = splice(expected, *change)
        arrays = {NAME: made}
        seal = save_arrays(tmp_path / str(number), arrays, durable=False, previous=previous)
        assert isinstance(made, EditedRows) and "_whole" not in vars(made)
        found: MappedArrays = MappedArrays(tmp_path / str(number), seal, just_saved=arrays)
        assert isinstance(found[NAME], EditedRows)
        assert np.array_equal(found[NAME], expected)
        assert found.check_all() == []
    again = save_arrays(tmp_path / "whole", {NAME: found[NAME]}, durable=False)
    assert np.array_equal(MappedArrays(tmp_path / "whole", again)[NAME], expected)


def test_many_rows_are_put_together_and_wrong_edits_are_refused() -> None:
    held = np.zeros((9000, 3), np.int32)
    many = np.arange(5000)
    assert edit_rows(NAME, held, many, many[:0], held[:0]) is None
    assert edit_rows("chunk_rows", held, many[:1], many[:0], held[:0]) is None
    beyond = Edits(np.array([8999]), np.array([2]), held[:0])
    with pytest.raises(DamagedArrays, match="not there"):
        EditedRows(held, beyond).check()
