"""Index of very many vectors by faiss (extra `ann`): inverted lists of RaBitQ codes.

A vector is in the list of its nearest centre, as a code of one bit per dimension; a query looks
into the nearest lists only. The index lies in `NAME.ivf` and is memory-mapped; `NAME.ivf.sum` holds
its size and checksum. It may have fewer rows than its matrix: the sign bits of the others are
compared.
"""

import importlib
import importlib.util
import os
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.store.checksums import checksum_bytes, is_sound
from clew.store.sign_bits import SignBits, make_sign_bits

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
MIN_IVF_ROWS = 2_000_000  # of fewer, sign bits find more of the nearest in little more time
_MAX_NEW_SHARE = 0.2  # rows that the index lacks, as a share of its own; with more it is made again
_SAMPLES_PER_CENTRE = 64  # vectors from which the centres are computed
_ROUNDS = 8  # of k-means
_BLOCK_ROWS = 1 << 16  # vectors added at a time
_LISTS_READ = 128
_QUERY_BITS = 8  # bits per dimension of the query
_COMPARED_ROWS = 64  # vectors whose checksum tells whether an index is that of its matrix


def has_faiss() -> bool:
    """Whether the extra `ann` is installed."""
    return importlib.util.find_spec("faiss") is not None


def _load_faiss() -> Any:
    return importlib.import_module("faiss")


class IvfIndex:
    """Finds candidates in the inverted lists, and among newer rows by sign bits."""

    def __init__(self, index: Any, newer: SignBits) -> None:
        self._index, self._newer = index, newer
        self._inverse: tuple[Ints, Ints, Ints] | None = None

    def __len__(self) -> int:
        """Number of rows."""
        return int(self._index.ntotal) + len(self._newer)

    def nearest_positions(self, vector: Floats, rows: Ints, most: int) -> Ints:
        """About `most` positions in `rows` (-1 for none) whose vectors are likely the nearest."""
        faiss = _load_faiss()
        how = faiss.IVFRaBitQSearchParameters()
        how.nprobe, how.qb = _LISTS_READ, _QUERY_BITS
        asked = np.ascontiguousarray(vector[None, :], np.float32)
        near = self._index.search(asked, most, params=how)[1][0]
        found = self._find_positions(rows, near[near >= 0])
        held = int(self._index.ntotal)
        newer = np.flatnonzero(rows >= held)
        if len(newer):
            newer = newer[self._newer.nearest_positions(vector, rows[newer] - held, most)]
        return np.union1d(found, newer)

    def _find_positions(self, rows: Ints, near: Ints) -> Ints:
        """Positions that point to these rows; none for rows of removed elements."""
        if self._inverse is None or self._inverse[0] is not rows:
            order = np.argsort(rows, kind="stable")
            self._inverse = rows, order, rows[order]
        _, order, ordered = self._inverse
        first, last = np.searchsorted(ordered, near), np.searchsorted(ordered, near, "right")
        parts = [order[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True) if b > a]
        return np.concatenate([np.zeros(0, np.int64), *parts])


class IvfFile:
    """The inverted lists of one vector file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loaded: IvfIndex | None = None

    def load(self, vectors: NDArray[np.floating]) -> IvfIndex | None:
        """The index with all vectors; None if there is none, or the extra is missing."""
        if self._loaded is None or len(self._loaded) != len(vectors):
            index = self._read(vectors)
            if index is None:
                return None
            self._loaded = IvfIndex(index, make_sign_bits(vectors[int(index.ntotal) :]))
        return self._loaded

    def update(self, vectors: NDArray[np.floating]) -> None:
        """Make the index again if it lacks many of the vectors."""
        held = self._read(vectors)
        rows = 0 if held is None else int(held.ntotal)
        if not has_faiss() or len(vectors) <= rows * (1 + _MAX_NEW_SHARE):
            return
        beside = self._path.with_name(f"{self._path.name}.new")
        _write_index(vectors, beside)
        self.publish(beside, vectors)

    def publish(self, made: Path, vectors: NDArray[np.floating]) -> None:
        """Put a finished file in place; after a kill in between the old one is not used."""
        sums = self._sum_path.with_name(f"{self._sum_path.name}.new")
        told = f"{_describe_content(made)} {len(vectors)} {_sum_sample(vectors)}"
        sums.write_text(told, encoding="ascii")
        sums.replace(self._sum_path)
        made.replace(self._path)
        self._loaded = None

    def is_right(self, vectors: NDArray[np.floating]) -> bool:
        """Whether the file, if there is one, is as it was written, and of these vectors."""
        if not self._path.exists():
            return True
        if not self._has_right_size() or not self._is_of(vectors):
            return False
        with self._path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as raw:
            return is_sound(raw, int(self._read_sums()[1]))

    def is_used(self, vectors: NDArray[np.floating]) -> bool:
        """Whether there is an index of these vectors, or of the first of them."""
        return self._read(vectors) is not None

    def remove(self) -> None:
        """Remove the file; the index can be made again."""
        self._path.unlink(missing_ok=True)
        self._sum_path.unlink(missing_ok=True)
        self._loaded = None

    @property
    def _sum_path(self) -> Path:
        return self._path.with_name(f"{self._path.name}.sum")

    def _read_sums(self) -> list[bytes]:
        """Size and checksum of the file, number of its vectors and checksum of some of them."""
        return self._sum_path.read_bytes().split() if self._sum_path.exists() else []

    def _is_of(self, vectors: NDArray[np.floating]) -> bool:
        """Whether it was made of these vectors, or of the first of them, as far as it says."""
        told = [int(one) for one in self._read_sums()[2:]]  # none in earlier versions
        return not told or (told[0] <= len(vectors) and told[1] == _sum_sample(vectors[: told[0]]))

    def _has_right_size(self) -> bool:
        held = self._read_sums()
        right = held[:1] == [str(self._path.stat().st_size).encode("ascii")]
        return right and len(held) > 1

    def _read(self, vectors: NDArray[np.floating]) -> Any:
        """The faiss index; None if it is missing or not of such vectors."""
        if not has_faiss() or not self._path.exists() or not self._has_right_size():
            return None
        faiss = _load_faiss()
        try:
            index = faiss.read_index(str(self._path), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
        except RuntimeError:  # damaged, or of another version of faiss
            return None
        fits = index.d == vectors.shape[1] and index.ntotal <= len(vectors)
        return index if fits and self._is_of(vectors) else None


def _sum_sample(vectors: NDArray[np.floating]) -> int:
    """A checksum of a few vectors, evenly chosen."""
    chosen = np.linspace(0, max(len(vectors) - 1, 0), _COMPARED_ROWS).astype(np.int64)
    return checksum_bytes(np.ascontiguousarray(vectors[chosen]).tobytes()) if len(vectors) else 0


def _describe_content(path: Path) -> str:
    """Size and checksum of a file, which is not read into memory."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            return "0 0"
        with mmap(file.fileno(), 0, access=ACCESS_READ) as raw:
            return f"{size} {checksum_bytes(raw)}"


def _write_index(vectors: NDArray[np.floating], path: Path) -> None:
    """Compute the centres from a sample, add all vectors block by block, and write the file."""
    faiss = _load_faiss()
    rows, width = vectors.shape
    centres = max(1, int(np.sqrt(rows)))
    # An HNSW quantiser and inner products find far fewer of the nearest: see docs/scale.md.
    quantiser = faiss.IndexFlatL2(width)  # must live as long as the index
    index = faiss.IndexIVFRaBitQ(quantiser, width, centres, faiss.METRIC_L2)
    index.cp.niter, index.cp.max_points_per_centroid = _ROUNDS, _SAMPLES_PER_CENTRE
    chosen = np.random.default_rng(0).choice(rows, min(rows, _SAMPLES_PER_CENTRE * centres), False)
    index.train(np.asarray(vectors[np.sort(chosen)], np.float32))
    for begin in range(0, rows, _BLOCK_ROWS):
        index.add(np.ascontiguousarray(vectors[begin : begin + _BLOCK_ROWS], np.float32))
    faiss.write_index(index, str(path))
