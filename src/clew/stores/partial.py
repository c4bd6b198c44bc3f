"""Copies in a folder that hold a part of a knowledge base: how they are made and looked into."""

import asyncio
import sqlite3
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from clew.errors import StoreError
from clew.kb_address import DatabaseAddress, KbLocation
from clew.store.protocol import DocumentSource, Store
from clew.store.sqlite.keyvalue import forget_sums, select_values
from clew.store.sqlite.read import SELECT_SOURCES
from clew.store.sqlite.store import DATABASE_FILE, SELECT_GENERATION, SqliteStore
from clew.stores.opening import is_folder_of_one


@dataclass(frozen=True)
class CopiedState:
    """What a copy was made of: generation, documents by name, and a value of the manifest."""

    generation: int
    sources: dict[str, DocumentSource]
    value: str


async def copy_tables(store: Store, folder: Path, key: str) -> CopiedState:
    """Copy the tables into an empty folder; return their state, and one value of the manifest."""
    await store.backup(folder / DATABASE_FILE)
    return await asyncio.to_thread(_read_state, folder / DATABASE_FILE, key)


def _read_state(file: Path, key: str) -> CopiedState:
    with closing(sqlite3.connect(file)) as db:
        sources = {name: DocumentSource(*rest) for name, *rest in db.execute(SELECT_SOURCES)}
        value = select_values(db, "manifest", [key]).get(key, "")
        return CopiedState(int(db.execute(SELECT_GENERATION).fetchone()[0]), sources, value)


def forget_values(folder: Path, kinds: Collection[str], manifest: Collection[str]) -> None:
    """Delete all stored values of a copy but these kinds, and these keys of the manifest."""
    with closing(sqlite3.connect(folder / DATABASE_FILE)) as db:
        marks = [",".join("?" * len(some)) for some in (kinds, manifest)]
        db.execute(
            f"DELETE FROM memory WHERE kind NOT IN ({marks[0]}) "  # noqa: S608  (question marks)
            f"AND NOT (kind = 'manifest' AND key IN ({marks[1]}))",
            (*kinds, *manifest),
        )
        forget_sums(db)  # they are of the values that stay behind
        db.commit()


def open_copy(folder: Path, patience: float) -> Store:
    """Open a copy; it can be made again, so a power cut may harm it."""
    return SqliteStore(folder, patience=patience, durable=False)


def read_generation(kb: KbLocation) -> int | None:
    """The newest generation of a knowledge base; None if there is none any more."""
    found = _select(kb, SELECT_GENERATION)
    return int(found[0][0]) if found else None


def read_documents(kb: KbLocation) -> set[str]:
    """The ids of all documents of a knowledge base; none if there is none any more."""
    return {document for _, document, _ in _select(kb, SELECT_SOURCES)}


def _select(kb: KbLocation, statement: str) -> list[tuple[str, ...]]:
    """Rows of a statement that all databases understand."""
    if not isinstance(kb, DatabaseAddress):
        if not is_folder_of_one(kb):
            return []
        try:
            with closing(sqlite3.connect(kb / DATABASE_FILE)) as folder:
                return folder.execute(statement).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"cannot read {kb}: {error}") from error
    from clew.store.postgres.connections import READ, Database

    database = Database(kb)
    try:
        if not database.is_there():
            return []
        with database.transaction(READ) as db:
            return db.execute(statement.encode()).fetchall()
    finally:
        database.close()
