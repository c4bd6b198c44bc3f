"""What changes its place inside a file is noticed, and sums of earlier versions still count."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from clew.engine import KnowledgeBase, open_store
from clew.errors import DamagedArrays, StoreError
from clew.store.array_files import save_arrays
from clew.store.checksums import FileSum, checksum_bytes, checksum_vectors, is_sound
from clew.store.mapped_arrays import MappedArrays
from clew.store.vector_files import VectorFile
from clew.testing.fakes import HashEmbed
from clew.text.unicode import digest

HASHES = [digest(str(number)) for number in range(4)]


def reverse_words(raw: bytes, begin: int, end: int, size: int) -> bytes:
    """Reverse the order of the words of a part of a file."""
    words = [raw[at : at + size] for at in range(begin, end, size)]
    return raw[:begin] + b"".join(reversed(words)) + raw[end:]


async def test_words_that_swap_places_in_a_vector_are_told_and_mended(
    valley: KnowledgeBase,
) -> None:
    before = await valley.search("Where is Marrow Bridge?", recipe="naive")
    [path] = valley.settings.kb.glob("vectors/*/chunk.npy")
    path.write_bytes(reverse_words(path.read_bytes(), 128, path.stat().st_size, 8))
    settings = valley.settings
    hurt = KnowledgeBase(await open_store(settings, create=False), settings, HashEmbed())
    assert await hurt.verify() != []
    with pytest.raises(StoreError):
        await hurt.search("Where is Marrow Bridge?", recipe="naive")
    await hurt.repair()
    assert await hurt.verify() == []
    after = await hurt.search("Where is Marrow Bridge?", recipe="naive")
    assert [c.doc for c in after.evidence.chunks] == [c.doc for c in before.evidence.chunks]


@pytest.mark.parametrize("size", [2, 4, 8, 128])
def test_parts_of_a_vector_cannot_swap_places(size: int) -> None:
    words = np.arange(8, dtype=np.uint64).reshape(4, 2)
    vectors = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    held = checksum_vectors(words, vectors)
    raw = vectors.tobytes()
    for first in range(0, 256 - size, size):
        second = first + size
        swapped = bytearray(raw)
        swapped[first:second] = raw[second : second + size]
        swapped[second : second + size] = raw[first:second]
        found = checksum_vectors(words, np.frombuffer(swapped, np.float32).reshape(4, 64))
        assert found[0] != held[0]
        assert (found[1:] == held[1:]).all()


def test_signs_cannot_swap_places() -> None:
    words = np.zeros((1, 2), np.uint64)
    vectors = [np.array([[1, x, 1, y]], np.float32) for x, y in ((-2, 2), (2, -2), (-2, -2))]
    assert len({int(checksum_vectors(words, one)[0]) for one in vectors}) == 3


def test_words_cannot_swap_places_in_an_array(tmp_path: Path) -> None:
    seal = save_arrays(tmp_path / "1", {"a": np.arange(500)})
    file = tmp_path / "1" / "a.npy"
    file.write_bytes(reverse_words(file.read_bytes(), 1024, 1536, 8))
    with pytest.raises(DamagedArrays):
        MappedArrays(tmp_path / "1", seal)["a"]
    raws = [bytes(512), bytes(511) + b"\1", b"\1" + bytes(511)]
    assert all(checksum_bytes(one) != checksum_bytes(other) for one, other in pairwise(raws))


def test_vectors_with_sums_of_an_earlier_version_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)

    def sum_plainly(words: np.ndarray, rows: np.ndarray, by_place: bool = True) -> np.ndarray:
        return checksum_vectors(words, rows, by_place=False)

    monkeypatch.setattr("clew.store.vector_records.checksum_vectors", sum_plainly)
    VectorFile(tmp_path / "vectors" / "chunk.npy").append(HASHES[:3], vectors[:3])
    monkeypatch.undo()
    grown = VectorFile(tmp_path / "vectors" / "chunk.npy")
    grown.append(HASHES[3:], vectors[3:])
    assert VectorFile(tmp_path / "vectors" / "chunk.npy").count_checked_rows() == 4
    assert np.allclose(grown.matrix(), vectors, atol=1e-2)


def test_arrays_with_sums_of_an_earlier_version_get_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "clew.store.array_files.sum_file",
        lambda raw, begin=None: FileSum(len(raw), checksum_bytes(raw, by_place=False)),
    )
    seal = save_arrays(tmp_path / "1", {"a": np.arange(500)})
    monkeypatch.undo()
    earlier = MappedArrays(tmp_path / "1", seal)
    assert earlier["a"].tolist() == [*range(500)]
    seal = save_arrays(tmp_path / "2", {"a": np.arange(500)}, previous=earlier)
    file = tmp_path / "2" / "a.npy"
    assert file.stat().st_nlink == 2
    swapped = reverse_words(file.read_bytes(), 1024, 1536, 8)
    assert is_sound(swapped, checksum_bytes(file.read_bytes(), by_place=False))
    file.write_bytes(swapped)
    with pytest.raises(DamagedArrays):
        MappedArrays(tmp_path / "2", seal)["a"]
