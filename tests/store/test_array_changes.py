"""Arrays that are stored as an earlier file and what changed come back bit for bit."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import DamagedArrays
from clew.index.derive import derive_arrays
from clew.out_of_core import WorkingMemory
from clew.store import array_files
from clew.store.array_files import remove_old_generations, save_arrays
from clew.store.mapped_arrays import SUMS_FILE, MappedArrays, load_sound_arrays, make_seal
from clew.store.protocol import Addition, Array, Arrays, Change, Tables
from clew.store.row_edits import find_steps
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import make_addition, make_triple

PEOPLE = [f"Person{number}" for number in range(300)]


def edit_rows(draw: np.random.Generator, array: Array, edits: int) -> Array:
    """Insert, drop and replace rows at random places."""
    for _ in range(edits):
        at, size = int(draw.integers(0, len(array) + 1)), int(draw.choice([1, 1, 2, 9]))
        rows = draw.integers(0, 5, (size, *array.shape[1:])).astype(array.dtype)
        what = draw.integers(0, 3)
        dropped = 0 if what == 0 else size
        added = rows[:0] if what == 1 else rows
        array = np.concatenate([array[:at], added, array[at + dropped :]])
    return array


def assert_bits(found: Array, expected: Array) -> None:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


@given(
    seed=st.integers(0, 1 << 30),
    dtype=st.sampled_from(["i8", "i4", "u8", "u1", "f4", "f8", "?"]),
    width=st.sampled_from([None, 1, 3]),
    rows=st.sampled_from([20, 60, 2400]),
    writes=st.lists(st.integers(0, 5), min_size=1, max_size=9),
)
def test_every_generation_reads_what_it_was_given(
    seed: int, dtype: str, width: int | None, rows: int, writes: list[int]
) -> None:
    draw = np.random.default_rng(seed)
    shape = (rows,) if width is None else (rows, width)
    held = {
        "plain": draw.integers(0, 40, shape).astype(dtype),
        "steady": np.zeros(shape, dtype),
        "some_starts": np.append(0, np.cumsum(draw.integers(0, 9, rows))),
    }
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_files, "MIN_CHANGED_BYTES", 1)
        before, given_arrays, seals = None, [], []
        for number, edits in enumerate(writes):
            parent = Path(folder) / str(number)
            seals.append(save_arrays(parent, held, durable=False, previous=before))
            given_arrays.append(held)
            before = MappedArrays(parent, seals[-1], just_saved=held if edits % 2 else None)
            degrees = edit_rows(draw, np.diff(held["some_starts"]), edits)
            held = {
                "plain": edit_rows(draw, held["plain"], edits),
                "steady": edit_rows(draw, held["steady"], edits // 3),
                "some_starts": np.append(0, np.cumsum(degrees)),
            }
        for number, expected in enumerate(given_arrays):
            found = MappedArrays(Path(folder) / str(number), seals[number])
            assert found.check_all() == []
            for name, array in expected.items():
                assert_bits(found[name], array)
                assert not found[name].flags.writeable


@given(
    seed=st.integers(0, 1 << 30), writes=st.lists(st.sampled_from("+-*"), min_size=2, max_size=12)
)
def test_positions_of_things_that_come_and_go(seed: int, writes: list[str]) -> None:
    draw = np.random.default_rng(seed)
    keys, things = np.arange(200), draw.integers(0, 200, 3000)
    with tempfile.TemporaryDirectory() as folder:
        before = None
        for number, what in enumerate(["", *writes]):
            if what in ("-", "*"):  # a thing goes, and what points to it
                gone = draw.choice(keys, 2, replace=False)
                keys = keys[~np.isin(keys, gone)]
                things = things[~np.isin(things, gone)]
            if what in ("+", "*"):  # a thing comes, and is pointed to from the middle
                keys = np.append(keys, 1000 + number)
                things = np.insert(things, draw.integers(0, len(things), 3), 1000 + number)
            positions = np.searchsorted(keys, things).astype(np.int32)
            arrays = {"chunk_keys": keys, "entity_chunk_columns": positions}
            path = Path(folder) / str(number)
            seal = save_arrays(path, arrays, durable=False, previous=before)
            before = MappedArrays(path, seal)
            assert_bits(before["entity_chunk_columns"], positions)


def save_twice(folder: Path) -> tuple[str, dict[str, Array]]:
    """Two generations; rows in the middle of two arrays of the second are new."""
    first = {"a": np.arange(5000), "b": np.arange(9000), "same": np.arange(800)}
    held = MappedArrays(folder / "1", save_arrays(folder / "1", first))
    second = {**first, "a": np.insert(first["a"], 2000, 7), "b": np.delete(first["b"], 50)}
    return save_arrays(folder / "2", second, previous=held), second


def test_what_changed_is_written_and_an_earlier_version_refuses_it(tmp_path: Path) -> None:
    seal, second = save_twice(tmp_path)
    files = {path.name: path.stat() for path in (tmp_path / "2").iterdir()}
    assert {name for name, stat in files.items() if stat.st_nlink == 1} == {
        "changes-1.bin",
        SUMS_FILE,
    }
    assert files["changes-1.bin"].st_size < 500
    assert seal != make_seal((tmp_path / "2" / SUMS_FILE).read_bytes())
    remove_old_generations(tmp_path, {2})
    found = MappedArrays(tmp_path / "2", seal)
    for name, array in second.items():
        assert_bits(found[name], array)


@pytest.mark.parametrize("damage", ["changed", "missing", "cut"])
def test_damaged_changes_name_the_way_out(tmp_path: Path, damage: str) -> None:
    seal, second = save_twice(tmp_path)
    path = tmp_path / "2" / "changes-1.bin"
    raw = path.read_bytes()
    path.write_bytes(raw[:9] + bytes([raw[9] ^ 1]) + raw[10:] if damage == "changed" else raw[:-3])
    if damage == "missing":
        path.unlink()
        with pytest.raises(DamagedArrays, match="verify --repair"):
            MappedArrays(tmp_path / "2", seal)
    else:
        found = MappedArrays(tmp_path / "2", seal)
        assert_bits(found["same"], second["same"])
        assert len(found.check_all()) == 2
        with pytest.raises(DamagedArrays, match="verify --repair"):
            found["a"]
        # A later generation does not build upon it.
        again = save_arrays(tmp_path / "3", second, previous=found)
        assert_bits(MappedArrays(tmp_path / "3", again)["a"], second["a"])
    assert load_sound_arrays(tmp_path / "2", seal).keys() == {"same"}


def test_sound_arrays_of_a_damaged_generation_have_their_changes(tmp_path: Path) -> None:
    seal, second = save_twice(tmp_path)
    (tmp_path / "2" / "b.npy").write_bytes(b"")
    found = load_sound_arrays(tmp_path / "2", seal)
    assert found.keys() == {"a", "same"}
    assert_bits(found["a"], second["a"])


def test_many_changes_are_merged_and_then_written_whole(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    array, most, whole = np.arange(4000), 0, 0
    held = MappedArrays(tmp_path / "0", save_arrays(tmp_path / "0", {"a": array}))
    for number in range(1, 150):
        array = edit_rows(draw, array, 6)
        folder = tmp_path / str(number)
        seal = save_arrays(folder, {"a": array}, durable=False, previous=held)
        remove_old_generations(tmp_path, {number})
        held = MappedArrays(folder, seal)
        assert_bits(held["a"], array)
        files = list(folder.glob("changes-*.bin"))
        most = max(most, len(files))
        if not files:
            whole += 1
            save_arrays(tmp_path / "fresh", {"a": array}, durable=False)
            fresh = (tmp_path / "fresh" / "a.npy").read_bytes()
            assert (folder / "a.npy").read_bytes() == fresh
    assert 2 <= most <= 7
    assert 1 <= whole <= 15


def test_arrays_that_do_not_fit_into_memory_are_written_whole(tmp_path: Path) -> None:
    array = np.arange(50_000)
    held = MappedArrays(tmp_path / "1", save_arrays(tmp_path / "1", {"a": array}))
    array = np.insert(array, 100, 5)
    memory = WorkingMemory(1 << 20, tmp_path)
    seal = save_arrays(tmp_path / "2", {"a": array}, previous=held, memory=memory)
    assert not list((tmp_path / "2").glob("changes-*"))
    assert_bits(MappedArrays(tmp_path / "2", seal)["a"], array)


def make_meeting(number: int) -> Addition:
    draw = np.random.default_rng(number)
    names = draw.choice(PEOPLE, 6, replace=False).tolist()
    facts = [make_triple(a, "met", b) for a, b in zip(names[:-1], names[1:], strict=True)]
    words = " ".join(f"word{word}" for word in draw.integers(0, 400, 30))
    return make_addition(f"doc {number}", f"{' and '.join(names)} met. {words}.", facts=facts)


def count_new_bytes(folder: Path, before: set[int]) -> int:
    stats = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return sum(one.st_size for one in stats if one.st_ino not in before)


async def test_a_write_costs_what_changed_and_reads_as_a_fresh_build(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, create=True, durable=False)
    arrays = tmp_path / "arrays"
    await store.write(Change(add=[make_meeting(number) for number in range(500)]), derive_arrays)
    total = count_new_bytes(arrays, set())
    for change in (
        Change(add=[make_meeting(900)]),
        Change(remove=["doc 250"]),
        Change(add=[make_meeting(901)], remove=["doc 17"]),
    ):
        before = {path.stat().st_ino for path in arrays.rglob("*")}
        derived: dict[str, Array] = {}
        await store.write(change, lambda tables, derived=derived: _derive(tables, derived))
        assert count_new_bytes(arrays, before) < total / 25
        opened = SqliteStore(tmp_path)
        async with opened.snapshot() as now:
            for name, array in derived.items():
                assert_bits(np.ascontiguousarray(now.arrays[name]), array)
        assert await opened.find_problems() == []
        await opened.close()
    await store.close()


def _derive(tables: Tables, derived: dict[str, Array]) -> Arrays:
    derived.update(derive_arrays(tables))
    return derived


def test_small_arrays_are_written_whole(tmp_path: Path) -> None:
    rows = array_files.MIN_CHANGED_BYTES // 8 - 2
    held = MappedArrays(tmp_path / "1", save_arrays(tmp_path / "1", {"a": np.arange(rows)}))
    save_arrays(tmp_path / "2", {"a": np.insert(np.arange(rows), 9, 1)}, previous=held)
    assert not list((tmp_path / "2").glob("changes-*"))


NUMBERS = st.sets(st.integers(0, 40), min_size=1).map(sorted)


@given(kept=st.tuples(NUMBERS, NUMBERS, NUMBERS), repeats=st.integers(1, 20))
def test_steps_and_later_ones_are_one(kept: tuple[list[int], ...], repeats: int) -> None:
    first, second, third = (np.array(one, np.int64) for one in kept)
    one, other = find_steps(first, second), find_steps(second, third)
    if one is None or other is None:
        return
    both = one.then(other)
    assert both.at[0] == 0
    assert (np.diff(both.add) != 0).all()
    lasting = np.isin(first, second) & np.isin(first, third)
    expected = np.searchsorted(third, first[lasting])
    assert both.table()[lasting].tolist() == expected.tolist()
    # Few numbers are looked up one by one, many by a table.
    some = np.append(np.tile(np.flatnonzero(lasting), repeats), -1).astype(np.int32)
    assert both.renumber(some).tolist() == [*expected.tolist() * repeats, -1]
    assert both.renumber(some[-1:]).tolist() == [-1]
