"""A file keeps the name it was first added by, however its path is written later.

Names are what citations show, so they do not change. What is kept per file is a hash of where it
lies: its folder with all links followed, and its own name, which may be one of several links.
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

# Kinds of memory. Both ways, since a name may have come to stand for another file.
_NAMES = "place"  # the name of what lies at a place
PLACES = "placed"  # the place of what has a name


async def read_into(
    store: Store, paths: Sequence[str | Path], *, keep: bool = True
) -> AsyncIterator[Item]:
    """Read files and folders for a knowledge base, which remembers where they lie if it may."""
    found = await asyncio.to_thread(find, paths)
    places = await asyncio.to_thread(_places, found)
    names = await store.recall(_NAMES, list(set(places.values())))
    spelt = {item.name for item in found}
    held = await store.recall(PLACES, list(spelt.union(names.values())))
    earlier = {place: name for place, name in names.items() if held.get(name) == place}
    if len(set(places.values())) < len(places) or not spelt.issuperset(earlier.values()):
        known = {file for name in await store.sources() for file in files_of(name)}
        earlier = {place: name for place, name in earlier.items() if name in known}
        found = list(_settled(found, places, earlier, known))
    if keep:
        now = {one.name: places[one.path] for one in found if isinstance(one, Source)}
        first = {place: name for name, place in reversed(now.items())}
        await _remember(store, _NAMES, first, names)
        await _remember(store, PLACES, now, held)
    async with aclosing(read_found(found)) as items:
        async for item in items:
            yield item


def _places(found: Iterable[Source | Skipped]) -> dict[Path, str]:
    """Where each file lies, as a hash: nobody who is given the knowledge base need know it."""
    folders: dict[Path, str] = {}  # asked once each, not once per file
    places = {}
    for path in (item.path for item in found if isinstance(item, Source)):
        if path.parent not in folders:
            folders[path.parent] = os.path.realpath(path.parent)
        places[path] = place_of(folders[path.parent], path.name)
    return places


def place_of(folder: str, name: str) -> str:
    """What is kept of where a file lies; the folder's links are followed."""
    return digest(folder, name)


def _settled(
    found: Sequence[Source | Skipped],
    places: Mapping[Path, str],
    earlier: Mapping[str, str],
    known: Collection[str],
) -> Iterator[Source | Skipped]:
    """Files under their earlier names; what is asked for by two spellings is read once."""
    spelt = {item.name for item in found}
    files = [item for item in found if isinstance(item, Source)]
    met = {places[item.path]: item.name for item in files if item.name in known}
    for item in found:
        # Names that are known stay, even two of one file from before places were remembered.
        if isinstance(item, Skipped) or item.name in known:
            yield item
            continue
        place = places[item.path]
        name = earlier.get(place) or met.setdefault(place, item.name)
        if name == item.name:
            yield item
        elif name not in spelt:
            spelt.add(name)
            yield replace(item, name=name)


async def _remember(
    store: Store, kind: str, now: Mapping[str, str], before: Mapping[str, str]
) -> None:
    fresh = {key: value for key, value in now.items() if before.get(key) != value}
    if fresh:
        await store.remember(kind, fresh)
