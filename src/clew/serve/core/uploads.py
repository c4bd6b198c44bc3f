"""Uploaded files: kept under the hash of their content, with their names in the database.

A name given by a caller is never a path: it names a document and nothing else.
"""

import asyncio
import hashlib
import json
import os
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from clew.errors import InputError
from clew.ingest.files import known_suffix
from clew.serve.core.database import ServerDatabase
from clew.serve.core.folders import make_private
from clew.serve.core.keys import Key
from clew.text.unicode import clean

T = TypeVar("T")
_MAX_NAME_BYTES = 255
_UNKNOWN_SUFFIX = ".unknown"  # read by looking at the content
_UPSERT = (
    "INSERT INTO uploads(workspace, name, hash, bytes, labels, owner, state, created) "
    "VALUES (?,?,?,?,?,?,'uploaded',?) ON CONFLICT(workspace, name) DO UPDATE SET "
    "hash = excluded.hash, bytes = excluded.bytes, labels = excluded.labels, "
    "owner = excluded.owner, state = 'uploaded', reason = '', created = excluded.created"
)

_FORGET_DOCUMENTS = "DELETE FROM originals WHERE workspace = ? AND name = ?"


@dataclass(frozen=True)
class Upload:
    """One uploaded file, and what became of it."""

    name: str
    hash: str
    bytes: int
    labels: tuple[str, ...]
    owner: str
    state: str
    """uploaded, added, or failed with a reason."""
    reason: str
    created: float

    def to_json(self) -> dict[str, Any]:
        """Return what a caller is told."""
        return {
            "name": self.name,
            "state": self.state,
            "reason": self.reason,
            "bytes": self.bytes,
            "sha256": self.hash,
            "labels": list(self.labels),
            "created": self.created,
        }


@dataclass(frozen=True)
class Received:
    """The content of an upload that is not recorded yet."""

    file: Path
    hash: str
    size: int


def check_name(name: str, key: Key) -> str:
    """Return the document name of an upload; those of keys with labels are in a folder of theirs.

    So such a key can neither replace nor detect a document that it may not see.
    """
    if any(ord(char) < 32 for char in name) or "\\" in name or "#" in name:
        raise InputError("a document's name has no control characters, backslashes or #")
    name = clean(name).strip()
    parts = PurePosixPath(name).parts
    if not name or len(name.encode()) > _MAX_NAME_BYTES:
        raise InputError(f"a document needs a name of at most {_MAX_NAME_BYTES} bytes")
    if name.startswith("/") or ".." in parts or "." in name.split("/"):
        raise InputError("a document's name is relative and has no . or .. parts")
    return name if key.sees_all else f"{key.id}/{name}"


@dataclass(frozen=True)
class UploadStore:
    """The uploads of all workspaces."""

    database: ServerDatabase
    folder: Path

    @asynccontextmanager
    async def receive(self, workspace: str, body: AsyncIterator[bytes]) -> AsyncIterator[Received]:
        """Write a body to a file, which is gone afterwards unless it was recorded."""
        target = self.folder / workspace
        make_private(target)
        temporary = target / f".{secrets.token_hex(8)}.new"
        hashed, size = hashlib.sha256(), 0
        try:
            with temporary.open("xb") as file:
                async for part in body:
                    hashed.update(part)
                    size += len(part)
                    await asyncio.to_thread(file.write, part)
                file.flush()
                await asyncio.to_thread(os.fsync, file.fileno())
            if not size:
                raise InputError("the file is empty")
            yield Received(temporary, hashed.hexdigest(), size)
        finally:
            temporary.unlink(missing_ok=True)

    def path(self, workspace: str, name: str, hashed: str) -> Path:
        """Return where the content of an upload is: its hash, and a known suffix for the reader."""
        return self.folder / workspace / (hashed + (known_suffix(name) or _UNKNOWN_SUFFIX))

    def record(
        self,
        workspace: str,
        name: str,
        content: Received,
        labels: Sequence[str],
        owner: str,
        also: Callable[[], T],
    ) -> tuple[Upload, T]:
        """Keep what was received as an upload of this name, and do what else `also` does.

        If that fails, nothing has changed: an earlier upload of the name is as it was.
        """
        before = self.find(workspace, name)
        size, listed = content.size, json.dumps(list(labels))
        values = (workspace, name, content.hash, size, listed, owner, time.time())
        try:
            with self.database.transaction() as db:
                content.file.replace(self.path(workspace, name, content.hash))
                db.execute(_UPSERT, values)
                found = self.find(workspace, name)
                assert found is not None
                return found, also()
        finally:
            for hashed in {content.hash, before.hash if before else content.hash}:
                self.discard_unused(workspace, name, hashed)

    def find(self, workspace: str, name: str) -> Upload | None:
        """Return the upload of this name."""
        row = self.database.row(
            "SELECT * FROM uploads WHERE workspace = ? AND name = ?", workspace, name
        )
        return None if row is None else _read_upload(row)

    def list(self, workspace: str, state: str | None = None) -> list[Upload]:
        """Return uploads, all or those in one state, by name."""
        rows = self.database.rows(
            "SELECT * FROM uploads WHERE workspace = ?1 AND (?2 IS NULL OR state = ?2) "
            "ORDER BY name",
            *(workspace, state),
        )
        return [_read_upload(row) for row in rows]

    def finish(
        self, workspace: str, upload: Upload, documents: Collection[str], reason: str = ""
    ) -> None:
        """Note which documents an upload gave, or why none, unless it was replaced meanwhile."""
        state = "added" if documents else "failed"
        with self.database.transaction() as db:
            changed = db.execute(
                "UPDATE uploads SET state = ?, reason = ? "
                "WHERE workspace = ? AND name = ? AND hash = ? AND created = ?",
                (state, reason, workspace, upload.name, upload.hash, upload.created),
            )
            if changed.rowcount:
                db.execute(_FORGET_DOCUMENTS, (workspace, upload.name))
                rows = [(workspace, upload.name, document) for document in documents]
                db.executemany("INSERT INTO originals VALUES (?,?,?)", rows)

    def retry(self, workspace: str, names: Collection[str]) -> None:
        """Let files that failed wait for a build again."""
        for name in names:
            self.database.change(
                "UPDATE uploads SET state = 'uploaded', reason = '' "
                "WHERE workspace = ? AND name = ? AND state = 'failed'",
                *(workspace, name),
            )

    def gave(self, workspace: str, upload: Upload, document: str) -> bool:
        """Whether a document was read from this upload: another may have taken its name since."""
        row = self.database.row(
            "SELECT 1 FROM originals WHERE workspace = ? AND name = ? AND document = ?",
            *(workspace, upload.name, document),
        )
        return upload.state == "added" and row is not None

    def remove(self, workspace: str, name: str) -> bool:
        """Remove an upload, and its content if no other upload has it."""
        found = self.find(workspace, name)
        if found is None:
            return False
        with self.database.transaction() as db:
            db.execute(_FORGET_DOCUMENTS, (workspace, name))
            db.execute("DELETE FROM uploads WHERE workspace = ? AND name = ?", (workspace, name))
        self.discard_unused(workspace, name, found.hash)
        return True

    def discard_unused(self, workspace: str, name: str, hashed: str) -> None:
        """Remove the content that an upload of this name has or had, unless one still has it."""
        path = self.path(workspace, name, hashed)
        with self.database.transaction():  # nobody may record it between the look and the removal
            others = self.database.rows(
                "SELECT name FROM uploads WHERE workspace = ? AND hash = ?", workspace, hashed
            )
            if all(self.path(workspace, other["name"], hashed) != path for other in others):
                path.unlink(missing_ok=True)


def _read_upload(row: sqlite3.Row) -> Upload:
    return Upload(
        *(row["name"], row["hash"], row["bytes"], tuple(json.loads(row["labels"]))),
        *(row["owner"], row["state"], row["reason"], row["created"]),
    )
