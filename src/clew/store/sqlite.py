"""The knowledge base as one folder: `kb.sqlite` is the truth, arrays and vectors lie beside it."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from clew.errors import ArraysMissing, StoreError
from clew.kinds import class_of
from clew.store.arrays import MappedArrays, drop_others, save_arrays
from clew.store.check import problems
from clew.store.draft import Draft
from clew.store.lock import WriterLock
from clew.store.merge import id_code, label_code
from clew.store.migrations import migrate
from clew.store.nodes import Things
from clew.store.protocol import Array, Arrays, Change, Counts, Failure, Publish, Snapshot, Source
from clew.store.sqlite_bulk import BulkWriter, ChunkTexts, scratch
from clew.store.sqlite_read import SqliteSnapshot
from clew.store.sqlite_tables import decisions, kept_columns, read_tables
from clew.store.sqlite_write import Writer
from clew.store.vectors import VectorFile
from clew.text import digest
from clew.types import Kind


class SqliteStore:
    """Many readers, one writer; a generation is the truth and its arrays, flipped together."""

    def __init__(
        self,
        folder: Path,
        *,
        create: bool = False,
        patience: float = 10.0,
        durable: bool = True,
    ) -> None:
        """Open a folder; without `durable` a power cut may lose the last writes (not a kill)."""
        self.folder = folder
        self._durable = durable
        self._patience = patience
        self._path = folder / "kb.sqlite"
        if not self._path.exists() and not create:
            raise StoreError(
                f"no knowledge base in {folder}; `clew add PATH --kb {folder}` makes one"
            )
        self._idle: list[sqlite3.Connection] = []
        self._vectors: dict[tuple[str, Kind], VectorFile] = {}
        self._arrays: tuple[int, Arrays] = (0, {})
        self._lock: WriterLock | None = None
        self._depth = 0
        with _told(folder):
            folder.mkdir(parents=True, exist_ok=True)
            db = self._connect()
            migrate(db, str(folder))
            self._idle.append(db)

    # -- reading

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Hold the newest generation for reading."""
        # What the holder raises is the holder's affair, so only our own part is retold.
        with _told(self.folder):
            db = self._spare()
            db.execute("BEGIN")
            generation, arrays = self._newest(db)
        try:
            yield Things(SqliteSnapshot(db, generation, arrays))
        finally:
            db.rollback()
            self._idle.append(db)

    async def counts(self) -> Counts:
        """How much there is."""
        with self._connection() as db:
            return self._counts(db)

    async def sources(self) -> dict[str, Source]:
        """Every document by each of its names."""
        with self._connection() as db:
            found = db.execute(
                "SELECT s.name, d.id, d.stamp FROM sources s JOIN documents d ON d.key = s.document"
            )
            return {name: Source(document, stamp) for name, document, stamp in found}

    async def failures(self) -> list[Failure]:
        """Chunks from which nothing could be extracted, and why."""
        with self._connection() as db:
            found = db.execute(
                "SELECT d.id, c.id, c.failed FROM chunks c JOIN documents d ON d.key = c.document "
                "WHERE c.failed != '' ORDER BY c.key"
            )
            return [Failure(*row) for row in found]

    async def recall(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """What was remembered under these keys."""
        with self._connection() as db:
            found = db.execute(
                "SELECT key, value FROM memory WHERE kind = ? "
                "AND key IN (SELECT value FROM json_each(?))",
                (kind, json.dumps(list(keys))),
            )
            return dict(found.fetchall())

    # -- writing

    async def remember(self, kind: str, items: Mapping[str, str]) -> None:
        """Keep texts by key, durably, at once."""
        # In a thread: the disk takes milliseconds to say that it has them.
        await asyncio.to_thread(self._remember, kind, dict(items))

    def _remember(self, kind: str, items: Mapping[str, str]) -> None:
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            db.executemany(
                "INSERT OR REPLACE INTO memory VALUES (?,?,?)",
                [(kind, key, value) for key, value in items.items()],
            )
            db.execute("COMMIT")

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Be the one writer, for as long as it is held; may be entered again from within."""
        if self._depth == 0:
            lock = WriterLock(self.folder / "writer.lock", self._patience)
            self._lock = await asyncio.to_thread(lock.__enter__)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0 and self._lock is not None:
                self._lock.__exit__(None, None, None)
                self._lock = None

    async def write(self, change: Change, publish: Publish) -> Counts:
        """Apply a change, derive the arrays and make both visible at once."""
        async with self.writing():
            return await asyncio.to_thread(self._write, change, publish)

    def write_draft(
        self, draft: Draft, publish: Publish, vectors_there: Callable[[], None]
    ) -> Counts:
        """Write a draft's additions for a process that is the one writer."""
        self._depth += 1
        try:
            return self._write(Change(add=draft.additions), publish, (draft, vectors_there))
        finally:
            self._depth -= 1

    def lock_files(self) -> tuple[int, ...]:
        """What a child must hold so that nobody else writes before it has ended."""
        return self._lock.files() if self._lock else ()

    def vectors(self, embedder: str, kind: Kind) -> VectorFile:
        """The vectors of one embedder for one kind of element."""
        if (embedder, kind) not in self._vectors:
            path = self.folder / "vectors" / digest(embedder)[:12] / f"{kind}.npy"
            self._vectors[embedder, kind] = VectorFile(path)
        return self._vectors[embedder, kind]

    async def problems(self) -> list[str]:
        """What is wrong with this knowledge base, one sentence each."""
        with self._connection() as db:
            embedder = _meta(db, _EMBEDDER)
            sizes = {
                kind: len(self.vectors(embedder, kind).matrix())
                for kind in (_KINDS if embedder else ())
            }
            generation = int(_meta(db, "SELECT value FROM meta WHERE key = 'generation'"))
            try:
                arrays: Arrays = MappedArrays(self.folder / "arrays" / str(generation))
            except FileNotFoundError:
                arrays = {}
            return problems(db, arrays, sizes)

    async def backup(self, file: Path) -> int:
        """Copy the truth while others read and write; return the copy's size."""
        return await asyncio.to_thread(self._backup, file)

    async def close(self) -> None:
        """Let go of files and locks."""
        for db in self._idle:
            db.close()
        self._idle.clear()

    # -- inside

    def _write(self, change: Change, publish: Publish, how: Sequence[Any] = ()) -> Counts:
        streamed = change.bulk is not None
        with self._connection() as db, scratch(db, self.folder) if streamed else nullcontext():
            db.execute("BEGIN IMMEDIATE")
            try:
                before, previous = self._newest(db)
                previous = {} if change.afresh else previous
                if change.embedder:
                    # Which vectors are close is not the same for another embedder.
                    previous = {k: previous[k] for k in previous if not k.startswith("near_")}
                if change.embedder:
                    db.execute(_SET_EMBEDDER, (change.embedder,))
                embedder = _meta(db, _EMBEDDER)
                writer = Writer(db, self._row_finder(embedder), *how)
                bulk = BulkWriter(db, writer, bool(embedder and self._has_vectors(embedder)))
                touched = (bulk if streamed else writer).apply(change)
                texts = self._searchable(db, touched.chunks, previous)
                changed = {
                    "chunks": {*touched.chunks, *touched.gone},
                    "entities": touched.entities,
                    "facts": touched.facts,
                }
                # A change of embedder moves every row, and a stream touches most of them, so every
                # column is read anew.
                columns = {} if change.embedder or streamed else previous
                decided, pinned = decisions(db)
                tables = replace(
                    read_tables(db, columns, changed),
                    decided=decided,
                    pinned=pinned,
                    texts=texts,
                    previous=previous,
                    entity_vectors=(
                        self.vectors(embedder, "entity").matrix() if embedder else None
                    ),
                )
                generation = before + 1
                save_arrays(
                    self.folder / "arrays" / str(generation),
                    {**publish(tables), **kept_columns(tables)},
                    durable=self._durable,
                )
                db.execute("UPDATE meta SET value = ? WHERE key = 'generation'", (generation,))
                db.execute("COMMIT")
            except BaseException:
                db.rollback()
                raise
            drop_others(self.folder / "arrays", {before, generation})
            return self._counts(db)

    def _backup(self, file: Path) -> int:
        if file.exists():
            raise StoreError(f"{file} is already there; name another file")
        with self._connection() as db, _told(file.parent):
            copy = sqlite3.connect(file)
            try:
                db.backup(copy)
            finally:
                copy.close()
            return file.stat().st_size

    def _has_vectors(self, embedder: str) -> bool:
        return len(self.vectors(embedder, "fact").matrix()) > 0

    def _row_finder(self, embedder: str) -> "_RowFinder":
        return _RowFinder(self, embedder)

    def _searchable(
        self, db: sqlite3.Connection, added: list[int], previous: Arrays
    ) -> Mapping[int, str]:
        """Text of the chunks that must be indexed: the new ones, or all when nothing is there."""
        return ChunkTexts(db, None if "text_terms" not in previous else added)

    def _newest(self, db: sqlite3.Connection) -> tuple[int, Arrays]:
        """The generation that this transaction sees, and its arrays."""
        for _ in range(5):
            generation = int(_meta(db, "SELECT value FROM meta WHERE key = 'generation'"))
            if generation == self._arrays[0]:
                return self._arrays
            try:
                self._arrays = (
                    generation,
                    MappedArrays(self.folder / "arrays" / str(generation)),
                )
            except FileNotFoundError:
                # Two newer generations came while we looked; look again, unless we are the writer.
                if db.in_transaction and self._depth == 0:
                    db.rollback()
                    db.execute("BEGIN")
                    continue
                return generation, {}
            return self._arrays
        raise ArraysMissing(
            f"the arrays of {self.folder} are missing; `clew verify --repair` derives them anew"
        )

    def _counts(self, db: sqlite3.Connection) -> Counts:
        number = {
            table: int(db.execute(statement).fetchone()[0]) for table, statement in _COUNT.items()
        }
        generation, arrays = self._newest(db)
        number["communities"] = len(arrays.get("community_keys", ()))
        if "entity_keys" in arrays:  # things; the table holds names
            number["entities"] = len(arrays["entity_keys"])
        size = sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())
        return Counts(**number, generation=generation, bytes=size)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with _told(self.folder):
            db = self._spare()
            try:
                yield db
            finally:
                self._idle.append(db)

    def _spare(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()  # not asked for first: another thread may take the last one
        except IndexError:
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, timeout=30, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'OFF'}")
        db.execute("PRAGMA temp_store = MEMORY")
        db.create_function("label_code", 1, label_code, deterministic=True)
        db.create_function("id_code", 1, id_code, deterministic=True)
        db.create_function("class_of", 1, class_of, deterministic=True)
        return db


class _RowFinder:
    """Where a text's vector is; -1 everywhere while the knowledge base has no embedder."""

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
_COUNT = {
    "documents": "SELECT count(*) FROM documents",
    "chunks": "SELECT count(*) FROM chunks",
    "entities": "SELECT count(*) FROM entities",
    "facts": "SELECT count(*) FROM facts",
    "failed": "SELECT count(*) FROM chunks WHERE failed != ''",
}


def _meta(db: sqlite3.Connection, statement: str) -> str:
    row = db.execute(statement).fetchone()
    return str(row[0]) if row else ""


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Say in our words what SQLite or the disk says in theirs."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if "disk is full" in str(error) or "disk I/O" in str(error):
            reason = f"cannot write to {folder} ({error}); nothing was changed: is the disk full?"
        elif "not a database" in str(error) or "malformed" in str(error):
            reason = f"{folder / 'kb.sqlite'} is not a knowledge base, or is damaged ({error})"
        elif "locked" in str(error):
            reason = f"{folder} is locked by another process for too long; run again later"
        else:
            reason = f"{folder / 'kb.sqlite'}: {error}"
        raise StoreError(reason) from error
    except OSError as error:
        raise StoreError(
            f"cannot write to {folder}: {error.strerror}; nothing was changed"
        ) from error
