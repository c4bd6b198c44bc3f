"""When documents were added or changed last, and where they stand in their files, by name.

Any door leads through the pipeline, which keeps them. Neither is part of the graph: a fresh build
of the same files gives the same knowledge base with other arrivals.
"""

import time
from collections.abc import Iterable, Mapping, Sequence

from clew.store.protocol import KeyValueStore
from clew.types import Document

ARRIVAL_KIND = "arrival"
_ORIGIN_KIND = "origin"
_ID_DIGITS = 6  # of the document that an origin was noted for: its name may be given to another


async def record_arrivals(store: KeyValueStore, names: Iterable[str]) -> None:
    """Note that documents of these names arrive now."""
    now = f"{time.time():.3f}"
    await store.set(ARRIVAL_KIND, dict.fromkeys(names, now))


async def read_arrivals(store: KeyValueStore, names: Sequence[str]) -> dict[str, float]:
    """Return when documents arrived, in seconds; a row of a file may have the time of its file."""
    files = {name: name.partition("#")[0] for name in names}
    found = await store.get(ARRIVAL_KIND, list({*files, *files.values()}))
    times = {name: found.get(name) or found.get(file) for name, file in files.items()}
    return {name: float(one) for name, one in times.items() if one}


def list_origins(document: Document) -> dict[str, str]:
    """Return what is kept of where a document stands in its file, by its names."""
    kept = f"{document.id[:_ID_DIGITS]}{document.origin}" if document.origin else ""
    return dict.fromkeys(document.names, kept)


async def record_origins(store: KeyValueStore, origins: Mapping[str, str]) -> None:
    """Keep where documents stand in their files; nothing is written where nothing has changed."""
    held = await store.get(_ORIGIN_KIND, list(origins))
    changed = {name: one for name, one in origins.items() if held.get(name, "") != one}
    if changed:
        await store.set(_ORIGIN_KIND, changed)


async def read_origins(store: KeyValueStore, documents: Mapping[str, str]) -> dict[str, str]:
    """Return the origins of documents, whose ids are given by name."""
    held = await store.get(_ORIGIN_KIND, list(documents))
    return {
        name: kept[_ID_DIGITS:]
        for name, kept in held.items()
        if kept and documents[name].startswith(kept[:_ID_DIGITS])
    }
