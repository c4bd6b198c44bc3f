"""Sign bits of vectors: 1 bit per dimension, compared by Hamming distance.

The angle between two vectors grows with the number of dimensions whose signs differ, so the vectors
with few differing bits are the ones worth comparing exactly. The bits of a vector file are stored
in `NAME.signs.npy`, in blocks of `BLOCK_ROWS` rows that are never changed once written; rows after
the last whole block are computed when they are first used.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clew import kernels
from clew.store.append_files import READ_ERRORS, append_rows

Words = NDArray[np.uint64]
Floats = NDArray[np.float32]
Matrix = NDArray[np.floating]
Distances = NDArray[np.uint16]
BLOCK_ROWS = 1 << 12  # few enough that a reader soon has those after the last whole block
_BLOCKS_PER_WRITE = 16  # each write waits for the disk
_WORD_BITS = 64
_BLOCK_DIMENSIONS = 3  # of the array of all blocks
_COMPARED_ROWS = 1 << 13
_SUMMED_WORDS = 3
_COMPARED_BLOCKS = 16  # of which a row is compared with its vector, whenever a file is read
COUNTED_ROWS = 1 << 14  # rows that are enough to tell how many have each distance
_MIXING = np.uint64(0x9E3779B97F4A7C15)  # odd, so that the high bits depend on all others


@dataclass(frozen=True, slots=True)
class SignBits:
    """The sign bits of all rows of a matrix, word by word within each block."""

    blocks: Words
    """Blocks × words × `BLOCK_ROWS`: the rows of whole blocks, usually memory-mapped."""
    tail: Words
    """Words × rows: the rows that follow."""
    _whole: dict[int, NDArray[np.int64]] = field(default_factory=dict, compare=False)
    """Row numbers that were found to be those of all rows, by the array's identity."""
    _last: dict[str, tuple[NDArray[np.int64], "_Places | None"]] = field(
        default_factory=dict, compare=False
    )
    """Row numbers that were asked for last, and the position of each row in them."""
    _sampled: dict[str, tuple[NDArray[np.int64], NDArray[np.int64] | None]] = field(
        default_factory=dict, compare=False
    )
    """Row numbers that were asked for last, and the positions of some of them."""

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.blocks) * BLOCK_ROWS + int(self.tail.shape[1])

    def distances(self, vector: Floats) -> Distances:
        """Number of dimensions in which each row has another sign than `vector`."""
        found: Distances = self.distances_from(vector[None])[0]
        return found

    def distances_from(self, vectors: Floats) -> Distances:
        """Vectors × rows: the same for each vector; of two, a row is read once for both."""
        asked = pack_signs(vectors)
        found = np.empty((len(vectors), len(self)), np.uint16)
        compiled = kernels.COMPILED
        if compiled is not None and self.blocks.flags.c_contiguous and self.tail.flags.c_contiguous:
            stored = len(self.blocks) * BLOCK_ROWS
            compiled.count_differing_bits(self.blocks, asked.T, found[:, :stored])
            compiled.count_differing_bits(self.tail[None], asked.T, found[:, stored:])
            return found
        for at, out in enumerate(found):
            self._count_with_numpy(asked[:, at : at + 1], out)
        return found

    def _count_with_numpy(self, asked: Words, found: Distances) -> None:
        """Fill in the numbers of differing bits, a few rows at a time."""
        bits = np.empty((len(asked), _COMPARED_ROWS), np.uint64)
        counts = np.empty(bits.shape, np.uint8)
        begin = 0
        for part in self._iterate_parts():
            end = begin + part.shape[1]
            differing, counted = bits[:, : end - begin], counts[:, : end - begin]
            np.bitwise_xor(part, asked, out=differing)
            np.bitwise_count(differing, out=counted)
            _sum_counts(counted, found[begin:end])
            begin = end

    def nearest_positions(
        self, vector: Floats, rows: NDArray[np.int64], most: int
    ) -> NDArray[np.int64]:
        """Positions in `rows` of those with the fewest differing bits: `most`, and their ties.

        Rows that nobody points to are not looked at; positions without a row are left out.
        """
        places = self._find_places(rows)
        if places is None:
            distances = self.distances_of(vector, rows)
            counts = count_distances(distances, len(vector), self.find_sample(rows))
            return find_within(distances, find_limit(counts, most), most)
        distances = self.distances(vector)
        counts = _count_each(distances, len(vector), places.sample)
        limit = find_limit(counts * (len(rows) // max(1, len(places.sample))), most)
        found = places.of_row[find_within(distances, limit, most)]
        others = places.others[distances[rows[places.others]] <= limit]
        return np.sort(np.concatenate([found[found >= 0], others]))

    def distances_of(self, vector: Floats, rows: NDArray[np.int64]) -> Distances:
        """Number of differing dimensions of some rows; more than there are for rows below 0."""
        return self.take_rows(self.distances(vector), rows, len(vector))

    def take_rows(
        self, distances: Distances, rows: NDArray[np.int64], dimensions: int
    ) -> Distances:
        """The distances of some of all rows; one more than there are `dimensions` below 0."""
        no_row = np.uint16(dimensions + 1)
        if len(rows) == len(distances) and self._is_whole(rows):
            return distances
        if kernels.COMPILED is not None:
            return kernels.COMPILED.take_distances(distances, rows, int(no_row))
        has_row = rows >= 0
        if has_row.all():
            return distances[rows]
        found: Distances = np.where(has_row, distances[np.where(has_row, rows, 0)], no_row)
        return found

    def _find_places(self, rows: NDArray[np.int64]) -> "_Places | None":
        """The position of each row; None if it is not known.

        It is made when the same rows are asked for again: once takes longer than without. Where
        most elements share a row there is none.
        """
        asked, places = self._last.get("again", (None, None))
        if asked is rows:
            return places
        if self._last.get("once", (None, None))[0] is not rows:
            self._last["once"] = rows, None
            return None
        places = _invert(rows, len(self), self.find_sample(rows))
        self._last["again"] = rows, places
        return places

    def find_sample(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Positions of some of very many rows, to count with; None: all are to be counted.

        They are chosen by their bits, so that it does not matter in which order rows were written.
        """
        held = self._sampled.get("last")
        if held is None or held[0] is not rows:
            held = self._sampled["last"] = rows, self._choose_sample(rows)
        return held[1]

    def _choose_sample(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        bits = (len(rows) // COUNTED_ROWS).bit_length() - 1
        if bits < 1:
            return None
        compiled, shift = kernels.COMPILED, _WORD_BITS - bits
        if compiled is not None and self.blocks.flags.c_contiguous and self.tail.flags.c_contiguous:
            found = compiled.sample_rows((self.blocks, self.tail), rows, int(_MIXING), shift)
        else:
            words = np.concatenate([*(block[0] for block in self.blocks), self.tail[0]])
            chosen = words * _MIXING >> np.uint64(shift) == 0
            found = np.flatnonzero((rows >= 0) & chosen[rows])
        # Of many rows with the same bits either all or none are chosen: then all are counted.
        usual = len(rows) >> bits
        return found if usual // 2 < len(found) < 2 * usual else None

    def _is_whole(self, rows: NDArray[np.int64]) -> bool:
        """Whether row numbers are those of all rows; the last array is remembered."""
        if self._whole.get(id(rows)) is rows:
            return True
        found = _is_identity(rows)
        if found:
            self._whole.clear()
            self._whole[id(rows)] = rows
        return found

    def _iterate_parts(self) -> Iterator[Words]:
        """Pieces of blocks so small that a comparison stays in the processor's nearest cache."""
        for block in (*np.asarray(self.blocks), self.tail):
            for begin in range(0, block.shape[1], _COMPARED_ROWS):
                yield block[:, begin : begin + _COMPARED_ROWS]


def _sum_counts(counts: NDArray[np.uint8], out: Distances) -> None:
    """Sum counts of at most 64 by column; three of them fit into a byte, which is quick."""
    out[:] = 0
    for first in range(0, len(counts), _SUMMED_WORDS):
        summed = counts[first]
        for other in counts[first + 1 : first + _SUMMED_WORDS]:
            summed = summed + other
        out += summed


def count_distances(
    distances: Distances, dimensions: int, sample: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """How many rows have each distance, from 0 to the number of dimensions; by a `sample` about."""
    step = len(distances) // max(1, len(distances if sample is None else sample))
    return _count_each(distances, dimensions, sample) * step


def _count_each(
    distances: Distances, dimensions: int, sample: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """How many of a sample, or of all, have each distance; rows without a vector do not count."""
    compiled = kernels.COMPILED
    if compiled is not None and distances.flags.c_contiguous:
        return compiled.count_each(distances, sample, dimensions + 2)[: dimensions + 1]
    counted = distances if sample is None else distances[sample]
    return np.bincount(counted, minlength=dimensions + 2)[: dimensions + 1]


@dataclass(frozen=True, slots=True)
class _Places:
    """Where rows stand in row numbers that were asked for."""

    of_row: NDArray[np.int32]
    """A position of each row, -1 for none."""
    others: NDArray[np.int64]
    """The other positions: those with a row of another."""
    sample: NDArray[np.int64]
    """Some of the rows, to tell how many have each distance."""


def _invert(
    rows: NDArray[np.int64], count: int, sample: NDArray[np.int64] | None
) -> _Places | None:
    """The position of each of `count` rows; None where most positions share one."""
    if not len(rows) or rows.max() >= count:
        return None
    place, positions = np.full(count, -1, np.int32), np.arange(len(rows), dtype=np.int32)
    counted = rows if sample is None else rows[sample]
    counted = counted[counted >= 0]
    if rows.min() < 0:
        positions = positions[rows >= 0]
        rows = rows[positions]
    place[rows] = positions
    others = positions[place[rows] != positions].astype(np.int64)
    return None if len(others) > len(positions) // 2 else _Places(place, others, counted)


def find_within(distances: Distances, limit: int, most: int) -> NDArray[np.int64]:
    """Positions of distances up to a limit, of which `most` or somewhat more are expected."""
    if kernels.COMPILED is not None and distances.flags.c_contiguous:
        return kernels.COMPILED.find_within(distances, limit, 2 * most)
    return np.flatnonzero(distances <= limit)


def find_limit(counts: NDArray[np.int64], most: int) -> int:
    """The distance that at least `most` rows (or all) do not exceed, and few more than these."""
    return min(int(np.searchsorted(np.cumsum(counts), most)), len(counts) - 1)


def _is_identity(rows: NDArray[np.int64]) -> bool:
    """Whether row numbers count up from 0, tested on a few before all are compared."""
    probe = np.arange(0, len(rows), max(1, len(rows) // 16))
    return bool(np.array_equal(rows[probe], probe)) and bool(
        np.array_equal(rows, np.arange(len(rows)))
    )


def pack_signs(vectors: Matrix) -> Words:
    """Sign bits of vectors (positive or not), as words × rows."""
    # As integers, positive numbers are positive, too; those are compared far faster.
    numbers = vectors.view(f"i{vectors.dtype.itemsize}")
    bits = np.packbits(numbers > 0, axis=1)
    width = -(-vectors.shape[1] // _WORD_BITS) * (_WORD_BITS // 8)
    padded = np.zeros((len(bits), width), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view(np.uint64).T)


def make_sign_bits(vectors: Matrix, blocks: Words | None = None) -> SignBits:
    """Sign bits of a matrix whose first rows may be known already, in whole `blocks`."""
    if blocks is None:
        blocks = np.zeros((0, *_block_shape(vectors)), np.uint64)
    blocks = blocks[: len(vectors) // BLOCK_ROWS]
    rest = range(len(blocks) * BLOCK_ROWS, len(vectors), BLOCK_ROWS)
    parts = [pack_signs(vectors[begin : begin + BLOCK_ROWS]) for begin in rest]
    tail = np.concatenate(parts, axis=1) if parts else np.zeros((blocks.shape[1], 0), np.uint64)
    return SignBits(blocks, tail)


class SignFile:
    """The sign bits of one vector file: whole blocks on disk, the rest in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loaded: SignBits | None = None

    def load(self, vectors: Matrix) -> SignBits:
        """Sign bits of all vectors; those that are not in the file are computed once."""
        if self._loaded is None or len(self._loaded) != len(vectors):
            self._loaded = make_sign_bits(vectors, self._map_blocks(vectors, larger=True))
        return self._loaded

    def extend(self, vectors: Matrix) -> None:
        """Append the whole blocks that the file lacks."""
        held = self._map_blocks(vectors)
        if held is None:
            self.remove()
        first, last = 0 if held is None else len(held), len(vectors) // BLOCK_ROWS
        for begin in range(first, last, _BLOCKS_PER_WRITE):
            blocks = range(begin, min(last, begin + _BLOCKS_PER_WRITE))
            packed = [pack_signs(_rows_of(vectors, block)) for block in blocks]
            append_rows(self._path, np.stack(packed), begin)
        self._loaded = None if last > first else self._loaded

    def lacks_blocks(self, vectors: Matrix) -> bool:
        """Whether the file is missing, of other vectors, or lacks whole blocks of these."""
        held = self._map_blocks(vectors, larger=True)
        return held is None or len(held) < len(vectors) // BLOCK_ROWS

    def is_right(self, vectors: Matrix) -> bool:
        """Whether the file, if there is one, holds the sign bits of these vectors."""
        held = self._map_blocks(vectors, larger=True)
        if held is None:
            return not self._path.exists()
        return len(held) <= len(vectors) // BLOCK_ROWS and all(
            np.array_equal(block, pack_signs(_rows_of(vectors, at)))
            for at, block in enumerate(held)
        )

    def remove(self) -> None:
        """Remove the file; the sign bits can be computed again."""
        self._path.unlink(missing_ok=True)
        self._loaded = None

    def _map_blocks(self, vectors: Matrix, *, larger: bool = False) -> Words | None:
        """The blocks of the file; None if it is missing or not of such vectors.

        The `larger` blocks of an earlier version are split; a write makes the file again.
        """
        try:
            blocks: Words = np.load(self._path, mmap_mode="r", allow_pickle=False)
        except (FileNotFoundError, *READ_ERRORS):
            return None
        if larger and blocks.ndim == _BLOCK_DIMENSIONS and blocks.shape[2] > BLOCK_ROWS:
            blocks = _split_blocks(blocks)
        fits = blocks.dtype == np.uint64 and blocks.shape[1:] == _block_shape(vectors)
        return blocks if fits and _are_of(blocks, vectors) else None


def _split_blocks(blocks: Words) -> Words:
    """The same in blocks of `BLOCK_ROWS` rows; as they are where these do not fit into them."""
    number, words, rows = blocks.shape
    if rows % BLOCK_ROWS:
        return blocks
    parts = np.asarray(blocks).reshape(number, words, -1, BLOCK_ROWS).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(parts).reshape(-1, words, BLOCK_ROWS)


def _are_of(blocks: Words, vectors: Matrix) -> bool:
    """Whether some rows have the signs of their vectors; a file may be that of other vectors."""
    most = min(len(blocks), len(vectors) // BLOCK_ROWS)
    # Not np.unique: its first use takes longer than all else here.
    spread = sorted(set(np.linspace(0, most - 1, _COMPARED_BLOCKS).astype(np.int64).tolist()))
    chosen = np.array(spread[: max(most, 0)], np.int64)
    signs = pack_signs(np.ascontiguousarray(vectors[chosen * BLOCK_ROWS])) if most else blocks[:0]
    return not most or np.array_equal(blocks[chosen, :, 0].T, signs)


def _block_shape(vectors: Matrix) -> tuple[int, int]:
    return -(-vectors.shape[1] // _WORD_BITS), BLOCK_ROWS


def _rows_of(vectors: Matrix, block: int) -> Matrix:
    return vectors[block * BLOCK_ROWS : (block + 1) * BLOCK_ROWS]
