"""Copy a knowledge base from one store to another: rows, vectors and arrays, equal in the end."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, get_args

import numpy as np

from clew.errors import StoreError
from clew.store.protocol import CopiedStore, Counts, Store
from clew.store.sqlite.store import SqliteStore
from clew.types import Kind

_COPYING = "copying"  # in the manifest of a copy until it is whole
Report = Callable[[str, int, int], None]


class CopyableStore(Store, CopiedStore, Protocol):
    """A store that can be copied from and to."""


async def copy_store(
    source: CopyableStore, target: CopyableStore, progress: Report = lambda stage, done, total: None
) -> Counts:
    """Copy everything to an empty store; it has the same keys, rows and arrays afterwards.

    A copy that was cut off is continued by the next one from the same source.
    """
    async with target.write_lock():
        if (await target.counts()).generation:  # also one that is empty now has a history
            raise StoreError("the target holds a knowledge base already; name a new one")
        # Its rows replace this in one transaction, which makes the copy whole.
        await target.set("manifest", {_COPYING: "1"})
        embedder = (await source.get("manifest", ["embedder"])).get("embedder", "")
        # Vectors first: rows that refer to them are visible only afterwards.
        for at, kind in enumerate(get_args(Kind) if embedder else ()):
            progress("copy vectors", at, len(get_args(Kind)))
            await asyncio.to_thread(_copy_vectors, source, target, embedder, kind)
        progress("copy rows", 0, 1)
        await asyncio.to_thread(_copy_rows, source, target)
        progress("copy rows", 1, 1)
        return await target.counts()


async def is_unfinished_copy(store: Store) -> bool:
    """Whether a store is what a copy that was cut off has left."""
    if (await store.counts()).generation:
        return False
    return _COPYING in await store.get("manifest", [_COPYING])


def _copy_vectors(source: CopyableStore, target: CopyableStore, embedder: str, kind: Kind) -> None:
    table, first = target.vectors(embedder, kind), 0
    for hashes, vectors in source.vectors(embedder, kind).iterate():
        new = np.flatnonzero(table.find_rows(hashes) < 0)  # others are of a copy that was cut off
        if len(new):
            table.append([hashes[at] for at in new], np.ascontiguousarray(vectors[new]))
        _check_rows(table.find_rows(hashes).tolist(), first, kind)
        first += len(hashes)


def _check_rows(found: Sequence[int], first: int, kind: Kind) -> None:
    if list(found) != list(range(first, first + len(found))):
        raise StoreError(
            f"{kind} vectors of the source were lost, or the target has others already; "
            "`clew verify --repair` the source, and name a new target"
        )


def _copy_rows(source: CopiedStore, target: CopiedStore) -> None:
    with source.read_rows() as found:
        target.replace_rows(found)


async def restore_from_folder(folder: Path, target: CopiedStore) -> None:
    """Replace all rows by those of a folder; vectors and arrays are yet to be made."""
    store = SqliteStore(folder, check=False)
    try:
        async with store.write_lock():  # the writer may read rows without arrays
            await asyncio.to_thread(_copy_rows, store, target)
    finally:
        await store.close()
