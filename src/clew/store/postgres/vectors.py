"""Vectors shared by several machines: blocks in shared files, a mapped copy on each machine.

The database gives each block its rows, one block after another, so a row is the same everywhere.
A machine fetches the blocks that it lacks, and appends them to its own vector files.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from clew.store.checksums import checksum_bytes, is_sound
from clew.store.ivf_index import IvfIndex
from clew.store.postgres.connections import Connection, Database
from clew.store.postgres.files import SharedFiles
from clew.store.sign_bits import SignBits
from clew.store.vector_files import MIN_SIGNED_ROWS, VectorFile
from clew.store.vector_records import STORED, DamagedVectors, Shape
from clew.store.write_lock import WriterLock
from clew.text.unicode import digest
from clew.types import Kind

_HASH_CHARS = 32  # hexadecimal, of 16 bytes
_FETCH_PATIENCE = 600.0  # seconds to wait for another process of this machine that fetches
_LOST = "{} vectors cannot be fetched ({}); `clew verify --repair` computes them again"


@dataclass
class SharedVectors:
    """The vectors of one embedder for one kind of element."""

    database: Database
    files: SharedFiles
    folder: Path
    """Of this machine's copies."""
    embedder: str
    kind: Kind
    shape_in_use: Callable[[], Shape]
    _lock: RLock = field(default_factory=RLock)

    def __post_init__(self) -> None:
        self._copy = VectorFile(self._path, self.shape_in_use)

    @property
    def _path(self) -> Path:
        return self.folder / "vectors" / digest(self.embedder)[:12] / f"{self.kind}.npy"

    def find_rows(self, hashes: Sequence[str]) -> NDArray[np.int64]:
        """Row of each hash; -1 if absent."""
        return self._fetch().find_rows(hashes)

    def width(self) -> int:
        """Number of dimensions; 0 if there is no row."""
        return self._fetch().width()

    def matrix(self) -> NDArray[np.floating]:
        """All rows, as `VectorFile` gives them."""
        return self._fetch().matrix()

    def read_hashes(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The content hashes of rows, two words each."""
        return self._fetch().read_hashes(rows)

    def row_index(self) -> SignBits | IvfIndex:
        """The index over all rows; what this machine's files lack is computed once."""
        return self._fetch().row_index()

    def describe_index(self) -> str:
        """What is to be said about this machine's index, if it is missing or old."""
        return self._fetch().describe_index()

    def has_right_indexes(self) -> bool:
        """Whether the indexes of this machine's copy, if there are any, are of its vectors."""
        return self._fetch().has_right_indexes()

    def save_index(self) -> None:
        """Write this machine's index of many rows, so that questions need not make it."""
        copy = self._fetch()
        if copy.count_rows() >= MIN_SIGNED_ROWS:
            with WriterLock(self._make_lock_file(), _FETCH_PATIENCE):
                copy.save_index()

    def find_lost_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the rows in use that hold no vector."""
        return self._fetch().find_lost_rows(rows)

    def count_checked_rows(self) -> int:
        """Number of rows, after checking all of them."""
        return self._fetch().count_checked_rows()

    def iterate(self) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        """All rows in order, as blocks of hashes and vectors."""
        with self.database.transaction() as db:
            blocks = self._list_blocks(db, 0)
        for _, file, checksum in blocks:
            yield self._load_block(file, checksum)

    def append(self, hashes: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Append new vectors durably; known hashes are skipped."""
        given = (self.embedder, self.kind)
        with self._lock, self.database.transaction() as db:
            db.execute("INSERT INTO vector_tables VALUES (%s, %s) ON CONFLICT DO NOTHING", given)
            # The row lock lets one machine append at a time.
            row = db.execute(
                "SELECT count, width FROM vector_tables WHERE embedder = %s AND kind = %s "
                "FOR UPDATE",
                given,
            ).fetchone()
            first, width = row if row else (0, 0)
            copy = self._fetch(db)
            known = copy.find_rows(hashes)
            fresh = {key: at for at, key in enumerate(hashes) if known[at] < 0}
            if not fresh:
                return
            block = np.asarray(vectors[list(fresh.values())], STORED)
            if width and width != block.shape[1]:
                copy.append(list(fresh), block)  # raises: another width
            raw = _encode(list(fresh), block)
            file = f"vectors/{digest(self.embedder)[:12]}/{self.kind}/{first:012d}.bin"
            self.files.save(file, raw)
            db.execute(
                "INSERT INTO vector_blocks VALUES (%s, %s, %s, %s, %s, %s)",
                (*given, first, len(block), file, checksum_bytes(raw)),
            )
            db.execute(
                "UPDATE vector_tables SET count = %s, width = %s WHERE embedder = %s AND kind = %s",
                (first + len(block), block.shape[1], *given),
            )
            first = int(first)
        self._extend_copy(first, list(fresh), block)

    def _extend_copy(self, first: int, hashes: list[str], vectors: NDArray[np.floating]) -> None:
        """Append a block to this machine's copy, unless other blocks come before it."""
        with self._lock, WriterLock(self._make_lock_file(), _FETCH_PATIENCE):
            if self._copy.count_rows() == first:
                self._copy.append(hashes, vectors)

    def repair(self) -> bool:
        """Fetch damaged copies again; forget vectors that cannot be fetched, to be computed."""
        with self._lock:
            try:
                self.count_checked_rows()
                self._fetch().drop_wrong_indexes()
                return False
            except DamagedVectors:
                self._drop_copy()
            try:
                self.count_checked_rows()
            except DamagedVectors:
                self.forget_all()
            return True

    def _drop_copy(self) -> None:
        with WriterLock(self._make_lock_file(), _FETCH_PATIENCE):
            for path in self._path.parent.glob(f"{self.kind}.*"):
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                elif path.suffix != ".lock":
                    path.unlink(missing_ok=True)
            self._copy = VectorFile(self._path, self.shape_in_use)

    def forget_all(self) -> None:
        """Begin anew: every vector of this kind is computed again."""
        given = (self.embedder, self.kind)
        with self.database.transaction() as db:
            if not self._count_rows(db):
                return
            for _, file, _ in self._list_blocks(db, 0):
                self.files.remove(file)
            db.execute("DELETE FROM vector_blocks WHERE embedder = %s AND kind = %s", given)
            db.execute("DELETE FROM vector_tables WHERE embedder = %s AND kind = %s", given)
        self._drop_copy()

    # -- this machine's copy

    def _fetch(self, db: Connection | None = None) -> VectorFile:
        """This machine's copy, with all blocks that were appended so far."""
        if db is None:
            with self.database.transaction() as own:
                return self._fetch(own)
        with self._lock:
            wanted = self._count_rows(db)
            if self._copy.count_rows() > wanted and self._is_ahead(db):
                self._drop_copy()  # the database was restored to an earlier state
            if self._copy.count_rows() >= wanted:
                return self._copy
            # Another process of this machine may be fetching the same blocks.
            with WriterLock(self._make_lock_file(), _FETCH_PATIENCE):
                held = self._copy.count_rows()
                for first, file, checksum in self._list_blocks(db, held):
                    hashes, vectors = self._load_block(file, checksum)
                    self._copy.append(hashes[held - first :], vectors[held - first :])
                    held = first + len(hashes)
            return self._copy

    def _count_rows(self, db: Connection) -> int:
        row = db.execute(
            "SELECT count FROM vector_tables WHERE embedder = %s AND kind = %s",
            (self.embedder, self.kind),
        ).fetchone()
        return int(row[0]) if row else 0

    def _is_ahead(self, db: Connection) -> bool:
        """Whether the copy has more rows than the database, also when that is asked last."""
        return self._copy.count_rows() > self._count_rows(db)

    def _make_lock_file(self) -> Path:
        path = self._path.with_suffix(".lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _list_blocks(self, db: Connection, held: int) -> list[tuple[int, str, int]]:
        found = db.execute(
            "SELECT first, file, checksum FROM vector_blocks WHERE embedder = %s AND kind = %s "
            "AND first + count > %s ORDER BY first",
            (self.embedder, self.kind, held),
        )
        return [(int(first), str(file), int(checksum)) for first, file, checksum in found]

    def _load_block(self, file: str, checksum: int) -> tuple[list[str], NDArray[np.float32]]:
        try:
            raw = self.files.load(file)
        except OSError as error:
            raise DamagedVectors(_LOST.format(self.kind, error)) from error
        if not is_sound(raw, checksum):
            raise DamagedVectors(_LOST.format(self.kind, f"the checksum of {file} is wrong"))
        return _decode(raw)


def _encode(hashes: Sequence[str], vectors: NDArray[np.floating]) -> bytes:
    told = {"rows": len(hashes), "width": vectors.shape[1], "bytes": vectors.itemsize}
    head = json.dumps(told).encode().ljust(64)
    return head + "".join(hashes).encode() + vectors.astype(f"<f{vectors.itemsize}").tobytes()


def _decode(raw: bytes) -> tuple[list[str], NDArray[np.float32]]:
    head = json.loads(raw[:64])
    end = 64 + _HASH_CHARS * head["rows"]
    text = raw[64:end].decode()
    hashes = [text[at : at + _HASH_CHARS] for at in range(0, len(text), _HASH_CHARS)]
    width = head.get("bytes", 4)  # blocks of earlier versions do not tell
    vectors = np.frombuffer(raw[end:], f"<f{width}").reshape(head["rows"], head["width"])
    return hashes, vectors.astype(np.float32)
