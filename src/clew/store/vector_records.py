"""The rows of vector files: their hashes and checksums, and what of them is right."""

from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from clew.errors import StoreError
from clew.store.append_files import HEADER_BYTES, READ_ERRORS
from clew.store.checksums import checksum_vectors
from clew.text.unicode import hash64

Records = NDArray[np.void]
Stored = NDArray[np.floating]
Shape = tuple[int, int]
HASH_DTYPE = np.dtype("V16")
RECORD_DTYPE = np.dtype([("hash", HASH_DTYPE), ("sum", np.uint64)])
RECORD_BYTES = np.dtype("V24")  # how a record is declared in the file
NO_RECORDS: Records = np.zeros(0, RECORD_DTYPE)
_MAX_READ_BYTES = 1 << 18
_LOOKED_AT_ROWS = 8192  # per block of all rows
HALF, SINGLE = np.dtype(np.float16), np.dtype(np.float32)
STORED: np.dtype[np.floating] = HALF
"""What numbers vectors are stored as."""


class DamagedVectors(StoreError):  # noqa: N818  (reads as what happened)
    """The vector files cannot be read; the vectors can be computed again."""


def map_file(path: Path) -> NDArray[Any]:
    """The rows of a file; a mapped one keeps a handle open, so a small one is read."""
    how: Literal["r"] | None = "r" if path.stat().st_size > _MAX_READ_BYTES else None
    return np.asarray(np.load(path, mmap_mode=how, allow_pickle=False))


def load_records(path: Path) -> Records:
    """The rows of a hash file; those of version 0.1 have no checksum, which is 0."""
    try:
        held = map_file(path)
    except READ_ERRORS as error:
        raise damage_error(path, error) from error
    if held.ndim == 1 and held.dtype == RECORD_BYTES:
        held.flags.writeable = False
        return held.view(RECORD_DTYPE)
    if held.ndim != 1 or held.dtype != HASH_DTYPE:
        raise damage_error(path, "its header is not that of hashes")
    records: Records = np.zeros(len(held), RECORD_DTYPE)
    records["hash"] = held
    return records


def make_records(path: Path, hashes: NDArray[np.void], vectors: Stored) -> Records:
    """Hashes with the checksums of their vectors; none for unused rows."""
    records: Records = np.zeros(len(hashes), RECORD_DTYPE)
    records["hash"] = hashes
    records["sum"] = np.where(is_unused(records), 0, compute_sums(path, records, vectors))
    return records


def compute_sums(
    path: Path, records: Records, vectors: Stored, *, by_place: bool = True
) -> NDArray[np.uint64]:
    """Checksums by row; they depend on the file's name, so that files cannot be swapped."""
    seed = np.uint64(hash64(f"{path.parent.name}/{path.name}"))
    words, vectors = view_words(records), np.ascontiguousarray(vectors)
    sums = checksum_vectors(words, vectors, by_place=by_place) ^ seed
    return np.where(sums == 0, np.uint64(1), sums)  # 0 says that there is none


def is_right(path: Path, records: Records, vectors: Stored) -> NDArray[np.bool_]:
    """Whether each row has its checksum, or none; sums of earlier versions count."""
    if not len(records):
        return np.zeros(0, np.bool_)
    held = records["sum"]
    right: NDArray[np.bool_] = (held == compute_sums(path, records, vectors)) | (held == 0)
    if not right.all():
        right |= held == compute_sums(path, records, vectors, by_place=False)
    return right


def have_sums(records: Records) -> bool:
    """Whether every row in use has a checksum."""
    return bool(records["sum"].all()) or bool((is_unused(records) | (records["sum"] != 0)).all())


def view_words(records: Records) -> NDArray[np.uint64]:
    """The hashes as two words each, where they lie."""
    return records.view(np.uint64).reshape(-1, 3)[:, :2]


def is_unused(records: Records) -> NDArray[np.bool_]:
    """Whether rows hold no vector: it was lost to damage, or erased."""
    words = view_words(records)
    unused: NDArray[np.bool_] = words[:, 0] == 0
    if unused.any():
        unused &= words[:, 1] == 0
    return unused


def say_something(vectors: Stored) -> NDArray[np.bool_]:
    """Whether each vector has a direction; block by block, as they may be many."""
    found = np.zeros(len(vectors), np.bool_)
    for at in range(0, len(vectors), _LOOKED_AT_ROWS):
        block = np.asarray(vectors[at : at + _LOOKED_AT_ROWS])
        found[at : at + _LOOKED_AT_ROWS] = np.isfinite(block).all(axis=1) & block.any(axis=1)
    return found


def say_something_at(vectors: Stored, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether some of the vectors are other than zeros; block by block, as they may be many."""
    found = np.zeros(len(rows), np.bool_)
    for at in range(0, len(rows), _LOOKED_AT_ROWS):
        some = slice(at, at + _LOOKED_AT_ROWS)
        found[some] = vectors[rows[some]].any(axis=1)
    return found


def salvage(path: Path, hash_path: Path, used: Shape) -> tuple[Stored, Records]:
    """What is right of two damaged files, at its old rows; the other rows are unused."""
    try:
        records = load_records(hash_path)
    except (DamagedVectors, FileNotFoundError):
        records = NO_RECORDS
    vectors = read_vectors(path)
    rows, width = max(used[0], len(records), len(vectors)), vectors.shape[1] or used[1]
    if not width:
        return np.zeros((0, 0), np.float32), NO_RECORDS
    both = min(len(records), len(vectors))
    vectors = vectors if len(vectors) else np.zeros((0, width), np.float32)
    right = is_right(path, records[:both], vectors[:both]) & (records["sum"][:both] != 0)
    right &= say_something(vectors[:both])
    kept = np.zeros((rows, width), STORED)
    kept[:both][right] = vectors[:both][right]
    found: Records = np.zeros(rows, RECORD_DTYPE)
    found[:both][right] = records[:both][right]
    if kept.dtype != vectors.dtype:
        found["sum"] = make_records(path, found["hash"].copy(), kept)["sum"]
    return kept, found


def read_vectors(path: Path) -> Stored:
    """All vectors of a file that its length and header allow."""
    nothing = np.zeros((0, 0), np.float32)
    try:
        raw = path.read_bytes()
        file = BytesIO(raw)
        npy.read_magic(file)
        shape, fortran, dtype = npy.read_array_header_1_0(file)
    except (*READ_ERRORS, FileNotFoundError):
        return nothing
    if len(shape) != 2 or fortran or dtype not in (HALF, SINGLE) or not shape[1]:
        return nothing
    rows = max(min(shape[0], (len(raw) - HEADER_BYTES) // (dtype.itemsize * shape[1])), 0)
    found: Stored = np.frombuffer(raw, dtype, rows * shape[1], HEADER_BYTES)
    return found.reshape(-1, shape[1])


def damage_error(path: Path, why: object) -> DamagedVectors:
    """Say what is wrong with a file."""
    return DamagedVectors(f"{path.name} is damaged ({why}); `clew reembed` rebuilds it")
