"""The file that a document was read from: an upload, or a file of this machine that is unchanged.

A knowledge base holds the hash of where a file was, and no path: the file is looked for by its name
where the server runs and beside the knowledge base.
"""

import asyncio
import os
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from clew.engine import KnowledgeBase
from clew.ingest.document_names import LOCATIONS_KIND, hash_location
from clew.ingest.files import read_files
from clew.ingest.readers.source import ReadBudget, SourceFile
from clew.serve.core.access import Access
from clew.serve.core.problems import not_found
from clew.types import Document

NO_ORIGINAL = "there is no original of this document"
FILE_NOT_FOUND = "the server does not find the file that was added on the command line"
FILE_CHANGED = "the file has changed since it was added"
_MAX_CHECKED = 1000  # files of which it is kept whether they are unchanged


@dataclass(frozen=True, slots=True)
class Original:
    """A file, the name of its documents, and whether it was uploaded; uploads never change."""

    path: Path
    name: str
    uploaded: bool


async def list_names(base: KnowledgeBase) -> list[str]:
    """Return the names of all documents."""
    return list(await base.store.sources())


async def find_original(access: Access, document: Document) -> Original:
    """Return the file of a document, if this key may see all that was read from it."""
    files = list(dict.fromkeys(name.partition("#")[0] for name in document.names))
    seen = set(await access.run(list_names))
    every = await access.run_on_all(list_names)
    hidden = {name.partition("#")[0] for name in every if name not in seen}
    files = [file for file in files if file not in hidden]
    uploads, workspace = access.server.uploads, access.workspace
    sent = [upload for file in files if (upload := uploads.find(workspace, file))]
    for upload in sent:
        if uploads.gave(workspace, upload, document.id):
            path = uploads.path(workspace, upload.name, upload.hash)
            return Original(path, upload.name, uploaded=True)
    local = [file for file in files if file not in {upload.name for upload in sent}]
    if not local:
        raise not_found(NO_ORIGINAL)
    found = await _find_local(access, local)
    if found is None:
        raise not_found(FILE_NOT_FOUND)
    return found


async def _find_local(access: Access, files: Sequence[str]) -> Original | None:
    """Return the first of these files that is still where it was added from."""

    async def read_locations(base: KnowledgeBase) -> dict[str, str]:
        return await base.store.get(LOCATIONS_KIND, list(files))

    locations = await access.run_on_all(read_locations)
    folder = access.server.folders.workspace(access.workspace)
    folders = [Path.cwd(), folder, *folder.resolve().parents[:2]]
    return await asyncio.to_thread(_look_for, files, locations, folders)


def _look_for(
    files: Sequence[str], locations: dict[str, str], folders: Sequence[Path]
) -> Original | None:
    for name in files:
        for folder in folders:
            path = folder / name
            where = hash_location(os.path.realpath(path.parent), path.name)
            if where == locations.get(name) and path.is_file():
                return Original(path, name, uploaded=False)
    return None


async def check_unchanged(access: Access, original: Original, document: Document) -> None:
    """Raise if a file of this machine, read again, is no longer this document."""
    if original.uploaded:
        return
    try:
        state = await asyncio.to_thread(original.path.stat)
    except OSError as error:
        raise not_found(FILE_NOT_FOUND) from error
    key = (str(original.path), state.st_mtime_ns, state.st_size, document.id)
    checked = access.server.checked_files
    if key not in checked:
        if len(checked) >= _MAX_CHECKED:
            checked.clear()
        checked[key] = await _gives(access, original, document)
    if not checked[key]:
        raise not_found(FILE_CHANGED)


async def _gives(access: Access, original: Original, document: Document) -> bool:
    """Whether the file, read as it would be added now, gives this document."""
    budget = ReadBudget(**access.server.settings.read.model_dump())
    source = SourceFile(original.path, original.name)
    async with aclosing(read_files([source], budget)) as items:
        async for item in items:
            if isinstance(item, Document) and item.id == document.id:
                return True
    return False
