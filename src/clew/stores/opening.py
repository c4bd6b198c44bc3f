"""Open the store of a knowledge base, wherever it is: no other module asks where that is."""

import asyncio
import tempfile
from importlib.util import find_spec
from pathlib import Path

from clew.config import Settings
from clew.errors import ConfigError
from clew.kb_address import DatabaseAddress
from clew.store.sqlite.restore import read_backup_embedder as read_backup_embedder
from clew.store.sqlite.restore import restore_database
from clew.store.sqlite.store import DATABASE_FILE, SqliteStore
from clew.stores.copying import CopyableStore, restore_from_folder
from clew.version import pip_install_command


def open_located_store(
    settings: Settings, *, create: bool = False, check: bool = True, restoring: bool = False
) -> CopyableStore:
    """Open the configured folder or database; `check` and `restoring` as in `SqliteStore`."""
    if isinstance(settings.kb, DatabaseAddress):
        return open_database(settings, settings.kb, create=create, check=check)
    store = SqliteStore(
        settings.kb, create=create, patience=settings.wait, check=check, restoring=restoring
    )
    store.memory = settings.memory
    return store


def open_database(
    settings: Settings, address: DatabaseAddress, *, create: bool = False, check: bool = True
) -> CopyableStore:
    """Open a schema of a PostgreSQL database."""
    require_driver(address)
    from clew.store.postgres.store import PostgresStore

    return PostgresStore(
        address,
        address.work_folder(settings.cache),
        create=create,
        patience=settings.wait,
        files=settings.store.files,
        check=check,
    )


def require_driver(address: DatabaseAddress) -> None:
    """Raise if the driver for PostgreSQL is not installed."""
    if find_spec("psycopg") is None:
        raise ConfigError(
            f"{address} needs the PostgreSQL driver; run `{pip_install_command('postgres')}`"
        )


def describe_pgvector(settings: Settings) -> str:
    """What a database makes of the extension pgvector; empty for a folder."""
    if not isinstance(settings.kb, DatabaseAddress):
        return ""
    from clew.store.postgres.connections import Database
    from clew.store.postgres.passage_vectors import describe_pgvector

    database = Database(settings.kb)
    try:
        return describe_pgvector(database)
    finally:
        database.close()


def is_knowledge_base(settings: Settings) -> bool:
    """Whether there is one where the settings say."""
    if isinstance(settings.kb, DatabaseAddress):
        require_driver(settings.kb)
        from clew.store.postgres.connections import Database

        database = Database(settings.kb)
        try:
            return database.is_there()
        finally:
            database.close()
    return is_folder_of_one(settings.kb)


def is_folder_of_one(folder: Path) -> bool:
    """Whether a folder holds a knowledge base."""
    return (folder / DATABASE_FILE).is_file()


async def restore_backup(settings: Settings, file: Path) -> None:
    """Replace the configured knowledge base by a backup; its arrays are yet to be derived."""
    if not isinstance(settings.kb, DatabaseAddress):
        await asyncio.to_thread(restore_database, settings.kb, file, settings.wait)
        return
    with tempfile.TemporaryDirectory(prefix="clew-restore-") as name:
        folder = Path(name) / "kb"
        await asyncio.to_thread(restore_database, folder, file, settings.wait)
        store = open_database(settings, settings.kb, create=True, check=False)
        async with store.write_lock():
            await restore_from_folder(folder, store)
        await store.close()
