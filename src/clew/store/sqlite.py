"""Store on disk: one folder with `kb.sqlite` (source of truth), array and vector files."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from clew.errors import ArraysMissing, StoreError
from clew.store.arrays import MappedArrays, drop_others, save_arrays
from clew.store.check import problems
from clew.store.draft import Draft
from clew.store.lock import WriterLock
from clew.store.migrations import migrate
from clew.store.nodes import Things
from clew.store.protocol import Array, Arrays, Change, Counts, Failure, Publish, Snapshot, Source
from clew.store.sqlite_bulk import BulkWriter, ChunkTexts, scratch
from clew.store.sqlite_counts import counts_of
from clew.store.sqlite_memory import SqliteMemory
from clew.store.sqlite_pool import Connections, told, transaction
from clew.store.sqlite_read import SqliteSnapshot
from clew.store.sqlite_tables import decisions, kept_columns, read_tables
from clew.store.sqlite_write import Writer
from clew.store.turn import Turn
from clew.store.vectors import DamagedVectors, VectorFile
from clew.text import digest
from clew.types import Kind


class SqliteStore:
    """Many readers, one writer; a generation is the tables and their arrays, switched together."""

    def __init__(
        self,
        folder: Path,
        *,
        create: bool = False,
        patience: float = 10.0,
        durable: bool = True,
    ) -> None:
        """Open a folder; without `durable`, a power cut (not a kill) may lose the last writes."""
        self.folder = folder
        self._durable = durable
        self._patience = patience
        path = folder / "kb.sqlite"
        if not path.exists() and not create:
            raise StoreError(
                f"no knowledge base in {folder}; `clew add PATH --kb {folder}` makes one"
            )
        self._pool = Connections(path, durable=durable)
        self._memory = SqliteMemory(self._pool)
        self._vectors: dict[tuple[str, Kind], VectorFile] = {}
        self._arrays: tuple[int, Arrays] = (0, {})
        self._lock: WriterLock | None = None
        self._turn = Turn()
        with told(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with self._pool.one() as db:
            migrate(db, str(folder))

    # -- reading

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Open the newest generation for reading."""
        # Only errors of the store itself are translated, not those raised by the caller.
        with told(self.folder):
            db = self._pool.spare()
        try:
            with told(self.folder):
                db.execute("BEGIN")
                generation, arrays = self._newest(db)
            yield Things(SqliteSnapshot(db, generation, arrays))
        finally:
            self._pool.take_back(db)

    async def counts(self) -> Counts:
        """Count documents and elements."""
        with self._pool.one() as db:
            return self._counts(db)

    async def sources(self) -> dict[str, Source]:
        """Map every document name to its document."""
        with self._pool.one() as db:
            found = db.execute(
                "SELECT s.name, d.id, d.stamp FROM sources s JOIN documents d ON d.key = s.document"
            )
            return {name: Source(document, stamp) for name, document, stamp in found}

    async def failures(self) -> list[Failure]:
        """Chunks whose extraction failed, and why."""
        with self._pool.one() as db:
            found = db.execute(
                "SELECT d.id, c.id, c.failed FROM chunks c JOIN documents d ON d.key = c.document "
                "WHERE c.failed != '' ORDER BY c.key"
            )
            return [Failure(*row) for row in found]

    async def recall(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored values of these keys."""
        return self._memory.recall(kind, keys)

    # -- writing

    async def remember(self, kind: str, items: Mapping[str, str]) -> None:
        """Store values by key, durably; replies are deferred while another process writes."""
        # In a thread: a durable commit takes milliseconds.
        await asyncio.to_thread(self._memory.remember, kind, dict(items))

    async def add_up(self, kind: str, key: str, amount: float) -> None:
        """Add to a stored number atomically."""
        await asyncio.to_thread(self._memory.add_up, kind, key, amount)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Hold the write lock; reentrant."""
        async with self._turn.taken() as outermost:
            if not outermost:
                yield
                return
            async with WriterLock(self.folder / "writer.lock", self._patience) as self._lock:
                try:
                    yield
                finally:
                    self._lock = None

    async def write(self, change: Change, publish: Publish) -> Counts:
        """Apply a change, derive the arrays, and publish both atomically."""
        async with self.writing():
            return await asyncio.to_thread(self._write, change, publish)

    def write_draft(
        self, draft: Draft, publish: Publish, vectors_there: Callable[[], None]
    ) -> Counts:
        """Write prepared additions, in a process that already holds the write lock."""
        with self._turn.held():
            return self._write(Change(add=draft.additions), publish, (draft, vectors_there))

    def lock_files(self) -> tuple[int, ...]:
        """File descriptors a child must inherit to hold the write lock until it ends."""
        return self._lock.files() if self._lock else ()

    def vectors(self, embedder: str, kind: Kind) -> VectorFile:
        """The vectors of one embedder for one kind of element."""
        if (embedder, kind) not in self._vectors:
            path = self.folder / "vectors" / digest(embedder)[:12] / f"{kind}.npy"
            self._vectors[embedder, kind] = VectorFile(path)
        return self._vectors[embedder, kind]

    async def problems(self) -> list[str]:
        """Check consistency; return one sentence per problem."""
        found: list[str] = []
        sizes: dict[Kind, int] = {}
        with self._pool.one() as db:
            db.execute("BEGIN")
            embedder = _meta(db, _EMBEDDER)
            for kind in _KINDS if embedder else ():
                try:
                    sizes[kind] = self.vectors(embedder, kind).checked()
                except DamagedVectors as error:
                    found.append(str(error))
            generation = int(_meta(db, _GENERATION))
            try:
                arrays: Arrays = MappedArrays(self.folder / "arrays" / str(generation))
            except FileNotFoundError:
                arrays = {}
            return found + problems(db, arrays, sizes)

    async def backup(self, file: Path) -> int:
        """Copy the database while others read and write; return the copy's size."""
        return await asyncio.to_thread(self._backup, file)

    async def close(self) -> None:
        """Close files and release locks."""
        await asyncio.to_thread(self._memory.settle, self._patience)
        self._pool.close()

    # -- internal

    def _write(self, change: Change, publish: Publish, options: Sequence[Any] = ()) -> Counts:
        is_bulk = change.bulk is not None
        with self._pool.one() as db, scratch(db, self.folder) if is_bulk else nullcontext():
            with transaction(db):
                before = self._apply(db, change, publish, options)
        # The write is committed: failing to remove old arrays must not undo it.
        drop_others(self.folder / "arrays", {before, before + 1})
        with self._pool.one() as db:
            return self._counts(db)

    def _apply(
        self, db: sqlite3.Connection, change: Change, publish: Publish, options: Sequence[Any]
    ) -> int:
        """Write the next generation; return the number of the previous one."""
        before, previous = self._newest(db)
        previous = {} if change.afresh else previous
        if change.embedder:
            # Nearest neighbours depend on the embedder.
            previous = {k: previous[k] for k in previous if not k.startswith("near_")}
            db.execute(_SET_EMBEDDER, (change.embedder,))
        embedder = _meta(db, _EMBEDDER)
        writer = Writer(db, _RowFinder(self, embedder), *options)
        bulk = BulkWriter(db, writer, bool(embedder and self._has_vectors(embedder)))
        is_bulk = change.bulk is not None
        touched = (bulk if is_bulk else writer).apply(change)
        # Texts to index: those of new chunks, or all if there is no index yet.
        texts = ChunkTexts(db, touched.chunks if "text_terms" in previous else None)
        changed = {
            "chunks": {*touched.chunks, *touched.gone},
            "entities": touched.entities,
            "facts": touched.facts,
        }
        # A new embedder changes every vector row, and a bulk write touches most rows, so all
        # columns are read again.
        columns = {} if change.embedder or is_bulk else previous
        decided, pinned = decisions(db)
        tables = replace(
            read_tables(db, columns, changed),
            decided=decided,
            pinned=pinned,
            texts=texts,
            previous=previous,
            entity_vectors=self.vectors(embedder, "entity").matrix() if embedder else None,
        )
        save_arrays(
            self.folder / "arrays" / str(before + 1),
            {**publish(tables), **kept_columns(tables)},
            durable=self._durable,
        )
        db.execute("UPDATE meta SET value = ? WHERE key = 'generation'", (before + 1,))
        return before

    def _backup(self, file: Path) -> int:
        if file.exists():
            raise StoreError(f"{file} is already there; name another file")
        with self._pool.one() as db, told(file.parent):
            copy = sqlite3.connect(file)
            try:
                db.backup(copy)
            finally:
                copy.close()
            return file.stat().st_size

    def _has_vectors(self, embedder: str) -> bool:
        return len(self.vectors(embedder, "fact").matrix()) > 0

    def _newest(self, db: sqlite3.Connection) -> tuple[int, Arrays]:
        """The generation visible to this transaction, and its arrays."""
        for _ in range(5):
            generation = int(_meta(db, _GENERATION))
            if generation == self._arrays[0]:
                return self._arrays
            try:
                self._arrays = (
                    generation,
                    MappedArrays(self.folder / "arrays" / str(generation)),
                )
            except FileNotFoundError:
                # Two newer generations were written meanwhile; retry, unless this is the writer.
                if db.in_transaction and not self._turn.mine:
                    db.rollback()
                    db.execute("BEGIN")
                    continue
                return generation, {}
            return self._arrays
        raise ArraysMissing(
            f"the arrays of {self.folder} are missing; `clew verify --repair` derives them anew"
        )

    def _counts(self, db: sqlite3.Connection) -> Counts:
        return counts_of(db, *self._newest(db), self.folder)


class _RowFinder:
    """Finds vector rows by content hash; -1 everywhere without an embedder."""

    def __init__(self, store: SqliteStore, embedder: str) -> None:
        self._store = store
        self._embedder = embedder

    def __call__(self, kind: Kind, hashes: Sequence[str]) -> Array:
        if not self._embedder:
            return np.full(len(hashes), -1)
        return self._store.vectors(self._embedder, kind).rows(hashes)


_KINDS: tuple[Kind, ...] = ("chunk", "entity", "fact")
_EMBEDDER = "SELECT value FROM memory WHERE kind = 'manifest' AND key = 'embedder'"
_SET_EMBEDDER = "INSERT OR REPLACE INTO memory VALUES ('manifest', 'embedder', ?)"
_GENERATION = "SELECT value FROM meta WHERE key = 'generation'"


def _meta(db: sqlite3.Connection, statement: str) -> str:
    row = db.execute(statement).fetchone()
    return str(row[0]) if row else ""
