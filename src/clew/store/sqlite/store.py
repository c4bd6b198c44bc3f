"""Store on disk: one folder with `kb.sqlite` (source of truth), array and vector files."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any, get_args

import numpy as np

from clew.errors import ArraysMissing, DamagedArrays, StoreError
from clew.store.array_files import remove_old_generations, save_arrays, sync_to_disk
from clew.store.mapped_arrays import MappedArrays, load_sound_arrays, open_memory
from clew.store.protocol import (
    DETAIL_PREFIX,
    LATE_KINDS,
    Array,
    Arrays,
    BackgroundWriter,
    Change,
    Counts,
    DeriveArrays,
    DocumentSource,
    Failure,
    Snapshot,
    TableRows,
)
from clew.store.quotes import open_quotes
from clew.store.resolved_entities import ResolvedSnapshot
from clew.store.sqlite.bulk import BulkWriter, ChunkTexts, attach_scratch
from clew.store.sqlite.connections import (
    DAMAGED_ROW,
    ConnectionPool,
    empty_log,
    reading,
    transaction,
    translate_errors,
)
from clew.store.sqlite.insert import PreparedAdditions, raise_next_keys
from clew.store.sqlite.keyvalue import (
    SqliteKeyValueStore,
    count_all_values,
    find_lost_values,
    publish_generation,
    select_values,
    store_values,
)
from clew.store.sqlite.migrations import migrate, read_version
from clew.store.sqlite.read import COUNT_QUERIES, open_snapshot, select_sources
from clew.store.sqlite.restore import (
    MARK_FINISHED,
    SELECT_UNFINISHED,
    UNFINISHED,
    SqliteRows,
    refuse_losses,
    replace_all_rows,
)
from clew.store.sqlite.tables import columns_to_keep, drop_columns, read_decisions, read_tables
from clew.store.sqlite.verify import COMMITTED_FILE, find_array_problems, find_lost_writes
from clew.store.sqlite.verify_rows import find_row_problems
from clew.store.sqlite.write import SqliteWriter
from clew.store.vector_files import MIN_SIGNED_ROWS, VectorFile
from clew.store.vector_records import DamagedVectors
from clew.store.write_lock import TaskLock, WriterLock
from clew.text.unicode import digest
from clew.types import Kind

_SELECT_EMBEDDER = "SELECT value FROM memory WHERE kind = 'manifest' AND key = 'embedder'"
_SELECT_DIMENSION = "SELECT value FROM memory WHERE kind = 'manifest' AND key = 'dim'"
SELECT_GENERATION = "SELECT value FROM meta WHERE key = 'generation'"
_SELECT_SEAL = "SELECT value FROM meta WHERE key = 'arrays'"
_COUNT_ROWS: dict[str, str] = {
    "chunk": "SELECT max(row) + 1 FROM chunks",
    "entity": "SELECT max(row) + 1 FROM entities",
    "fact": "SELECT max(row) + 1 FROM facts",
}
_COUNTED_KEYS = {"chunks": "chunk_keys", "entities": "entity_keys", "facts": "fact_keys"}
_EMPTIED = (
    "kb.sqlite in {} is missing or empty, but arrays or vectors of an earlier one lie beside it; "
    "`clew restore FILE` restores a backup, or remove the folder to start anew"
)
DATABASE_FILE = "kb.sqlite"
_MUCH_MEMORY = 10**9  # bytes; with less, names are not cached between the blocks of a bulk write


class SqliteStore:
    """Many readers, one writer; a generation is the tables and their arrays, switched together."""

    def __init__(
        self,
        folder: Path,
        *,
        create: bool = False,
        patience: float = 10.0,
        durable: bool = True,
        check: bool = True,
        restoring: bool = False,
    ) -> None:
        """Open a folder; without `durable`, a power cut (not a kill) may lose the last writes.

        With `check`, a folder from which the last writes were lost is refused, and one whose
        restore was not finished, unless `restoring` says that the caller will finish it.
        """
        self.folder = folder
        self.memory: int | None = None
        """Bytes that a write may use, if there is a limit: more goes through scratch files."""
        self._durable = durable
        self._patience = patience
        path = folder / DATABASE_FILE
        if not path.exists() and not create:
            nothing = f"no knowledge base in {folder}; `clew add PATH --kb {folder}` creates one"
            raise StoreError(_EMPTIED.format(folder) if self._has_derived() else nothing)
        self._pool = ConnectionPool(path, durable=durable)
        self._key_values = SqliteKeyValueStore(self._pool)
        self._vectors: dict[tuple[str, Kind], VectorFile] = {}
        self._arrays: tuple[int, Arrays] = (0, {})
        self._checked_chunks: set[int] = set()
        self._lock: WriterLock | None = None
        self._task_lock = TaskLock()
        if create:
            with translate_errors(folder):
                folder.mkdir(parents=True, exist_ok=True)
        with self._pool.connection() as db:
            if self._is_emptied(db):
                raise StoreError(_EMPTIED.format(folder))
            migrate(db, str(folder), writable=self._pool.writable)
            if check:
                refuse_losses(db, folder, partial(_read_generation, db), restoring=restoring)

    def _is_emptied(self, db: sqlite3.Connection) -> bool:
        """Whether the database is new, although arrays or vectors of an earlier one are there."""
        # Read again: another process may just have created both.
        return not read_version(db) and self._has_derived() and not read_version(db)

    def _has_derived(self) -> bool:
        return any(self.folder.glob("arrays/*/*.npy")) or any(self.folder.glob("vectors/*/*.npy"))

    # -- reading

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Open the newest generation for reading."""
        # Only errors of the store itself are translated, not those raised by the caller.
        with translate_errors(self.folder):
            db = self._pool.acquire()
        try:
            with translate_errors(self.folder):
                db.execute("BEGIN")
                generation, arrays = self._load_newest(db)
            opened = open_snapshot(db, generation, arrays, self.folder, self._checked_chunks)
            yield ResolvedSnapshot(opened)
        finally:
            self._pool.release(db)

    async def counts(self) -> Counts:
        """Count documents and elements."""
        with self._pool.connection() as db:
            return self._read_counts(db)

    async def sources(self, names: Collection[str] | None = None) -> dict[str, DocumentSource]:
        """Map every document name, or those of `names` that there are, to its document."""
        with self._pool.connection() as db:
            return select_sources(db, names)

    async def failures(self) -> list[Failure]:
        """Chunks whose extraction failed, and why."""
        with self._pool.connection() as db:
            found = db.execute(
                "SELECT d.id, c.id, c.failed FROM chunks c JOIN documents d ON d.key = c.document "
                "WHERE c.failed != '' ORDER BY c.key"
            )
            return [Failure(*row) for row in found]

    async def get(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored values of these keys."""
        return self._key_values.get(kind, keys)

    # -- writing

    async def set(self, kind: str, items: Mapping[str, str]) -> None:
        """Store values by key, durably; replies are deferred while another process writes."""
        # In a thread: a durable commit takes milliseconds.
        await asyncio.to_thread(self._key_values.set, kind, dict(items))

    async def increment(self, kind: str, key: str, amount: float) -> None:
        """Add to a stored number atomically."""
        await asyncio.to_thread(self._key_values.increment, kind, key, amount)

    @asynccontextmanager
    async def write_lock(self) -> AsyncIterator[None]:
        """Hold the write lock; reentrant."""
        async with self._task_lock.acquire() as outermost:
            if not outermost:
                yield
                return
            async with WriterLock(self.folder / "writer.lock", self._patience) as self._lock:
                try:
                    yield
                finally:
                    self._lock = None

    async def write(self, change: Change, derive: DeriveArrays) -> Counts:
        """Apply a change, derive the arrays, and publish both atomically."""
        async with self.write_lock():
            return await asyncio.to_thread(self._write_generation, change, derive)

    def write_prepared(
        self, prepared: PreparedAdditions, derive: DeriveArrays, wait: Callable[[], None]
    ) -> Counts:
        """Write prepared additions in a process that holds the lock; `wait` waits for vectors."""
        change = Change(add=prepared.additions)
        with self._task_lock.hold():
            return self._write_generation(change, derive, (prepared, wait))

    @asynccontextmanager
    async def background_writer(
        self, derive: DeriveArrays, documents: int
    ) -> AsyncIterator[BackgroundWriter | None]:
        """A child process that writes while this one waits for models."""
        from clew.store.sqlite.writer_process import open_writer_process

        async with open_writer_process(self, derive, documents) as writer:
            yield writer

    def lock_fds(self) -> tuple[int, ...]:
        """File descriptors a child must inherit to hold the write lock until it ends."""
        return self._lock.files() if self._lock else ()

    def vectors(self, embedder: str, kind: Kind) -> VectorFile:
        """The vectors of one embedder for one kind of element."""
        if (embedder, kind) not in self._vectors:
            path = self.folder / "vectors" / digest(embedder)[:12] / f"{kind}.npy"
            self._vectors[embedder, kind] = VectorFile(path, partial(self._shape_in_use, kind))
        return self._vectors[embedder, kind]

    def forget_vectors(self, embedder: str) -> None:
        """Remove the vectors of an embedder, which no element may use."""
        self._vectors = {key: held for key, held in self._vectors.items() if key[0] != embedder}
        rmtree(self.folder / "vectors" / digest(embedder)[:12], ignore_errors=True)

    def _shape_in_use(self, kind: Kind) -> tuple[int, int]:
        """Number of vector rows that the tables refer to, and the vectors' dimension."""
        with self._pool.connection() as db:
            rows = _read_value(db, _COUNT_ROWS[kind]) if kind in _COUNT_ROWS else ""
            width = _read_value(db, _SELECT_DIMENSION)
        return int(rows) if rows.isdigit() else 0, int(width) if width.isdigit() else 0

    async def follow(self) -> None:
        """Do nothing: a new generation is read where it was written."""

    async def find_problems(self) -> list[str]:
        """Check consistency; return one sentence per problem."""
        return await asyncio.to_thread(self._find_problems)

    def _find_problems(self) -> list[str]:
        tables: dict[Kind, VectorFile] = {}
        with self._pool.connection() as db:
            db.execute("BEGIN")
            found = self._find_losses(db)
            if _read_value(db, SELECT_UNFINISHED):
                found.append(UNFINISHED.format(self.folder))
            embedder = _read_value(db, _SELECT_EMBEDDER)
            for kind in get_args(Kind) if embedder else ():
                try:
                    self.vectors(embedder, kind).count_checked_rows()
                    tables[kind] = self.vectors(embedder, kind)
                    if not tables[kind].has_right_indexes():
                        found.append(f"the index of the {kind} vectors is damaged")
                except DamagedVectors as error:
                    found.append(str(error))
            generation = _read_generation(db)
            arrays: Arrays = {}
            try:
                arrays = self._map_arrays(db, generation)
                damaged = arrays.check_all()
                found += damaged
                if damaged:
                    return found + find_row_problems(db)
            except FileNotFoundError:
                pass  # reported below, if there is anything to derive
            except DamagedArrays as error:
                return [*found, str(error), *find_row_problems(db)]
            found += find_row_problems(db)
            try:
                return found + find_array_problems(db, arrays, tables)
            except StoreError as error:  # a row that cannot be compared with anything
                return [*found, str(error)]

    async def find_losses(self, kinds: Collection[str] = ()) -> list[str]:
        """What was lost and cannot be derived; one sentence each."""
        with self._pool.connection() as db, reading(db):
            return find_lost_values(db, kinds) if kinds else self._find_losses(db)

    def _find_losses(self, db: sqlite3.Connection) -> list[str]:
        lost = find_lost_writes(self.folder, partial(_read_generation, db))
        return lost + find_lost_values(db)

    async def accept_losses(self) -> None:
        """Take the stored values there are now as whole, and the keys as used."""
        with self._pool.connection() as db, transaction(db):
            count_all_values(db)
            raise_next_keys(db)

    async def load_sound_arrays(self) -> Arrays:
        """Those arrays of a damaged generation that are as they were written."""
        with self._pool.connection() as db:
            folder = self.folder / "arrays" / _read_value(db, SELECT_GENERATION)
            return load_sound_arrays(folder, _read_value(db, _SELECT_SEAL))

    async def backup(self, file: Path) -> int:
        """Copy the database while others read and write; return the copy's size."""
        return await asyncio.to_thread(self._copy_database, file)

    @contextmanager
    def read_rows(self) -> Iterator[SqliteRows]:
        """Open all rows for reading, unchanged until closed."""
        with self._pool.connection() as db:
            db.execute("BEGIN")
            yield SqliteRows(db, *self._load_newest(db))

    def replace_rows(self, found: TableRows) -> None:
        """Replace all tables and arrays by these, in one transaction; the lock must be held."""
        with self._pool.connection() as db, transaction(db):
            replace_all_rows(db, found)
            generation = max(found.generation, _read_generation(db) + 1)
            folder = self.folder / "arrays" / str(generation)
            seal = save_arrays(folder, found.arrays, durable=self._durable) if found.arrays else ""
            publish_generation(db, generation, seal)

    async def close(self) -> None:
        """Close files and release locks."""
        await asyncio.to_thread(self._key_values.flush, self._patience)
        self._pool.close()

    # -- internal

    def _write_generation(
        self, change: Change, derive: DeriveArrays, options: Sequence[Any] = ()
    ) -> Counts:
        if self.memory is not None and self.memory < _MUCH_MEMORY:
            change = replace(change, sparing=True)
        with (
            self._pool.connection() as db,
            attach_scratch(db, self.folder, change, self.memory),
            transaction(db),
        ):
            before, seal, arrays = self._apply(db, change, derive, options)
        # The write is committed: failing to remove old arrays must not undo it.
        saved = self.folder / "arrays" / str(before + 1)
        with suppress(OSError):
            (saved / COMMITTED_FILE).touch()
            self._arrays = before + 1, MappedArrays(saved, seal, just_saved=arrays)
        del arrays
        kept = {before, before + 1}
        remove_old_generations(self.folder / "arrays", kept, lasting=not change.rebuild)
        with self._pool.connection() as db:
            if change.remove:
                with suppress(sqlite3.OperationalError):  # the removal is committed all the same
                    empty_log(db)
            return self._read_counts(db)

    def _apply(
        self, db: sqlite3.Connection, change: Change, derive: DeriveArrays, options: Sequence[Any]
    ) -> tuple[int, str, Arrays]:
        """Write the next generation; return the number of the previous one, seal and arrays."""
        before = _read_generation(db)
        held: Arrays = {} if change.rebuild else self._load_newest(db)[1]
        previous, switched = held, bool(change.embedder) and not change.kinds
        if switched or (change.rebuild and not _read_value(db, _SELECT_EMBEDDER)):
            db.execute(MARK_FINISHED)  # all vector rows, if any, are looked up again
        if switched:
            # Nearest neighbours and rows of descriptions depend on the embedder.
            dropped = ("near_", DETAIL_PREFIX)
            previous = {k: held[k] for k in held if not k.startswith(dropped)}
            store_values(db, {"manifest": {"embedder": change.embedder}})
        store_values(db, change.values)
        embedder = _read_value(db, _SELECT_EMBEDDER)
        writer = SqliteWriter(db, partial(self._find_vector_rows, embedder), *options)
        has_vectors = bool(embedder and self.vectors(embedder, "fact").count_rows())
        is_bulk = change.bulk is not None
        touched = (BulkWriter(db, writer, has_vectors) if is_bulk else writer).apply(change)
        # Texts to index: those of new chunks, or all if there is no index yet.
        texts = ChunkTexts(db, touched.chunks if "text_terms" in previous else None)
        # A new embedder and a bulk write change most rows: all columns are read again.
        columns = {} if switched or is_bulk else drop_columns(previous, change.kinds)
        chunks = {*touched.chunks, *touched.removed_chunks} if columns else ()
        changed = {"chunks": chunks, "entities": touched.entities, "facts": touched.facts}
        decided, pinned = read_decisions(db)
        late = " ".join(select_values(db, "manifest", LATE_KINDS).values()).split()
        compared = embedder and "entity" not in late
        memory = open_memory(self.memory, self.folder, held)
        tables = replace(
            read_tables(db, columns, changed, memory),
            merge_decisions=decided,
            sense_pins=pinned,
            texts=texts,
            previous=previous,
            entity_vectors=self.vectors(embedder, "entity").matrix() if compared else None,
            quotes=open_quotes(self.vectors, embedder, late),
        )
        self._index_vectors(embedder)
        arrays = {**derive(tables), **columns_to_keep(tables)}
        seal = save_arrays(
            self.folder / "arrays" / str(before + 1),
            arrays,
            durable=self._durable,
            previous=held,
            memory=memory,
        )
        publish_generation(db, before + 1, seal)
        return before, seal, arrays

    def _index_vectors(self, embedder: str) -> None:
        """Write the index of many vectors; of few, all are compared."""
        for kind in get_args(Kind) if embedder else ():
            table = self.vectors(embedder, kind)
            if table.count_rows() >= MIN_SIGNED_ROWS:
                table.save_index()

    def _copy_database(self, file: Path) -> int:
        if file.exists():
            raise StoreError(f"{file} already exists; choose another file name")
        new = file.with_name(f"{file.name}.new")
        with self._pool.connection() as db, translate_errors(file.parent):
            try:
                new.unlink(missing_ok=True)
                with closing(sqlite3.connect(new)) as copy:
                    db.backup(copy)
                sync_to_disk(new)
                new.replace(file)
            finally:
                for left in (new, new.with_name(f"{new.name}-journal")):
                    left.unlink(missing_ok=True)
            sync_to_disk(file.parent)
            return file.stat().st_size

    def _find_vector_rows(self, embedder: str, kind: Kind, hashes: Sequence[str]) -> Array:
        held = self.vectors(embedder, kind) if embedder else None
        return np.full(len(hashes), -1) if held is None else held.find_rows(hashes)

    def _load_newest(self, db: sqlite3.Connection) -> tuple[int, Arrays]:
        """The generation visible to this transaction, and its arrays."""
        for _ in range(5):
            generation = _read_generation(db)
            if generation == self._arrays[0]:
                return self._arrays
            try:
                self._arrays = generation, self._map_arrays(db, generation)
            except (FileNotFoundError, DamagedArrays) as error:
                # Two newer generations came meanwhile: retry; the writer derives arrays again.
                if db.in_transaction and not self._task_lock.is_held:
                    if isinstance(error, DamagedArrays):
                        raise
                    db.rollback()
                    db.execute("BEGIN")
                    continue
                return generation, {}
            return self._arrays
        raise ArraysMissing(
            f"the arrays of {self.folder} are missing; `clew verify --repair` rebuilds them"
        )

    def _map_arrays(self, db: sqlite3.Connection, generation: int) -> MappedArrays:
        return MappedArrays(self.folder / "arrays" / str(generation), _read_value(db, _SELECT_SEAL))

    def _read_counts(self, db: sqlite3.Connection) -> Counts:
        generation, arrays = self._load_newest(db)
        # Resolved entities; the table holds names. To count the rows of a table reads all of it.
        known = {name: len(arrays[key]) for name, key in _COUNTED_KEYS.items() if key in arrays}
        asked = {name: query for name, query in COUNT_QUERIES.items() if name not in known}
        count = known | {name: db.execute(query).fetchone()[0] for name, query in asked.items()}
        count["communities"] = len(arrays.get("community_keys", ()))
        return Counts(**count, generation=generation, bytes=_folder_size(self.folder))


def _read_value(db: sqlite3.Connection, statement: str) -> str:
    row = db.execute(statement).fetchone()
    return str(row[0]) if row else ""


def _read_generation(db: sqlite3.Connection) -> int:
    if (held := _read_value(db, SELECT_GENERATION)).isdecimal():
        return int(held)
    raise StoreError(DAMAGED_ROW)


def _folder_size(folder: Path) -> int:
    """Total size of the files; files removed meanwhile are skipped."""
    size = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                size += os.lstat(f"{where}/{name}").st_size
    return size
