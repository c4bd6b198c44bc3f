"""When documents were added or changed last, by name: any door leads through the pipeline.

The times are no part of the graph: a fresh build of the same files gives the same knowledge base
with other arrivals.
"""

import time
from collections.abc import Iterable, Sequence

from clew.store.protocol import KeyValueStore

ARRIVAL_KIND = "arrival"


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
