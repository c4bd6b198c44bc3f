"""Arrays that are made of those of the generation before: noted, appended to files, and saved."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.index.derive import derive_arrays
from clew.store import array_files
from clew.store.array_files import save_arrays
from clew.store.mapped_arrays import MappedArrays
from clew.store.protocol import Array, Arrays, Change, Tables
from clew.store.spliced_arrays import append_rows, find_splice, splice_offsets, splice_rows
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import make_addition, make_triple

NONE = np.zeros(0, np.int64)


@given(data=st.data())
def test_noted_rows_are_saved_as_they_are(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("arrays")
    held = {
        "plain": np.arange(3000),
        "pairs": np.arange(6000, dtype=np.int32).reshape(-1, 2),
        "part_starts": np.arange(3000) * 3,
    }
    seal = save_arrays(folder / "0", held, durable=False)
    for number in range(1, 5):
        previous = MappedArrays(folder / str(number - 1), seal)
        new: dict[str, Array] = {}
        for name in held:
            size = len(previous[name])
            places = st.lists(st.integers(0, size), max_size=6).map(sorted)
            rows = st.lists(st.integers(0, size - 1), max_size=6, unique=True).map(sorted)
            at = np.array(data.draw(places), np.int64)
            gone = np.array(data.draw(rows), np.int64)
            if data.draw(st.booleans()):
                at, gone = np.full(len(at), size), NONE
            shape = (len(at), *held[name].shape[1:])
            more = np.full(shape, 7 * number + 100_000, held[name].dtype)
            base = previous[name]
            new[name] = splice_rows(previous, name, base, gone, at, more)
            kept = np.delete(base, gone, axis=0)
            expected = np.insert(kept, at - np.searchsorted(gone, at), more, axis=0)
            assert np.array_equal(new[name], expected)
            assert find_splice(previous, name, new[name]) is not None
        seal = save_arrays(folder / str(number), new, durable=False, previous=previous)
        stored = MappedArrays(folder / str(number), seal)
        assert not stored.check_all()
        for name, array in new.items():
            assert stored[name].tobytes() == array.tobytes(), name


@given(data=st.data())
def test_offsets_are_saved_by_the_sizes_of_rows(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, name = tmp_path_factory.mktemp("arrays"), "part_starts"
    sizes = np.arange(3000) % 5
    held = np.append(0, np.cumsum(sizes))
    seal = save_arrays(folder / "0", {name: held}, durable=False)
    for number in range(1, 4):
        previous = MappedArrays(folder / str(number - 1), seal)
        places = st.lists(st.integers(0, len(sizes)), max_size=6).map(sorted)
        rows = st.lists(st.integers(0, len(sizes) - 1), max_size=6, unique=True).map(sorted)
        at, gone = (np.array(data.draw(some), np.int64) for some in (places, rows))
        if data.draw(st.booleans()):
            at, gone = np.full(len(at), len(sizes)), NONE
        more = np.arange(len(at)) + number
        found = splice_offsets(previous, name, previous[name], gone, at, more)
        sizes = np.insert(np.delete(sizes, gone), at - np.searchsorted(gone, at), more)
        assert found.tolist() == [0, *np.cumsum(sizes).tolist()]
        noted = find_splice(previous, name, found)
        assert noted is not None
        assert len(noted.rows) == len(at)
        seal = save_arrays(folder / str(number), {name: found}, durable=False, previous=previous)
        stored = MappedArrays(folder / str(number), seal)
        assert not stored.check_all()
        assert stored[name].tobytes() == found.tobytes()


def test_appended_rows_are_not_seen_until_they_are_saved(tmp_path: Path) -> None:
    first = np.arange(100_000)
    seal = save_arrays(tmp_path / "1", {"numbers": first}, durable=False)
    abandoned = MappedArrays(tmp_path / "1", seal)
    given_up = append_rows(abandoned, "numbers", np.full(500, -1))
    assert len(given_up) == 100_500
    again = MappedArrays(tmp_path / "1", seal)
    assert not again.check_all()
    assert np.array_equal(again["numbers"], first)
    longer = append_rows(again, "numbers", np.arange(100_000, 100_003))
    next_seal = save_arrays(tmp_path / "2", {"numbers": longer}, durable=False, previous=again)
    stored = MappedArrays(tmp_path / "2", next_seal)
    assert not stored.check_all()
    assert np.array_equal(stored["numbers"], np.arange(100_003))
    assert np.array_equal(MappedArrays(tmp_path / "1", seal)["numbers"], first)


async def test_a_write_that_fails_after_appending_leaves_the_knowledge_base_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_files, "MIN_CHANGED_BYTES", 1)
    store = SqliteStore(tmp_path, create=True, durable=False)

    def fail(tables: Tables) -> Arrays:
        derive_arrays(tables)
        raise MemoryError

    def addition(number: int) -> Change:
        triple = make_triple(f"Ada {number}", "knows", f"Byron {number}")
        text = f"Ada {number} knows Byron {number}."
        return Change(add=[make_addition(f"doc {number}", text, facts=[triple])])

    for number in range(6):
        await store.write(addition(number), derive_arrays)
        with pytest.raises(MemoryError):
            await store.write(addition(100 + number), fail)
    assert not await store.find_problems()
    async with store.snapshot() as now:
        assert len(now.arrays["chunk_keys"]) == 6
    await store.write(Change(remove=["doc 2"]), derive_arrays)
    await store.write(addition(7), derive_arrays)
    reader = SqliteStore(tmp_path)
    assert not await reader.find_problems()
    async with reader.snapshot() as now:
        fresh = (await _derive_anew(store))["chunk_entity_columns"]
        assert np.array_equal(now.arrays["chunk_entity_columns"], fresh)
    await reader.close()
    await store.close()


async def _derive_anew(store: SqliteStore) -> Arrays:
    """The arrays that a rebuild of the same database derives."""
    found: dict[str, Array] = {}

    def derive(tables: Tables) -> Arrays:
        found.update(derive_arrays(tables))
        return found

    await store.write(Change(rebuild=True), derive)
    return found
