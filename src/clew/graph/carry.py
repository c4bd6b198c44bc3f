"""Trees from one generation to the next: what is gone leaves, what stays keeps its place."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, csr
from clew.graph.forest import (
    FIRST_OF_CHUNKS,
    Codes,
    Forest,
    Ints,
    chosen,
    forest_arrays,
    forest_of,
    marked,
    upwards,
)


def carried(
    previous: Mapping[str, NDArray[Any]], arrays: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """The previous generation's trees over this one's elements.

    What is gone leaves its community, a community left empty goes, and one whose members changed
    has another mark, and so no text; its vector stays as a good guess until it is told anew. What
    is new is in no community yet.
    """
    old = forest_of(previous)
    if not len(old):
        return {}
    entity = _moved(previous["entity_keys"], arrays["entity_keys"])
    chunk = _moved(previous["chunk_keys"], arrays["chunk_keys"])
    codes = np.zeros(len(arrays["chunk_keys"]), np.uint64)
    codes[chunk[chunk >= 0]] = old.codes[chunk >= 0]
    members, passages = _remembered(old.entities, entity), _remembered(old.chunks, chunk)
    centre = old.centre.copy()
    for over, place in ((old.tree < FIRST_OF_CHUNKS, entity), (old.tree >= FIRST_OF_CHUNKS, chunk)):
        known = over & (centre >= 0)
        centre[known] = place[centre[known]]
    now = replace(old, entities=members, chunks=passages, codes=codes, centre=centre)
    now = chosen(now, np.flatnonzero(now.sizes() > 0))
    return forest_arrays(marked(_recentred(now), name_codes(arrays)))


def name_codes(arrays: Mapping[str, NDArray[Any]]) -> Codes:
    """For each entity the hash of its own name."""
    found = np.zeros(len(arrays["entity_keys"]), np.uint64)
    own = arrays["name_weights"] > 1
    found[arrays["name_entities"][own]] = arrays["name_hashes"][own]
    return found


def _moved(before: Ints, after: Ints) -> Ints:
    """Where each key of `before` stands in `after`; -1 for those that are gone."""
    if not len(after):
        return np.full(len(before), -1)
    at = np.minimum(np.searchsorted(after, before), len(after) - 1)
    return np.where(after[at] == before, at, -1)


def _remembered(links: Csr, place: Ints) -> Csr:
    """The same incidence at the members' new positions, less those that are gone."""
    row = np.repeat(np.arange(len(links)), links.degrees())
    to = place[links.columns] if len(links.columns) else np.zeros(0, np.int64)
    there = to >= 0
    return csr(len(links), row[there], to[there], links.weights[there])


def _strongest(links: Csr) -> Ints:
    """The member with the highest score of each row; -1 where there is none."""
    row = np.repeat(np.arange(len(links)), links.degrees())
    order = np.lexsort((links.columns, -links.weights, row))
    found = np.full(len(links), -1)
    rows, first = np.unique(row[order], return_index=True)
    found[rows] = links.columns[order[first]]
    return found


def _recentred(now: Forest) -> Forest:
    """Where the centre is gone, the strongest member takes its place, or the first child's."""
    own = np.maximum(_strongest(now.entities), _strongest(now.chunks))
    centre = np.where(now.centre < 0, own, now.centre)
    for upper, lower in upwards(now.level, now.below):
        lacking = centre[upper] < 0
        centre[upper[lacking][::-1]] = centre[lower[lacking][::-1]]
    return replace(now, centre=centre)
