"""Checksums of files, vectors and table rows: fast enough to be checked whenever they are used.

They detect damage (flipped bits, lost or swapped blocks, truncation), not tampering.
"""

from functools import lru_cache
from math import gcd
from mmap import mmap
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from clew import kernels

Sums = NDArray[np.uint64]
_BLOCK_BYTES = 512  # summed together, which is several times faster than a CRC of every byte
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)  # odd: bits spread upwards


class FileSum(NamedTuple):
    """Size and checksum of a file, and the CRC of its whole blocks from which it is continued."""

    size: int
    checksum: int
    blocks: int | None = None
    """None if an earlier version did not write it."""


def sum_file(raw: bytes | mmap | memoryview, begin: FileSum | None = None) -> FileSum:
    """Checksum of a file's bytes: a CRC of the sums of its 512-byte blocks.

    Whole blocks of a beginning whose sum is known are not read again.
    """
    data = np.frombuffer(raw, np.uint8)
    known, crc = 0, 0
    if begin is not None and begin.blocks is not None:
        known, crc = begin.size // _BLOCK_BYTES * _BLOCK_BYTES, begin.blocks
    return _sum_data(data, known, crc, by_place=True)


def _sum_data(data: NDArray[np.uint8], known: int, crc: int, *, by_place: bool) -> FileSum:
    whole = len(data) // _BLOCK_BYTES * _BLOCK_BYTES
    sums = _sum_rows(data[known:whole].reshape(-1, _BLOCK_BYTES), by_place)
    blocks = crc32(sums.tobytes(), crc)
    tail = crc32(data[whole:].tobytes(), blocks)
    return FileSum(len(data), crc32(len(data).to_bytes(8, "little"), tail), blocks)


def checksum_bytes(raw: bytes | mmap, *, by_place: bool = True) -> int:
    """The same of a file as a number.

    Earlier versions did not weigh words by their place in a block: see `is_sound`.
    """
    return _sum_data(np.frombuffer(raw, np.uint8), 0, 0, by_place=by_place).checksum


def is_sound(raw: bytes | mmap, checksum: int) -> bool:
    """Whether the bytes have this checksum, by today's rule or by that of earlier versions."""
    return any(checksum == checksum_bytes(raw, by_place=rule) for rule in (True, False))


def checksum_vectors(hashes: Sums, vectors: NDArray[np.floating], *, by_place: bool = True) -> Sums:
    """Checksum of each row, over its vector and its content hash (n × 2 words)."""
    found: Sums = _sum_rows(vectors, by_place) * _FACTORS[0]
    found ^= (hashes * _FACTORS).sum(axis=1, dtype=np.uint64)
    return found


def _sum_rows(rows: NDArray[np.generic], by_place: bool) -> Sums:
    """Sum of the words of each row, each weighed by its place, modulo 2^64.

    Words of 32 bits: the difference of two of them times that of their weights is never 0 modulo
    2^64, so that no two words can change places unnoticed.
    """
    width = rows.shape[1] * rows.itemsize
    words = rows.view(f"u{gcd(width, 4 if by_place else 8)}")
    if not by_place:
        plain: Sums = words.sum(axis=1, dtype=np.uint64)
        return plain
    weights, compiled = _weigh_places(words.shape[1]), kernels.COMPILED
    if compiled is not None and words.dtype == np.uint32 and words.flags.c_contiguous:
        return compiled.sum_words(words, weights)
    weighed: Sums = np.einsum("ij,j->i", words, weights)
    return weighed


@lru_cache(maxsize=64)
def _weigh_places(width: int) -> Sums:
    places = np.arange(1, width + 1, dtype=np.uint64) * _FACTORS[0]
    weights: Sums = ((places ^ (places >> np.uint64(29))) * _FACTORS[1]) | np.uint64(1)
    return weights


def checksum_cells(*cells: object) -> int:
    """Checksum of a table row; the separator keeps neighbouring cells apart."""
    return crc32("\x1f".join(map(str, cells)).encode("utf-8", "surrogatepass"))
