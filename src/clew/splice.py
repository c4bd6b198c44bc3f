"""Arrays with some rows dropped and others inserted."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MAX_SPLICED = 20_000  # rows dropped and inserted; of more, rows are selected one by one


def splice(
    held: NDArray[Any], gone: NDArray[np.int64], at: NDArray[np.int64], added: NDArray[Any]
) -> NDArray[Any]:
    """Drop the rows `gone` and insert others before the places `at`; all ascend.

    Whole stretches are copied, which is several times faster than to select what stays.
    """
    if len(gone) + len(at) > _MAX_SPLICED:
        kept = np.ones(len(held), np.bool_)
        kept[gone] = False
        return np.insert(held[kept], at - np.searchsorted(gone, at), added, axis=0)
    edges, is_gone = merge_edges(gone, at)
    last = np.searchsorted(at, edges, "right").tolist()
    pieces, done, taken = [], 0, 0
    for edge, end, drop in zip(edges.tolist(), last, is_gone.tolist(), strict=True):
        pieces += [held[done:edge], added[taken:end]]
        done, taken = edge + drop, end
    return np.concatenate([*pieces, held[done:]])


def merge_edges(
    gone: NDArray[np.int64], at: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Rows that are dropped and places where others are inserted, and which of them are dropped.

    Both ascend. The same as np.union1d and np.isin, which take several times as long for a few.
    """
    edges = np.concatenate([gone, at])
    edges.sort()
    edges = edges[np.append(True, edges[1:] != edges[:-1])[: len(edges)]]
    return edges, np.searchsorted(gone, edges, "right") > np.searchsorted(gone, edges)
