"""Resolves names, files and folders to stored documents, and finds documents without a file."""

import asyncio
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from clew.errors import StoreError
from clew.ingest.find import document_name
from clew.ingest.graphs.again import document_parts
from clew.ingest.intake import possible_files
from clew.ingest.places import LOCATIONS_KIND, hash_location
from clew.store.protocol import Store


def resolve_document_names(names: Iterable[str], known: Collection[str]) -> list[str]:
    """Return the documents that names denote: a file of rows its rows, a folder all below it."""
    return list(dict.fromkeys(name for given in names for name in _resolve_name(given, known)))


def _resolve_name(given: str, known: Collection[str]) -> list[str]:
    path = document_name(Path(given))  # without `./` and a trailing slash
    for name in (given, path):
        found = [part for part in document_parts(name, known) if part in known]
        if found:
            return found
    below = [name for name in known if name.startswith(f"{path}/")]
    if not below:
        raise StoreError(f"no document named {given!r}; `clew status --documents` lists them")
    return below


async def find_missing_files(store: Store, paths: Sequence[Path | str]) -> list[str]:
    """Return the names of files that were read from these folders and no longer exist."""
    files = {file for name in await store.sources() for file in possible_files(name)}
    locations = await store.get(LOCATIONS_KIND, list(files))
    return await asyncio.to_thread(_filter_missing, locations, paths)


def _filter_missing(locations: Mapping[str, str], paths: Sequence[Path | str]) -> list[str]:
    roots = [os.path.realpath(path) for path in paths if os.path.isdir(path)]
    return sorted(
        file for file, location in locations.items() if _is_missing(file, location, roots)
    )


def _is_missing(file: str, location: str, roots: Sequence[str]) -> bool:
    """Return whether a file was below one of the roots and is no longer there."""
    parts = file.split("/")
    for root in roots:
        for start in range(len(parts)):
            path = os.path.join(root, *parts[start:])
            if hash_location(*os.path.split(path)) == location:
                return not os.path.lexists(path)
    return False
