"""Keeps the document name a file was first added under, however its path is spelt later.

Citations show names, so they do not change. Per file a hash of its location is stored: its
folder with all links resolved, and its own name, which may be one of several links.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from clew.ingest.find import find
from clew.ingest.intake import files_of
from clew.ingest.read import Item, read_found
from clew.ingest.readers.source import Skipped, Source
from clew.store.protocol import Store
from clew.text import digest

# Kinds of key-value entries, in both directions: a name may come to mean another file.
_NAMES = "place"  # location hash → name
PLACES = "placed"  # name → location hash


async def read_into(
    store: Store, paths: Sequence[str | Path], *, keep: bool = True
) -> AsyncIterator[Item]:
    """Read files and folders under their stored names; `keep` stores new locations."""
    found = await asyncio.to_thread(find, paths)
    locations = await asyncio.to_thread(_places, found)
    names = await store.recall(_NAMES, list(set(locations.values())))
    given = {item.name for item in found}
    stored = await store.recall(PLACES, list(given.union(names.values())))
    earlier = {location: name for location, name in names.items() if stored.get(name) == location}
    if len(set(locations.values())) < len(locations) or not given.issuperset(earlier.values()):
        known = {file for name in await store.sources() for file in files_of(name)}
        earlier = {location: name for location, name in earlier.items() if name in known}
        found = list(_settled(found, locations, earlier, known))
    if keep:
        current = {s.name: locations[s.path] for s in found if isinstance(s, Source)}
        first = {location: name for name, location in reversed(current.items())}
        await _remember(store, _NAMES, first, names)
        await _remember(store, PLACES, current, stored)
    async with aclosing(read_found(found)) as items:
        async for item in items:
            yield item


def _places(found: Iterable[Source | Skipped]) -> dict[Path, str]:
    """Return the location hash of each file: a shared knowledge base reveals no paths."""
    folders: dict[Path, str] = {}  # resolved once each, not once per file
    locations = {}
    for path in (item.path for item in found if isinstance(item, Source)):
        if path.parent not in folders:
            folders[path.parent] = os.path.realpath(path.parent)
        locations[path] = place_of(folders[path.parent], path.name)
    return locations


def place_of(folder: str, name: str) -> str:
    """Return the hash of a file's location; `folder` has its links resolved."""
    return digest(folder, name)


def _settled(
    found: Sequence[Source | Skipped],
    locations: Mapping[Path, str],
    earlier: Mapping[str, str],
    known: Collection[str],
) -> Iterator[Source | Skipped]:
    """Yield files under their earlier names; a file given by two spellings is read once."""
    given = {item.name for item in found}
    files = [item for item in found if isinstance(item, Source)]
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


async def _remember(
    store: Store, kind: str, now: Mapping[str, str], before: Mapping[str, str]
) -> None:
    fresh = {key: value for key, value in now.items() if before.get(key) != value}
    if fresh:
        await store.remember(kind, fresh)
