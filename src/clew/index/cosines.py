"""Cosines of stored vectors with one vector.

The compiled kernels multiply rows where they are. Without them selected rows are copied, and
vectors of 16-bit numbers are widened a few rows at a time. The numbers are stored in such an order
of bits that shifting them gives 32-bit numbers which are all too small by the same power of two;
that is made up for in the vector they are multiplied with. Nothing is rounded on the way, and it
takes a fifth of the time of numpy's conversion.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew import kernels
from clew.graph.csr import Floats, Ints, Mask

Matrix = NDArray[np.floating]
"""Vectors by row; many of them may be 16-bit numbers, which are widened before they are used."""
_COSINE_DIGITS = 5
_COPIED_ROWS = 8192  # rows of 32-bit numbers that are copied at a time
_WIDENED_ROWS = 256  # rows of 16-bit numbers at a time: they stay in the processor's cache
# Products of a block of rows that numpy's BLAS (OpenBLAS) multiplies on the calling thread.
_BLOCK_PRODUCTS = 2**18
_FULL_SCAN_SHARE = 0.25  # share of all vectors from which a full scan is faster
# A 16-bit number has 10 bits of fraction and 5 of exponent, a 32-bit one 23 and 8.
_FRACTION_SHIFT = 23 - 10
_EXPONENT_SCALE = np.float32(2.0 ** (127 - 15))
_KEPT_BITS = np.uint32(0x8FFFE000).view(np.int32)  # sign, and what is left of the 15 others


@dataclass(frozen=True, slots=True)
class RowCosines:
    """Compares elements, which have these rows of a matrix (below 0: none), with a vector."""

    matrix: Matrix
    rows: Ints
    vector: Floats

    def __call__(self, positions: Ints, /) -> Floats:
        """Cosines of the elements at some positions; -1 where there is no vector."""
        return score_rows(self.matrix, self.rows[positions], self.vector)

    def prepare(self, known: Mask, values: Floats) -> Callable[[Ints], Floats] | None:
        """The same in one pass where loops are compiled: only what is not known is compared."""
        compiled, vector = kernels.COMPILED, self.vector
        if compiled is None or not compiled.can_dot(self.matrix) or vector.dtype != np.float32:
            return None
        return compiled.prepare_settling((self.matrix, self.rows, vector), known, values)


def score_rows(matrix: Matrix, rows: Ints, vector: Floats) -> Floats:
    """Dot product of some rows of a matrix with a vector; -1 for rows below 0."""
    compiled = kernels.COMPILED
    if compiled is not None and compiled.can_dot(matrix):
        found = compiled.score_groups(matrix, rows, [len(rows)], vector[None])
        if found is None:
            found = score_rows_together(compiled, matrix, rows, vector[None])[0]
        return found
    scores = np.empty(len(rows), np.float32)
    # Selected rows are copied: for many of them a scan of the whole matrix is faster.
    if matrix.dtype == np.float32 and len(rows) > _FULL_SCAN_SHARE * len(matrix):
        scores[:] = (matrix @ vector)[rows]
    elif matrix.dtype == np.float16:
        _score_halves(matrix, np.maximum(rows, 0), vector, scores)
    else:
        for at in range(0, len(rows), _COPIED_ROWS):
            some = np.maximum(rows[at : at + _COPIED_ROWS], 0)
            scores[at : at + _COPIED_ROWS] = np.asarray(matrix[some], np.float32) @ vector
    scores[rows < 0] = -1
    return round_cosines(scores)


def score_rows_together(
    compiled: kernels.Kernels, matrix: Matrix, rows: Ints, vectors: Floats
) -> Floats:
    """Vectors × rows: as `score_rows` of each vector, but a row is read once for all of them."""
    if not len(rows) or rows.min() >= 0:
        return round_cosines(compiled.dot_rows(matrix, rows, vectors))
    scores = compiled.dot_rows(matrix, np.maximum(rows, 0), vectors)
    scores[:, rows < 0] = -1
    return round_cosines(scores)


def _score_halves(matrix: Matrix, rows: Ints, vector: Floats, scores: Floats) -> None:
    """Fill in the dot products of rows of 16-bit numbers."""
    scaled = vector * _EXPONENT_SCALE
    for at in range(0, len(rows), _WIDENED_ROWS):
        some = matrix[rows[at : at + _WIDENED_ROWS]]
        scores[at : at + _WIDENED_ROWS] = _widen_small(some) @ scaled


def _widen_small(halves: Matrix) -> Floats:
    """16-bit numbers (finite ones) as 32-bit numbers, all too small by `_EXPONENT_SCALE`."""
    bits = halves.view(np.int16).astype(np.int32)  # the sign is repeated in the upper half
    bits <<= _FRACTION_SHIFT
    bits &= _KEPT_BITS
    return bits.view(np.float32)


def widen_rows(matrix: Matrix, rows: Ints) -> Floats:
    """Copy some rows of a matrix, as 32-bit numbers."""
    if matrix.dtype == np.float16:
        found: Floats = _widen_small(matrix[rows])
        found *= _EXPONENT_SCALE
        return found
    return np.asarray(matrix[rows], np.float32)


def compare_rows(rows: Floats) -> Floats:
    """Dot product of each row of a small table with every other, on the calling thread alone.

    Where other threads have work to do, handing parts of so small a product to one of them and
    waiting for it takes fifty times as long as the product.
    """
    found = np.empty((len(rows), len(rows)), np.float32)
    at = 0
    while at < len(rows):
        rest = rows[at:]  # the others were compared with these already
        end = at + max(1, _BLOCK_PRODUCTS // max(1, rest.size))
        np.matmul(rows[at:end], rest.T, out=found[at:end, at:])
        found[end:, at:end] = found[at:end, end:].T
        at = end
    return found


def round_cosines(scores: Floats) -> Floats:
    """Drop the last digits: they depend on where a row lies, and equal texts have to be equal."""
    found: Floats = np.round(scores, _COSINE_DIGITS)
    return found
