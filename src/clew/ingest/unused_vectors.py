"""Erase the vectors of what was removed.

A vector file only grows, and a row belongs to its text for as long as the text is stored. What was
removed is overwritten where it lies, so that no other row moves: whoever reads an older generation
finds the rest as it was.
"""

from typing import Protocol, get_args, runtime_checkable

import numpy as np

from clew.graph.csr import Ints
from clew.store.protocol import COLUMN_PREFIX, DETAIL_PREFIX, DETAIL_ROWS, Arrays, Store
from clew.types import Kind

ERASED_SHARE = 0.2  # of the vectors that are held; fewer unused ones stay for texts that come back
_TABLES: dict[Kind, str] = {"chunk": "chunks", "entity": "entities", "fact": "facts"}
_FACT_ROWS = (f"{DETAIL_PREFIX}fact_rows", f"{DETAIL_PREFIX}quote_rows")


@runtime_checkable
class ErasableTable(Protocol):
    """A vector table whose rows can be overwritten."""

    def count_rows(self) -> int:
        """Number of rows."""

    def erase_unused(self, used: Ints, least: float) -> int:
        """Erase all rows but those in use, if they are a larger share; return how many."""


async def erase_unused_vectors(store: Store, least: float = ERASED_SHARE) -> int:
    """Erase vectors that nothing refers to, where they are more than this share of a kind.

    The lock is held: what another process embeds just now is not in the tables yet.
    """
    erased = 0
    async with store.write_lock(), store.snapshot() as now:
        embedder = (await store.get("manifest", ["embedder"])).get("embedder", "")
        for kind in get_args(Kind) if embedder else ():
            table = store.vectors(embedder, kind)
            if not isinstance(table, ErasableTable) or _are_few(table, now.arrays, kind, least):
                continue
            if (used := find_used_rows(now.arrays, kind)) is not None:
                erased += table.erase_unused(used, least)
    return erased


def _are_few(table: ErasableTable, arrays: Arrays, kind: Kind, least: float) -> bool:
    """Whether too few rows are unused, told by the elements alone: others use no fewer."""
    held = table.count_rows()
    rows = np.asarray(arrays.get(DETAIL_ROWS.get(kind, f"{kind}_rows"), ()), np.int64)
    if least <= 0 or int(rows.max(initial=-1)) >= held:
        return False
    is_used = np.zeros(held + 1, np.bool_)
    is_used[rows] = True  # the last one stands for none
    return held - int(np.count_nonzero(is_used[:held])) <= least * held


def find_used_rows(arrays: Arrays, kind: Kind) -> Ints | None:
    """The vector rows of a kind that a generation refers to; None if that is not known."""
    names = [f"{kind}_rows", *(_FACT_ROWS if kind == "fact" else ())]
    if kind in DETAIL_ROWS:
        names.append(DETAIL_ROWS[kind])
    found = [np.asarray(arrays[name], np.int64) for name in names if name in arrays]
    if kind in _TABLES:  # a name that is merged into another one is no element, but has its row
        table = arrays.get(f"{COLUMN_PREFIX}{_TABLES[kind]}")
        if table is None:
            return None
        found.append(np.asarray(table[:, 1], np.int64))
    return np.concatenate(found) if found else None
