"""Files that belong to a knowledge base in a database: generations of arrays, blocks of vectors.

They are kept in the database itself, in a folder that all machines see, or at any address that
fsspec knows (`s3://bucket/prefix`). A file, once written, never changes.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from clew.errors import ConfigError, StoreError
from clew.kb_address import DatabaseAddress
from clew.store.array_files import sync_to_disk
from clew.store.postgres.connections import READ, Database
from clew.version import pip_install_command

_PART_BYTES = 16 << 20  # of a file in the database, well below the limit of one value
_PARALLEL = 8


class SharedFiles(Protocol):
    """Files by name; a name may have folders, separated by `/`."""

    def save(self, name: str, data: bytes) -> None:
        """Write one file."""

    def load(self, name: str) -> bytes:
        """Read one file; FileNotFoundError if there is none."""

    def save_folder(self, name: str, folder: Path) -> None:
        """Write all files of a folder, replacing what was there."""

    def load_folder(self, name: str, folder: Path) -> None:
        """Read all files of a folder into an empty one; FileNotFoundError if there are none."""

    def list_folder(self, name: str) -> list[str]:
        """Names of the files and folders within a folder."""

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all its files."""


def open_files(where: str, database: Database) -> SharedFiles:
    """Open the files of one knowledge base; without an address they are in the database."""
    if not where:
        return DatabaseFiles(database)
    folder = f"{where.rstrip('/')}/{database.address.schema}"
    if "://" not in where:
        return FolderFiles(Path(folder).expanduser(), database.address)
    return RemoteFiles(folder, database.address)


class DatabaseFiles:
    """Files in a table, in parts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, name: str, data: bytes) -> None:
        """Write one file."""
        with self._database.transaction() as db:
            _insert_file(db, name, data)

    def load(self, name: str) -> bytes:
        """Read one file."""
        with self._database.transaction(READ) as db:
            found = db.execute("SELECT data FROM files WHERE name = %s ORDER BY part", (name,))
            parts = [bytes(row[0]) for row in found]
        if not parts:
            raise FileNotFoundError(name)
        return b"".join(parts)

    def save_folder(self, name: str, folder: Path) -> None:
        """Write all files of a folder."""
        self.remove(name)
        with self._database.transaction() as db:
            for path in sorted(folder.iterdir()):
                _insert_file(db, f"{name}/{path.name}", path.read_bytes())

    def load_folder(self, name: str, folder: Path) -> None:
        """Read all files of a folder."""
        with self._database.transaction(READ) as db:
            found = db.execute(
                "SELECT DISTINCT name FROM files WHERE starts_with(name, %s)", (f"{name}/",)
            ).fetchall()
            if not found:
                raise FileNotFoundError(name)
            for (file,) in found:
                with (folder / str(file).rpartition("/")[2]).open("wb") as target:
                    statement = "SELECT data FROM files WHERE name = %s ORDER BY part"
                    for (part,) in db.execute(statement, (file,)):
                        target.write(part)

    def list_folder(self, name: str) -> list[str]:
        """Names within a folder."""
        with self._database.transaction(READ) as db:
            found = db.execute(
                "SELECT DISTINCT split_part(substr(name, length(%s) + 2), '/', 1) FROM files "
                "WHERE starts_with(name, %s)",
                (name, f"{name}/"),
            )
            return sorted(str(row[0]) for row in found)

    def remove(self, name: str) -> None:
        """Remove a file or a folder."""
        with self._database.transaction() as db:
            db.execute(
                "DELETE FROM files WHERE name = %s OR starts_with(name, %s)", (name, f"{name}/")
            )


def _insert_file(db: Any, name: str, data: bytes) -> None:
    for part, at in enumerate(range(0, max(len(data), 1), _PART_BYTES)):
        db.execute(
            "INSERT INTO files VALUES (%s, %s, %b) ON CONFLICT (name, part) "
            "DO UPDATE SET data = excluded.data",
            (name, part, data[at : at + _PART_BYTES]),
        )


class FolderFiles:
    """Files in a folder that all machines see; on one machine they are linked, not copied."""

    def __init__(self, root: Path, address: DatabaseAddress) -> None:
        self._root = root
        self._address = address

    def save(self, name: str, data: bytes) -> None:
        """Write one file."""
        with _translate_errors(self._address, str(self._root)):
            path = self._root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            new = path.with_name(f"{path.name}.{os.getpid()}.new")
            new.write_bytes(data)
            sync_to_disk(new)
            new.replace(path)

    def load(self, name: str) -> bytes:
        """Read one file."""
        return (self._root / name).read_bytes()

    def save_folder(self, name: str, folder: Path) -> None:
        """Write all files of a folder."""
        with _translate_errors(self._address, str(self._root)):
            target = self._root / name
            new = target.with_name(f"{target.name}.new")
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(parents=True)
            _link_all(folder, new)
            shutil.rmtree(target, ignore_errors=True)
            new.rename(target)
            sync_to_disk(target.parent)

    def load_folder(self, name: str, folder: Path) -> None:
        """Read all files of a folder."""
        _link_all(self._root / name, folder)

    def list_folder(self, name: str) -> list[str]:
        """Names within a folder."""
        folder = self._root / name
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def remove(self, name: str) -> None:
        """Remove a file or a folder; one that cannot be removed is tried again later."""
        path = self._root / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _link_all(source: Path, target: Path) -> None:
    for path in source.iterdir():
        try:
            os.link(path, target / path.name)
        except OSError:  # on another disk, or not allowed there
            shutil.copyfile(path, target / path.name)


class RemoteFiles:
    """Files at an address of fsspec, such as an object store."""

    def __init__(self, root: str, address: DatabaseAddress) -> None:
        try:
            import fsspec
        except ImportError as error:
            raise ConfigError(
                f"[store] files = {root!r} needs fsspec; run `{pip_install_command('postgres')}`"
            ) from error
        try:
            self._system, self._root = fsspec.core.url_to_fs(root)
        except (ImportError, ValueError) as error:
            raise ConfigError(f"[store] files = {root!r}: {error}") from error
        self._address = address
        self._shown = root

    def save(self, name: str, data: bytes) -> None:
        """Write one file."""
        with _translate_errors(self._address, self._shown):
            path = f"{self._root}/{name}"
            self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._system.pipe_file(path, data)

    def load(self, name: str) -> bytes:
        """Read one file."""
        with _translate_errors(self._address, self._shown, "read"):
            return bytes(self._system.cat_file(f"{self._root}/{name}"))

    def save_folder(self, name: str, folder: Path) -> None:
        """Write all files of a folder, several at once."""
        self.remove(name)
        with ThreadPoolExecutor(_PARALLEL) as pool:
            list(
                pool.map(
                    lambda path: self.save(f"{name}/{path.name}", path.read_bytes()),
                    sorted(folder.iterdir()),
                )
            )

    def load_folder(self, name: str, folder: Path) -> None:
        """Read all files of a folder, several at once."""
        with _translate_errors(self._address, self._shown, "read"):
            self._system.invalidate_cache()
            found = self._system.find(f"{self._root}/{name}")
            if not found:
                raise FileNotFoundError(name)
            with ThreadPoolExecutor(_PARALLEL) as pool:
                list(
                    pool.map(
                        lambda path: (folder / path.rpartition("/")[2]).write_bytes(
                            self._system.cat_file(path)
                        ),
                        found,
                    )
                )

    def list_folder(self, name: str) -> list[str]:
        """Names within a folder."""
        with _translate_errors(self._address, self._shown, "read"):
            self._system.invalidate_cache()
            path = f"{self._root}/{name}"
            if not self._system.exists(path):
                return []
            listed = self._system.ls(path, detail=False)
        return sorted(str(one).rstrip("/").rpartition("/")[2] for one in listed)

    def remove(self, name: str) -> None:
        """Remove a file or a folder."""
        path = f"{self._root}/{name}"
        with _translate_errors(self._address, self._shown):
            self._system.invalidate_cache()
            if self._system.exists(path):
                self._system.rm(path, recursive=True)


# Errors that are no OSError, by the module of the library that raises them.
_LIBRARY_ERRORS = {
    "botocore.exceptions": "BotoCoreError",
    "aiohttp": "ClientError",
    "gcsfs.retry": "HttpError",
    "azure.core.exceptions": "AzureError",
}


@contextmanager
def _translate_errors(address: DatabaseAddress, where: str, what: str = "write") -> Iterator[None]:
    """Translate errors of the place to StoreError; that a file is not there is left as it is."""
    kinds = [
        getattr(sys.modules[module], name)
        for module, name in _LIBRARY_ERRORS.items()
        if module in sys.modules
    ]
    try:
        yield
    except FileNotFoundError:
        if what == "read":
            raise
        raise StoreError(f"cannot write files of {address}: {where} is not there") from None
    except (OSError, *kinds) as error:
        why = getattr(error, "strerror", None) or str(error)
        unchanged = "nothing was changed" if what == "write" else "try again when it is back"
        raise StoreError(
            f"cannot {what} files of {address} at {where}: {why}; {unchanged}"
        ) from error
