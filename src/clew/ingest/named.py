"""Documents by what people call them: by name, file or folder, and those whose file is gone."""

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


def documents_named(asked: Iterable[str], known: Collection[str]) -> list[str]:
    """The documents that names stand for: a file of rows means its rows, a folder all below it."""
    return list(dict.fromkeys(name for one in asked for name in _named(one, known)))


def _named(asked: str, known: Collection[str]) -> list[str]:
    path = name_of(Path(asked))  # without `./` and a slash at the end
    for name in (asked, path):
        found = [part for part in parts_of(name, known) if part in known]
        if found:
            return found
    below = [name for name in known if name.startswith(f"{path}/")]
    if not below:
        raise StoreError(f"no document named {asked!r}; `clew status --documents` lists them")
    return below


async def gone_files(store: Store, paths: Sequence[Path | str]) -> list[str]:
    """The names of files that were read from these folders and are there no longer."""
    files = {file for name in await store.sources() for file in files_of(name)}
    held = await store.recall(PLACES, list(files))
    return await asyncio.to_thread(_gone, held, paths)


def _gone(held: Mapping[str, str], paths: Sequence[Path | str]) -> list[str]:
    roots = [os.path.realpath(path) for path in paths if os.path.isdir(path)]
    return sorted(file for file, place in held.items() if _is_gone(file, place, roots))


def _is_gone(file: str, place: str, roots: Sequence[str]) -> bool:
    """Whether a file lay below a root and does not now, from wherever it was named."""
    parts = file.split("/")
    for root in roots:
        for at in range(len(parts)):
            path = os.path.join(root, *parts[at:])
            if place_of(*os.path.split(path)) == place:
                return not os.path.lexists(path)
    return False
