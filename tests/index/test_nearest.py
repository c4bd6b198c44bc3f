"""The nearest elements by an index, against an exact search."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from clew.index.cosines import compare_rows
from clew.index.nearest import MIN_INDEXED
from clew.index.view import View
from clew.store import vector_files
from clew.store.ivf_index import IvfFile, IvfIndex
from clew.store.protocol import DETAIL_PREFIX
from clew.store.row_lookup import RowLookup
from clew.store.sign_bits import BLOCK_ROWS, SignBits, make_sign_bits
from clew.store.vector_files import VectorFile
from clew.text.unicode import digest
from clew.types import Kind

DIMENSIONS = 96
COUNT = MIN_INDEXED + 2000
Floats = NDArray[np.float32]


def _make_vectors(count: int, seed: int) -> Floats:
    """Unit vectors around 500 topics."""
    rng = np.random.default_rng(seed)
    topics = np.random.default_rng(0).standard_normal((500, DIMENSIONS))
    found = topics[rng.integers(0, 500, count)] + rng.standard_normal((count, DIMENSIONS))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def vectors() -> Floats:
    return _make_vectors(COUNT, 1)


def _measure_recall(view: View, kind: Kind, k: int) -> float:
    exact = View(view.arrays, view.matrices)
    shares = []
    for query in _make_vectors(20, 2):
        near, scores = view.nearest(kind, query, k)
        wanted, _ = exact.nearest(kind, query, k)
        # What is found has its exact cosine, best first.
        np.testing.assert_allclose(scores, view.cosines(kind, query, near), atol=1e-6)
        assert (np.diff(scores) <= 0).all()
        shares.append(np.isin(wanted, near).mean())
    return float(np.mean(shares))


def test_an_index_finds_nearly_all_of_the_nearest(vectors: Floats) -> None:
    arrays = {"chunk_keys": np.arange(COUNT), "chunk_rows": np.arange(COUNT)}
    view = View(arrays, {"chunk": vectors}, indexes={"chunk": make_sign_bits(vectors)})
    assert _measure_recall(view, "chunk", 10) >= 0.97
    assert _measure_recall(view, "chunk", 100) >= 0.97


def test_rows_that_no_element_points_to_are_never_found(vectors: Floats) -> None:
    rng = np.random.default_rng(3)
    kept = np.sort(rng.choice(COUNT, COUNT - 1500, replace=False))
    rows = np.append(kept, [kept[0], -1])  # two elements with the same text, one without a vector
    arrays = {"fact_keys": np.arange(len(rows)), "fact_rows": rows}
    view = View(arrays, {"fact": vectors}, indexes={"fact": make_sign_bits(vectors)})
    assert _measure_recall(view, "fact", 10) >= 0.97
    twins, _ = view.nearest("fact", vectors[kept[0]], 2)
    assert twins.tolist() == [0, len(rows) - 2]
    gone = np.setdiff1d(np.arange(COUNT), kept)[0]
    [nearest], [score] = view.nearest("fact", vectors[gone], 1)
    assert rows[nearest] != gone
    assert score < 0.999


def test_elements_in_another_order_than_their_rows_are_found_each_time(vectors: Floats) -> None:
    index, rng = make_sign_bits(vectors), np.random.default_rng(4)
    [query] = _make_vectors(1, 5)
    near = set(index.nearest_positions(query, np.arange(COUNT), 500).tolist())
    shared = np.append(rng.permutation(COUNT), [7, 7])
    for rows in (rng.permutation(COUNT), shared, np.append(rng.permutation(COUNT), -1)):
        first, *later = (index.nearest_positions(query, rows, 500) for _ in range(3))
        assert near & set(rows[first].tolist())
        for again in later:  # the places of rows are known by then
            np.testing.assert_array_equal(again, first)


def test_described_entities_are_compared_by_their_descriptions(vectors: Floats) -> None:
    described = np.arange(0, 600, 2)
    arrays = {
        "entity_keys": np.arange(COUNT),
        "entity_rows": np.arange(COUNT),
        f"{DETAIL_PREFIX}entity_keys": described,
        f"{DETAIL_PREFIX}entity_rows": np.arange(len(described)),
        f"{DETAIL_PREFIX}entity_codes": np.zeros(len(described), np.int64),
    }
    texts = _make_vectors(len(described), 4)
    signs = {"entity": make_sign_bits(vectors), "description": make_sign_bits(texts)}
    view = View(arrays, {"entity": vectors, "description": texts}, indexes=signs)
    assert view.nearest("description", texts[7], 1)[0].tolist() == [14]
    assert view.nearest("description", vectors[15], 1)[0].tolist() == [15]
    assert view.nearest("description", vectors[14], 1)[0].tolist() != [14]
    assert _measure_recall(view, "description", 10) >= 0.97


def test_few_elements_and_none_are_compared_exactly() -> None:
    few = _make_vectors(50, 5)
    view = View({"chunk_keys": np.arange(50), "chunk_rows": np.arange(50)}, {"chunk": few})
    assert _measure_recall(view, "chunk", 10) == 1.0
    assert view.nearest("chunk", few[3], 1)[0].tolist() == [3]
    positions, scores = view.nearest("entity", few[3], 5)
    assert not len(positions)
    assert not len(scores)


def _append(table: VectorFile, vectors: Floats, first: int) -> None:
    table.append([digest(str(first + n)) for n in range(len(vectors))], vectors)


def test_sign_bits_older_than_their_vectors_still_find_the_new_ones(tmp_path: Path) -> None:
    vectors, path = _make_vectors(BLOCK_ROWS + 300, 6), tmp_path / "chunk.npy"
    table = VectorFile(path)
    _append(table, vectors[: BLOCK_ROWS + 20], 0)
    table.save_index()
    assert np.load(tmp_path / "chunk.signs.npy").shape[0] == 1
    _append(table, vectors[BLOCK_ROWS + 20 :], BLOCK_ROWS + 20)
    for reader in (table, VectorFile(path)):
        index = reader.row_index()
        assert isinstance(index, SignBits)
        asked = index.distances(vectors[-1])
        assert len(asked) == len(vectors)
        assert asked[-1] == 0
        expected = ((vectors > 0) != (vectors[-1] > 0)).sum(axis=1)
        assert np.array_equal(asked, expected)


def test_sign_bits_in_larger_blocks_are_read_and_written_again(tmp_path: Path) -> None:
    vectors, path = _make_vectors(5 * BLOCK_ROWS + 300, 6), tmp_path / "chunk.npy"
    table = VectorFile(path)
    _append(table, vectors, 0)
    table.save_index()
    signs = tmp_path / "chunk.signs.npy"
    written = np.load(signs)
    assert len(written) == 5
    before = written[:4].reshape(2, 2, -1, BLOCK_ROWS).transpose(0, 2, 1, 3)
    np.save(signs, before.reshape(2, -1, 2 * BLOCK_ROWS))
    reader = VectorFile(path)
    index = reader.row_index()
    assert isinstance(index, SignBits)
    assert len(index.blocks) == 4
    assert np.array_equal(index.distances(vectors[7]), table.row_index().distances(vectors[7]))
    assert reader.has_right_indexes()
    reader.save_index()
    assert np.array_equal(np.load(signs), written)


def _flip(raw: bytes, at: int) -> bytes:
    changed = bytearray(raw)
    changed[at] ^= 1
    return bytes(changed)


def test_damaged_sign_bits_are_found_and_made_again(tmp_path: Path) -> None:
    vectors, path = _make_vectors(BLOCK_ROWS, 7), tmp_path / "chunk.signs.npy"
    table = VectorFile(tmp_path / "chunk.npy")
    _append(table, vectors, 0)
    table.save_index()
    assert table.has_right_indexes()
    written = path.read_bytes()
    for damaged in (_flip(written, -9), written[:4000], b"garbage"):
        path.write_bytes(damaged)
        again = VectorFile(tmp_path / "chunk.npy")
        assert not again.has_right_indexes()
        assert again.repair() is False  # no vector was lost
        again.save_index()
        assert path.read_bytes() == written


def test_sign_bits_of_other_vectors_are_told_not_used_and_replaced(tmp_path: Path) -> None:
    older, vectors = _make_vectors(8 * BLOCK_ROWS, 8), _make_vectors(8 * BLOCK_ROWS, 9)
    for folder, held in ((tmp_path / "older", older), (tmp_path / "newer", vectors)):
        table = VectorFile(folder / "chunk.npy")
        _append(table, held, 0)
        table.save_index()
        assert table.describe_index() == ""
    path = tmp_path / "newer" / "chunk.signs.npy"
    written = path.read_bytes()
    path.write_bytes((tmp_path / "older" / "chunk.signs.npy").read_bytes())
    again = VectorFile(tmp_path / "newer" / "chunk.npy")
    assert not again.has_right_indexes()
    assert again.describe_index() == "the sign bits are missing, or older than the vectors"
    index = again.row_index()
    assert isinstance(index, SignBits)
    expected = ((vectors > 0) != (vectors[5] > 0)).sum(axis=1)
    assert np.array_equal(index.distances(vectors[5]), expected)
    again.save_index()
    assert path.read_bytes() == written and again.describe_index() == ""
    path.unlink()
    assert again.describe_index() == "the sign bits are missing, or older than the vectors"
    assert np.array_equal(again.row_index().distances(vectors[5]), expected)


def test_inverted_lists_of_other_vectors_are_told(tmp_path: Path) -> None:
    table = VectorFile(tmp_path / "chunk.npy")
    _append(table, _make_vectors(20, 7), 0)
    made = tmp_path / "made"
    made.write_bytes(b"lists")
    IvfFile(tmp_path / "chunk.ivf").publish(made, _make_vectors(20, 8))
    assert not table.has_right_indexes()


def test_a_damaged_index_of_lists_is_found_and_removed(tmp_path: Path) -> None:
    table = VectorFile(tmp_path / "chunk.npy")
    _append(table, _make_vectors(20, 7), 0)
    path = tmp_path / "chunk.ivf"
    made = tmp_path / "made"
    made.write_bytes(bytes(range(256)) * 40)  # in the place of lists that the library writes
    IvfFile(path).publish(made, table.matrix())
    written = path.read_bytes()
    assert table.has_right_indexes()
    for damaged in (_flip(written, 5000), written[:-1], b""):
        path.write_bytes(damaged)
        assert not table.has_right_indexes()
    table.repair()
    assert table.has_right_indexes()
    assert sorted(one.name for one in tmp_path.iterdir() if "ivf" in one.name) == []


def test_rows_are_found_by_hashes_that_share_their_first_half() -> None:
    held = np.array([[7, 1], [5, 9], [7, 3], [7, 2]], np.uint64)
    lookup = RowLookup(held)
    assert lookup.extend(np.array([[5, 8], [7, 4]], np.uint64))
    wanted = np.array([[7, 2], [5, 8], [7, 9], [9, 9], [7, 4], [7, 1]], np.uint64)
    for _ in range(12):  # at first rows are read in order, then they are sorted
        assert lookup.find(wanted).tolist() == [3, 4, -1, -1, 5, 0]
    assert len(lookup) == 6


def test_inverted_lists_find_nearly_all_also_of_newer_and_without_removed_rows(
    tmp_path: Path, vectors: Floats, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("faiss")
    monkeypatch.setattr(vector_files, "MIN_IVF_ROWS", 10_000)
    table = VectorFile(tmp_path / "chunk.npy")
    _append(table, vectors[:-1000], 0)
    table.save_index()
    _append(table, vectors[-1000:], COUNT)
    for reader in (table, VectorFile(tmp_path / "chunk.npy")):
        index = reader.row_index()
        assert isinstance(index, IvfIndex)
        kept = np.delete(np.arange(COUNT), [5, COUNT - 5])
        arrays = {"chunk_keys": np.arange(COUNT - 2), "chunk_rows": kept}
        view = View(arrays, {"chunk": vectors}, indexes={"chunk": index})
        assert _measure_recall(view, "chunk", 10) >= 0.97
        for row in (5, COUNT - 5):
            [nearest], _ = view.nearest("chunk", vectors[row], 1)
            assert kept[nearest] != row
        assert view.nearest("chunk", vectors[-1], 1)[0].tolist() == [COUNT - 3]
    # A file that faiss cannot read is as good as none.
    (tmp_path / "chunk.ivf").write_bytes(b"garbage")
    assert isinstance(VectorFile(tmp_path / "chunk.npy").row_index(), SignBits)


@pytest.mark.parametrize(("count", "width"), [(0, 8), (1, 8), (100, 384), (3, 300_000), (4, 0)])
def test_rows_are_compared_block_by_block_with_all_others(count: int, width: int) -> None:
    rows = np.random.default_rng(3).standard_normal((count, width)).astype(np.float32)
    found = compare_rows(rows)
    assert found.shape == (count, count)
    np.testing.assert_allclose(found, rows.astype(np.float64) @ rows.T, rtol=1e-3, atol=0.5)
