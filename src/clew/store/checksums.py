"""Checksums of files, vectors and table rows: fast enough to be checked whenever they are used.

They detect damage (flipped bits, lost or swapped blocks, truncation), not tampering.
"""

from math import gcd
from mmap import mmap
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Sums = NDArray[np.uint64]
_BLOCK_WORDS = 64  # 8-byte words summed together; swapped disk sectors are still noticed
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)  # odd: bits spread upwards


def checksum_bytes(raw: bytes | mmap) -> int:
    """Checksum of a file's bytes: a CRC of the sums of its 512-byte blocks."""
    data = np.frombuffer(raw, np.uint8)
    whole = len(data) // (8 * _BLOCK_WORDS) * (8 * _BLOCK_WORDS)
    # Summing is several times faster than a CRC of every byte.
    sums = data[:whole].view(np.uint64).reshape(-1, _BLOCK_WORDS).sum(axis=1, dtype=np.uint64)
    tail = crc32(data[whole:].tobytes(), crc32(sums.tobytes()))
    return crc32(len(data).to_bytes(8, "little"), tail)


def checksum_vectors(hashes: Sums, vectors: NDArray[np.floating]) -> Sums:
    """Checksum of each row, over its vector and its content hash (n × 2 words)."""
    width = vectors.shape[1] * vectors.itemsize
    words = vectors.view(f"u{gcd(width, 8)}")
    found: Sums = words.sum(axis=1, dtype=np.uint64) * _FACTORS[0]
    found ^= (hashes * _FACTORS).sum(axis=1, dtype=np.uint64)
    return found


def checksum_cells(*cells: object) -> int:
    """Checksum of a table row; the separator keeps neighbouring cells apart."""
    return crc32("\x1f".join(map(str, cells)).encode("utf-8", "surrogatepass"))
