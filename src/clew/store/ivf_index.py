"""Index of very many vectors by faiss (extra `ann`): inverted lists of RaBitQ codes.

A vector is in the list of its nearest centre, as a code of one bit per dimension; a query looks
into the nearest lists only: as many as were found to be enough when the index was made. It lies in
`NAME.ivf` and is memory-mapped; `NAME.ivf.sum` holds its size and checksum, and how many lists are
read. It may have fewer rows than its matrix: the sign bits of the others are compared.
"""

import importlib
import importlib.util
import os
from collections.abc import Sequence
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.store.append_files import READ_ERRORS
from clew.store.checksums import checksum_bytes, is_sound
from clew.store.sign_bits import SignBits, make_sign_bits

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
MIN_IVF_ROWS = 2_000_000  # of fewer, sign bits find more of the nearest in little more time
_MAX_NEW_SHARE = 0.2  # rows that the index lacks, as a share of its own; with more it is made again
_SAMPLES_PER_CENTRE = 64  # vectors from which the centres are computed
_ROUNDS = 8  # of k-means
_BLOCK_ROWS = 1 << 16  # vectors added at a time
_LISTS_READ = 128  # of an index that does not say how many are enough
FEWEST_READ = 32  # lists
_MORE_READ = 1.5  # times as many are tried next
_MIN_RECALL = 0.98  # of the exact best ten that the lists read must hold, for each kind of query
_BEST, CANDIDATES = 10, 2600  # as many candidates as a search for the best ten compares exactly
_QUERIES = 64  # of each kind
_QUERY_BITS = 8  # bits per dimension of the query
_COMPARED_ROWS = 64  # vectors whose checksum tells whether an index is that of its matrix


def has_faiss() -> bool:
    """Whether the extra `ann` is installed."""
    return importlib.util.find_spec("faiss") is not None


def load_faiss() -> Any:
    """Return the module of the extra `ann`."""
    return importlib.import_module("faiss")


class IvfIndex:
    """Finds candidates in the inverted lists, and among newer rows by sign bits."""

    def __init__(self, index: Any, newer: SignBits, lists: int) -> None:
        self._index, self._newer, self.lists = index, newer, lists
        self._inverse: tuple[Ints, Ints, Ints] | None = None

    def __len__(self) -> int:
        """Number of rows."""
        return int(self._index.ntotal) + len(self._newer)

    def with_lists(self, lists: int) -> "IvfIndex":
        """The same index, of which a query reads so many lists."""
        return IvfIndex(self._index, self._newer, lists)

    def nearest_positions(self, vector: Floats, rows: Ints, most: int) -> Ints:
        """About `most` positions in `rows` (-1 for none) whose vectors are likely the nearest."""
        near = _search(self._index, vector[None, :], most, self.lists)[0]
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
            newer = make_sign_bits(vectors[int(index.ntotal) :])
            self._loaded = IvfIndex(index, newer, self._read_lists())
        return self._loaded

    def update(self, vectors: NDArray[np.floating]) -> None:
        """Make the index again if it lacks many of the vectors."""
        held = self._read(vectors)
        rows = 0 if held is None else int(held.ntotal)
        if not has_faiss() or len(vectors) <= rows * (1 + _MAX_NEW_SHARE):
            return
        beside = self._path.with_name(f"{self._path.name}.new")
        _write_index(vectors, beside)
        lists = choose_lists(
            _map_index(beside), vectors, [vectors, *self._map_other_kinds(vectors.shape[1])]
        )
        self.publish(beside, vectors, lists)

    def _map_other_kinds(self, width: int) -> list[NDArray[np.floating]]:
        """The vectors of other kinds beside these: a question is as unlike these as they are."""
        found = []
        for path in sorted(self._path.parent.glob("*.npy")):
            if "." not in path.stem and path.stem != self._path.stem:
                with suppress(FileNotFoundError, *READ_ERRORS):
                    found.append(np.load(path, mmap_mode="r", allow_pickle=False))
        return [one for one in found if one.shape[1:] == (width,) and len(one) >= _QUERIES]

    def publish(self, made: Path, vectors: NDArray[np.floating], lists: int = _LISTS_READ) -> None:
        """Put a finished file in place; after a kill in between the old one is not used."""
        sums = self._sum_path.with_name(f"{self._sum_path.name}.new")
        told = f"{_describe_content(made)} {len(vectors)} {_sum_sample(vectors)} {lists}"
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
        """Size and checksum of the file, number of its vectors, checksum of some, lists to read."""
        return self._sum_path.read_bytes().split() if self._sum_path.exists() else []

    def _read_lists(self) -> int:
        """How many lists a query reads; earlier versions did not say."""
        told = self._read_sums()[4:]
        return int(told[0]) if told else _LISTS_READ

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
        try:
            index = _map_index(self._path)
        except RuntimeError:  # damaged, or of another version of faiss
            return None
        fits = index.d == vectors.shape[1] and index.ntotal <= len(vectors)
        return index if fits and self._is_of(vectors) else None


def _map_index(path: Path) -> Any:
    faiss = load_faiss()
    return faiss.read_index(str(path), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)


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


def _search(index: Any, queries: NDArray[np.floating], most: int, lists: int) -> Ints:
    """The rows nearest to each query in so many lists; -1 where there are no more."""
    how = load_faiss().IVFRaBitQSearchParameters()
    how.nprobe, how.qb = min(lists, int(index.nlist)), _QUERY_BITS
    found: Ints = index.search(np.ascontiguousarray(queries, np.float32), most, params=how)[1]
    return found


def choose_lists(
    index: Any, vectors: NDArray[np.floating], asked: Sequence[NDArray[np.floating]]
) -> int:
    """The fewest lists that hold nearly all of the exact nearest of a sample of each kind asked.

    Where even all lists hold fewer, the fewest that hold about as many.
    """
    samples = [_sample_rows(one) for one in asked if len(one)]
    exact = [_find_exact(vectors, queries) for queries in samples]
    measured: list[tuple[int, float]] = []
    lists = FEWEST_READ
    while not measured or lists < int(index.nlist) * _MORE_READ:
        recalls = [
            _measure_recall(_search(index, queries, CANDIDATES, lists), best)
            for queries, best in zip(samples, exact, strict=True)
        ]
        measured.append((min(lists, int(index.nlist)), min(recalls)))
        if measured[-1][1] >= _MIN_RECALL:
            return measured[-1][0]
        lists = int(lists * _MORE_READ)
    most = max(recall for _, recall in measured)
    return next(lists for lists, recall in measured if recall >= most - (1 - _MIN_RECALL) / 10)


def _sample_rows(vectors: NDArray[np.floating]) -> Floats:
    chosen = np.random.default_rng(1).choice(len(vectors), min(len(vectors), _QUERIES), False)
    return np.asarray(vectors[np.sort(chosen)], np.float32)


def _find_exact(vectors: NDArray[np.floating], queries: Floats) -> Ints:
    """The rows with the highest products, for each query, found block by block."""
    scores = np.zeros((len(queries), 0), np.float32)
    rows = np.zeros((len(queries), 0), np.int64)
    for begin in range(0, len(vectors), _BLOCK_ROWS):
        block = np.asarray(vectors[begin : begin + _BLOCK_ROWS], np.float32)
        scores = np.concatenate([scores, queries @ block.T], axis=1)
        fresh = np.broadcast_to(np.arange(begin, begin + len(block)), (len(queries), len(block)))
        rows = np.concatenate([rows, fresh], axis=1)
        best = np.argpartition(-scores, min(_BEST, scores.shape[1]) - 1, axis=1)[:, :_BEST]
        scores, rows = np.take_along_axis(scores, best, 1), np.take_along_axis(rows, best, 1)
    return rows


def _measure_recall(found: Ints, exact: Ints) -> float:
    shares = [np.isin(best, near).mean() for near, best in zip(found, exact, strict=True)]
    return float(np.mean(shares))


def _write_index(vectors: NDArray[np.floating], path: Path) -> None:
    """Compute the centres from a sample, add all vectors block by block, and write the file."""
    faiss = load_faiss()
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
