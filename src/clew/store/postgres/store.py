"""Store in a PostgreSQL schema: tables as source of truth, arrays and vectors as shared files."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, LiteralString, get_args

from clew.errors import ArraysMissing, DamagedArrays, StoreError
from clew.kb_address import DatabaseAddress
from clew.store.mapped_arrays import load_sound_arrays
from clew.store.postgres.connections import (
    POLL_INTERVAL,
    READ,
    Connection,
    Database,
    translate_errors,
)
from clew.store.postgres.copying import PostgresRows, back_up_as_folder, replace_all_rows
from clew.store.postgres.derivation import InputReader
from clew.store.postgres.files import open_files
from clew.store.postgres.follow import GenerationFollower
from clew.store.postgres.generations import Generations
from clew.store.postgres.keyvalue import (
    PostgresKeyValueStore,
    count_all_values,
    find_lost_values,
    refuse_losses,
    select_values,
    store_values,
)
from clew.store.postgres.migrations import migrate
from clew.store.postgres.passage_vectors import update_passage_vectors
from clew.store.postgres.vectors import SharedVectors
from clew.store.postgres.verify import find_problems
from clew.store.postgres.versions import (
    SELECT_GENERATION,
    begin_write,
    finish_write,
    parse_generation,
    read_generation,
    show_generation,
    undo_write,
)
from clew.store.postgres.write import (
    UNPREPARED,
    PostgresWriter,
    Preparation,
    forget_replies,
    open_writer_process,
    set_vector_rows,
)
from clew.store.protocol import (
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
from clew.store.resolved_entities import ResolvedSnapshot
from clew.store.sqlite.insert import PreparedAdditions
from clew.store.sqlite.read import SqlDialect, TableSnapshot
from clew.store.sqlite.tables import columns_to_keep
from clew.store.vector_records import DamagedVectors
from clew.store.write_lock import TaskLock
from clew.types import Kind

_COUNTS: LiteralString = (
    "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks), "
    "(SELECT count(*) FROM entities), (SELECT count(*) FROM facts), "
    "(SELECT count(*) FROM chunks WHERE failed != ''), "
    "(SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class "
    "WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s))"
)
_DIALECT = SqlDialect("= ANY(%s::bigint[])", "= ANY(%s::text[])", "stop", "")
_EMBEDDER: LiteralString = "SELECT value FROM memory WHERE kind = 'manifest' AND key = 'embedder'"
_DIMENSION: LiteralString = "SELECT value FROM memory WHERE kind = 'manifest' AND key = 'dim'"
_ROWS_IN_USE: dict[str, LiteralString] = {
    "chunk": "SELECT max(vector_row) + 1 FROM chunks",
    "entity": "SELECT max(vector_row) + 1 FROM entities",
    "fact": "SELECT max(vector_row) + 1 FROM facts",
}


class PostgresStore:
    """Many readers, one writer, on any number of machines."""

    def __init__(
        self,
        address: DatabaseAddress,
        folder: Path,
        *,
        create: bool = False,
        patience: float = 10.0,
        files: str = "",
        check: bool = True,
    ) -> None:
        """Open a schema; `folder` holds this machine's copies, `files` is where shared files are.

        Without `files` they are in the database as well. With `check`, a knowledge base whose
        settings or decisions were lost is refused.
        """
        self.address = address
        self._patience = patience
        self.database = Database(address)
        try:
            migrate(self.database, create=create)
            with self.database.transaction(READ) as db:
                identity = read_value(db, "SELECT value FROM meta WHERE key = 'id'")
                if check:
                    refuse_losses(db)
        except BaseException:
            self.database.close()
            raise
        self.folder = folder
        _forget_other(folder, identity)
        self.files_at = files
        self._files = open_files(files, self.database)
        self._generations = Generations(self._files, self.folder / "arrays")
        self._key_values = PostgresKeyValueStore(self.database)
        self._vectors: dict[tuple[str, Kind], SharedVectors] = {}
        self._inputs = InputReader(self.database, self._load_previous, self.vectors)
        self._task_lock = TaskLock()
        self._checked_chunks: set[int] = set()
        self._named: tuple[int, dict[str, tuple[str, ...]]] = (0, {})
        self._follower: GenerationFollower | None = None

    # -- reading

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Open the newest generation for reading."""
        # Only errors of the store itself are translated, not those raised by the caller.
        with translate_errors(self.address):
            db, generation, arrays = await asyncio.to_thread(self._load_newest)
        try:
            yield ResolvedSnapshot(self._open_snapshot(db, generation, arrays))
        finally:
            self.database.release(db)

    def _open_snapshot(self, db: Connection, generation: int, arrays: Arrays) -> TableSnapshot:
        """The snapshot of an open transaction; it reads in threads."""

        async def select(statement: str, keys: Sequence[str | int]) -> list[tuple[Any, ...]]:
            written = _DIALECT.write(statement).encode()
            with translate_errors(self.address):
                return await asyncio.to_thread(lambda: db.execute(written, (keys,)).fetchall())

        async def get(kind: str, keys: Sequence[str]) -> dict[str, str]:
            with translate_errors(self.address):
                return await asyncio.to_thread(select_values, db, kind, keys)

        if self._named[0] != generation:
            self._named = (generation, {})
        named = self._named[1]
        return TableSnapshot(generation, arrays, select, get, self._checked_chunks, named)

    def _load_newest(self) -> tuple[Connection, int, Arrays]:
        """Begin a transaction; return the generation that it sees, and its arrays."""
        for _ in range(5):
            db, rows = self.database.begin_with(READ, SELECT_GENERATION)
            try:
                generation, seal = parse_generation(rows)
                return db, generation, self._generations.load(generation, seal)
            except FileNotFoundError:
                self.database.release(db)  # newer generations were written meanwhile
            except BaseException:
                self.database.release(db)
                raise
        raise ArraysMissing(
            f"the arrays of {self.address} are missing; `clew verify --repair` rebuilds them"
        )

    async def counts(self) -> Counts:
        """Count documents and elements."""
        return await asyncio.to_thread(self._read_counts)

    async def sources(self, names: Collection[str] | None = None) -> dict[str, DocumentSource]:
        """Map every document name, or those of `names` that there are, to its document."""

        def read() -> dict[str, DocumentSource]:
            with self.database.transaction(READ) as db:
                found = db.execute(
                    "SELECT s.name, d.id, d.stamp FROM sources s JOIN documents d "
                    "ON d.key = s.document WHERE %s::text[] IS NULL OR s.name = ANY(%s::text[]) "
                    "ORDER BY s.name",
                    (given := None if names is None else list(names), given),
                )
                return {name: DocumentSource(document, stamp) for name, document, stamp in found}

        return await asyncio.to_thread(read)

    async def failures(self) -> list[Failure]:
        """Chunks whose extraction failed, and why."""

        def read() -> list[Failure]:
            with self.database.transaction(READ) as db:
                found = db.execute(
                    "SELECT d.id, c.id, c.failed FROM chunks c JOIN documents d "
                    "ON d.key = c.document WHERE c.failed != '' ORDER BY c.key"
                )
                return [Failure(*row) for row in found]

        return await asyncio.to_thread(read)

    async def get(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored values of these keys."""
        return await asyncio.to_thread(self._key_values.get, kind, list(keys))

    async def follow(self) -> None:
        """Fetch every new generation when it is announced, before a question needs it."""
        if self._follower is None:
            self._follower = GenerationFollower(self.database, self.fetch_newest)
            self._follower.start()

    def fetch_newest(self) -> int:
        """Fetch the newest arrays and vectors to this machine; return their generation."""
        with self.database.transaction(READ) as db:
            generation, seal = read_generation(db)
            embedder = read_value(db, _EMBEDDER)
        with suppress(FileNotFoundError):  # a newer one was written meanwhile
            self._generations.load(generation, seal)
        for kind in get_args(Kind) if embedder else ():
            self.vectors(embedder, kind).save_index()
        return generation

    async def find_problems(self) -> list[str]:
        """Check consistency; return one sentence per problem."""
        return await asyncio.to_thread(self._find_problems)

    async def backup(self, file: Path) -> int:
        """Copy the tables to a file, as of a knowledge base in a folder; return its size."""
        with self.read_rows() as found:
            return await back_up_as_folder(found, file)

    @contextmanager
    def read_rows(self) -> Iterator[PostgresRows]:
        """Open all rows for reading, unchanged until closed."""
        with translate_errors(self.address):
            db, generation, arrays = self._load_newest()
            try:
                yield PostgresRows(db, generation, arrays)
            finally:
                self.database.release(db)

    def replace_rows(self, found: TableRows) -> None:
        """Replace all tables and arrays by these, in one transaction; the lock must be held."""
        with self.database.transaction(READ) as db:
            generation = max(found.generation, read_generation(db)[0] + 1)
        seal = self._generations.save(generation, found.arrays) if found.arrays else ""
        with self.database.transaction() as db:
            write = begin_write(db)
            show_generation(db, generation)
            replace_all_rows(db, found)
            finish_write(db, write)
            count_all_values(db)
            self._publish(db, generation, seal)
        self._update_passage_vectors()

    async def find_losses(self, kinds: Collection[str] = ()) -> list[str]:
        """What was lost and cannot be derived; one sentence each."""

        def find() -> list[str]:
            with self.database.transaction(READ) as db:
                return find_lost_values(db, kinds)

        return await asyncio.to_thread(find)

    async def accept_losses(self) -> None:
        """Take the stored values there are now as whole."""

        def accept() -> None:
            with self.database.transaction() as db:
                count_all_values(db)

        await asyncio.to_thread(accept)

    async def load_sound_arrays(self) -> Arrays:
        """Those arrays of a damaged generation that are as they were written."""

        def load() -> Arrays:
            with self.database.transaction(READ) as db:
                generation, seal = read_generation(db)
            with suppress(FileNotFoundError, DamagedArrays):
                self._generations.load(generation, seal)
            return load_sound_arrays(self._generations.folder(generation), seal)

        return await asyncio.to_thread(load)

    # -- writing

    async def set(self, kind: str, items: Mapping[str, str]) -> None:
        """Store values by key, durably."""
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
            attempts = self.database.try_writer_lock(self._patience)
            while True:
                try:
                    next(attempts)
                except StopIteration as done:
                    held: Connection = done.value
                    break
                try:
                    await asyncio.sleep(POLL_INTERVAL)
                except BaseException:
                    attempts.close()
                    raise
            try:
                yield
            finally:
                self.database.release(held)

    @asynccontextmanager
    async def background_writer(
        self, derive: DeriveArrays, documents: int
    ) -> AsyncIterator[BackgroundWriter | None]:
        """A child process that writes while this one waits for models."""
        async with open_writer_process(self, derive, documents) as writer:
            yield writer

    def write_prepared(
        self, prepared: PreparedAdditions, derive: DeriveArrays, wait: Callable[[], None]
    ) -> None:
        """Write prepared additions in a process whose parent holds the lock."""
        self._write_generation(Change(add=prepared.additions), derive, (prepared, wait))

    async def write(self, change: Change, derive: DeriveArrays) -> Counts:
        """Apply a change, derive the arrays, and publish both atomically."""
        async with self.write_lock():
            await asyncio.to_thread(self._write_generation, change, derive)
            return await self.counts()

    def vectors(self, embedder: str, kind: Kind) -> SharedVectors:
        """The vectors of one embedder for one kind of element."""
        if (embedder, kind) not in self._vectors:
            used = partial(self._shape_in_use, kind)
            self._vectors[embedder, kind] = SharedVectors(
                self.database, self._files, self.folder, embedder, kind, used
            )
        return self._vectors[embedder, kind]

    def forget_vectors(self, embedder: str) -> None:
        """Remove the vectors of an embedder, which no element may use."""
        for kind in get_args(Kind):
            self.vectors(embedder, kind).forget_all()

    async def close(self) -> None:
        """Close connections."""
        if self._follower is not None:
            await asyncio.to_thread(self._follower.stop)
            self._follower = None
        self.database.close()

    # -- internal

    def _shape_in_use(self, kind: Kind) -> tuple[int, int]:
        with self.database.transaction(READ) as db:
            rows = read_value(db, _ROWS_IN_USE[kind]) if kind in _ROWS_IN_USE else ""
            width = read_value(db, _DIMENSION)
        return int(rows) if rows.isdigit() else 0, int(width) if width.isdigit() else 0

    def _write_generation(
        self, change: Change, derive: DeriveArrays, prepared: Preparation = UNPREPARED
    ) -> None:
        """Write rows, derive arrays without a transaction, and publish both by a short one."""
        with self.database.transaction() as db:
            write = begin_write(db)
            embedder = change.embedder or read_value(db, _EMBEDDER)
            find_rows = partial(self._inputs.find_rows, embedder)
            writer = PostgresWriter(db, find_rows, *prepared)
            touched = writer.apply(change)
        try:
            given = self._inputs.read(write, change, touched, embedder)
            arrays = {**derive(given.tables), **columns_to_keep(given.tables)}
            seal = self._generations.save(write.generation, arrays)
            with self.database.transaction() as db:
                finish_write(db, write)
                forget_replies(db, writer.forgotten)
                set_vector_rows(db, given.vector_rows)
                if change.embedder:
                    store_values(db, {"manifest": {"embedder": change.embedder}})
                store_values(db, change.values)
                self._publish(db, write.generation, seal)
        except BaseException:
            # Else the next writer does it: the server may be out of reach.
            with suppress(StoreError), self.database.transaction() as db:
                undo_write(db, write.token)
            raise
        # The write is published: failing to remove old arrays must not undo it.
        with suppress(StoreError):
            self._generations.remove_before(write.generation - 1)
        self._update_passage_vectors()

    def _update_passage_vectors(self) -> None:
        """Let SQL search the passages, where it can; what fails now, the next write does."""
        with suppress(StoreError, DamagedVectors), self.database.transaction() as db:
            embedder = read_value(db, _EMBEDDER)
            update_passage_vectors(db, embedder, self.vectors(embedder, "chunk"))

    def _publish(self, db: Connection, generation: int, seal: str) -> None:
        """Make a generation the newest, and announce it; readers see it after the commit."""
        db.execute(
            "INSERT INTO meta VALUES ('generation', %s), ('arrays', %s) ON CONFLICT (key) "
            "DO UPDATE SET value = excluded.value",
            (str(generation), seal),
        )
        db.execute("SELECT pg_notify(%s, %s)", (self.database.channel, str(generation)))

    def _load_previous(self, generation: int, seal: str) -> Arrays:
        """The arrays of the previous generation; damaged or missing ones are derived again."""
        try:
            return self._generations.load(generation, seal)
        except (FileNotFoundError, DamagedArrays):
            return {}

    def _read_counts(self) -> Counts:
        with self.database.transaction(READ) as db:
            generation, seal = read_generation(db)
            row = db.execute(_COUNTS, (self.address.schema,)).fetchone()
        documents, chunks, entities, facts, failed, size = row or (0,) * 6
        try:
            arrays = self._generations.load(generation, seal)
        except (FileNotFoundError, DamagedArrays):
            arrays = {}
        if "entity_keys" in arrays:  # resolved entities; the table holds names
            entities = len(arrays["entity_keys"])
        trees = len(arrays.get("community_keys", ()))
        return Counts(documents, chunks, entities, facts, trees, failed, generation, size)

    def _find_problems(self) -> list[str]:
        found: list[str] = []
        tables: dict[Kind, SharedVectors] = {}
        with self.database.transaction(READ) as db:
            embedder = read_value(db, _EMBEDDER)
            for kind in get_args(Kind) if embedder else ():
                try:
                    self.vectors(embedder, kind).count_checked_rows()
                    tables[kind] = self.vectors(embedder, kind)
                except DamagedVectors as error:
                    found.append(str(error))
            generation, seal = read_generation(db)
            try:
                arrays = self._generations.load(generation, seal)
                damaged = self._generations.check(generation, seal)
            except FileNotFoundError:
                arrays, damaged = {}, []  # reported below, if there is anything to derive
            except DamagedArrays as error:
                arrays, damaged = {}, [str(error)]
            found += damaged + find_lost_values(db)
            return found + find_problems(db, None if damaged else arrays, tables)


def _forget_other(folder: Path, identity: str) -> None:
    """Remove this machine's copies of another knowledge base that was at this address."""
    mark = folder / "id"
    if mark.exists() and mark.read_text() == identity:
        return
    for name in ("arrays", "vectors"):
        shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    mark.write_text(identity)


def read_value(db: Connection, statement: LiteralString) -> str:
    """The first cell that a statement selects, as text; empty if there is none."""
    row = db.execute(statement).fetchone()
    return "" if row is None or row[0] is None else str(row[0])
