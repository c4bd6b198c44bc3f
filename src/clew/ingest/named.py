"""Resolves names, files and folders to stored documents, and finds documents without a file."""

import asyncio
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from clew.errors import StoreError
from clew.ingest.find import name_of
from clew.ingest.graphs.again import parts_of
from clew.ingest.intake import files_of
from clew.ingest.places import PLACES, place_of
from clew.store.protocol import Store


def documents_named(names: Iterable[str], known: Collection[str]) -> list[str]:
    """Return the documents that names denote: a file of rows its rows, a folder all below it."""
    return list(dict.fromkeys(name for given in names for name in _named(given, known)))


def _named(given: str, known: Collection[str]) -> list[str]:
    path = name_of(Path(given))  # without `./` and a trailing slash
    for name in (given, path):
        found = [part for part in parts_of(name, known) if part in known]
        if found:
            return found
    below = [name for name in known if name.startswith(f"{path}/")]
    if not below:
        raise StoreError(f"no document named {given!r}; `clew status --documents` lists them")
    return below


async def gone_files(store: Store, paths: Sequence[Path | str]) -> list[str]:
    """Return the names of files that were read from these folders and no longer exist."""
    files = {file for name in await store.sources() for file in files_of(name)}
    locations = await store.recall(PLACES, list(files))
    return await asyncio.to_thread(_gone, locations, paths)


def _gone(locations: Mapping[str, str], paths: Sequence[Path | str]) -> list[str]:
    roots = [os.path.realpath(path) for path in paths if os.path.isdir(path)]
    return sorted(file for file, location in locations.items() if _is_gone(file, location, roots))


def _is_gone(file: str, location: str, roots: Sequence[str]) -> bool:
    """Return whether a file was below one of the roots and is no longer there."""
    parts = file.split("/")
    for root in roots:
        for start in range(len(parts)):
            path = os.path.join(root, *parts[start:])
            if place_of(*os.path.split(path)) == location:
                return not os.path.lexists(path)
    return False
