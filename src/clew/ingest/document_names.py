"""Document names: those files were first added under, and which documents a name refers to.

Citations show names, so they do not change, however a path is spelt later. Per file a hash of its
location is stored: its folder with all links resolved, and its own name, which may be a link.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path, PurePosixPath

from clew.errors import StoreError
from clew.ingest.files import (
    ParseElsewhere,
    ReadItem,
    document_name,
    find_files,
    read_files,
)
from clew.ingest.readers.source import DEFAULT_BUDGET, ReadBudget, Skipped, SourceFile
from clew.ingest.site_lines import Site, leave_out_site_lines
from clew.store.protocol import Store
from clew.text.tables import find_file_name, split_place
from clew.text.unicode import digest

# Kinds of key-value entries; locations in both directions: a name may come to mean another file.
GRAPHS_KIND = "graph"  # imported graphs, by name
_NAMES_KIND = "place"  # location hash → name
LOCATIONS_KIND = "placed"  # name → location hash
_SITES_KIND = "site"  # folder → what its pages repeat


def possible_files(name: str) -> Iterator[str]:
    """Yield the file names a document name may refer to: itself, or a file it is a row of."""
    yield name
    at = name.find("#")
    while at >= 0:
        yield name[:at]
        at = name.find("#", at + 1)


async def read_for_store(
    store: Store,
    paths: Sequence[str | Path | SourceFile],
    *,
    keep: bool = True,
    budget: ReadBudget = DEFAULT_BUDGET,
    elsewhere: ParseElsewhere | None = None,
) -> AsyncIterator[ReadItem]:
    """Read files and folders under their stored names; `keep` stores new locations.

    A `SourceFile`, such as a page that was fetched, follows under the name that it has.
    """
    named = [item for item in paths if isinstance(item, SourceFile)]
    plain = [item for item in paths if not isinstance(item, SourceFile)]
    found = await asyncio.to_thread(find_files, plain)
    locations = await asyncio.to_thread(_file_locations, found)
    names = await store.get(_NAMES_KIND, list(set(locations.values())))
    given = {item.name for item in found}
    stored = await store.get(LOCATIONS_KIND, list(given.union(names.values())))
    earlier = {location: name for location, name in names.items() if stored.get(name) == location}
    if len(set(locations.values())) < len(locations) or not given.issuperset(earlier.values()):
        known = {file for name in await store.sources() for file in possible_files(name)}
        earlier = {location: name for location, name in earlier.items() if name in known}
        found = list(_resolve_names(found, locations, earlier, known))
    if keep:
        current = {s.name: locations[s.path] for s in found if isinstance(s, SourceFile)}
        first = {location: name for name, location in reversed(current.items())}
        await _save_changes(store, _NAMES_KIND, first, names)
        await _save_changes(store, LOCATIONS_KIND, current, stored)
    before = await _load_sites(store, [item.name for item in (*found, *named)])
    sites = dict(before)
    async with aclosing(read_files([*found, *named], budget, elsewhere)) as items:
        async for item in leave_out_site_lines(items, sites):
            yield item
    if keep:
        new = {folder: site for folder, site in sites.items() if before.get(folder) != site}
        if new:
            await store.set(_SITES_KIND, {folder: site.to_json() for folder, site in new.items()})


async def _load_sites(store: Store, names: Sequence[str]) -> dict[str, Site]:
    """Return what the pages beside these files, or the rows in them, were found to repeat."""
    folders = {*names, *(str(PurePosixPath(name).parent) for name in names)}
    stored = await store.get(_SITES_KIND, sorted(folders))
    return {folder: Site.from_json(text) for folder, text in stored.items()}


def _file_locations(found: Iterable[SourceFile | Skipped]) -> dict[Path, str]:
    """Return the location hash of each file: a shared knowledge base reveals no paths."""
    folders: dict[Path, str] = {}  # resolved once each, not once per file
    locations = {}
    for path in (item.path for item in found if isinstance(item, SourceFile)):
        if path.parent not in folders:
            folders[path.parent] = os.path.realpath(path.parent)
        locations[path] = hash_location(folders[path.parent], path.name)
    return locations


def hash_location(folder: str, name: str) -> str:
    """Return the hash of a file's location; `folder` has its links resolved."""
    return digest(folder, name)


def _resolve_names(
    found: Sequence[SourceFile | Skipped],
    locations: Mapping[Path, str],
    earlier: Mapping[str, str],
    known: Collection[str],
) -> Iterator[SourceFile | Skipped]:
    """Yield files under their earlier names; a file given by two spellings is read once."""
    given = {item.name for item in found}
    files = [item for item in found if isinstance(item, SourceFile)]
    name_by_location = {locations[item.path]: item.name for item in files if item.name in known}
    for item in found:
        # Known names stay, even two of one file from before locations were stored.
        if isinstance(item, Skipped) or item.name in known:
            yield item
            continue
        location = locations[item.path]
        name = earlier.get(location) or name_by_location.setdefault(location, item.name)
        if name == item.name:
            yield item
        elif name not in given:
            given.add(name)
            yield replace(item, name=name)


async def _save_changes(
    store: Store, kind: str, now: Mapping[str, str], before: Mapping[str, str]
) -> None:
    fresh = {key: value for key, value in now.items() if before.get(key) != value}
    if fresh:
        await store.set(kind, fresh)


def document_parts(name: str, known: Collection[str]) -> list[str]:
    """Return the document of this name, else the parts of the file of this name, else the name."""
    if name in known:
        return [name]
    return [part for part in known if part.startswith(f"{name}#")] or [name]


async def resolve_document_names(store: Store, names: Iterable[str]) -> list[str]:
    """Return the documents that names denote: a file of rows its rows, a folder all below it."""
    given = list(names)
    known = await store.sources(given)
    if all(name in known for name in given):
        return list(dict.fromkeys(given))
    known = await store.sources()
    # A file's own name may look like that of a row of another file.
    files = await store.get(LOCATIONS_KIND, [name for name in known if "#" in name])
    found = (name for one in given for name in _resolve_name(one, known, files))
    return list(dict.fromkeys(found))


def _resolve_name(given: str, known: Collection[str], files: Collection[str]) -> list[str]:
    path = document_name(Path(given))  # without `./` and a trailing slash
    for name in (given, path):
        parts = [part for part in document_parts(name, known) if part in known]
        found = [part for part in parts if part == name or part not in files]
        if found:
            return found
    below = [name for name in known if name.startswith(f"{path}/")]
    if not below and (stored := find_file_name(path, known)):
        return [stored]
    if (
        not below
        and (place := split_place(given))
        and (place[0] in known or find_file_name(place[0], known))
    ):
        raise StoreError(f"{given!r} is a row, which goes with its file: `clew rm {place[0]}`")
    if not below:
        raise StoreError(f"no document named {given!r}; list them with `clew status --documents`")
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
