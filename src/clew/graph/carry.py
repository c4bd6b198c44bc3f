"""Carries community trees over from one generation to the next."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, build_csr
from clew.graph.forest import (
    FIRST_CHUNK_TREE,
    Codes,
    CommunityForest,
    Ints,
    assign_marks,
    forest_from_arrays,
    forest_to_arrays,
    iterate_levels_up,
    select_communities,
)


def carry_over_trees(
    previous: Mapping[str, NDArray[Any]], arrays: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Map the previous generation's trees to this generation's elements.

    Removed elements leave their communities and empty communities are dropped. A community whose
    members changed has a new mark and so no summary; its vector stays as an estimate until it is
    described again. New elements are in no community yet.
    """
    old = forest_from_arrays(previous)
    if not len(old):
        return {}
    entity = _map_positions(previous["entity_keys"], arrays["entity_keys"])
    chunk = _map_positions(previous["chunk_keys"], arrays["chunk_keys"])
    codes = np.zeros(len(arrays["chunk_keys"]), np.uint64)
    codes[chunk[chunk >= 0]] = old.codes[chunk >= 0]
    members, passages = _remap_members(old.entities, entity), _remap_members(old.chunks, chunk)
    centre = old.centre.copy()
    for over, moved in (
        (old.tree < FIRST_CHUNK_TREE, entity),
        (old.tree >= FIRST_CHUNK_TREE, chunk),
    ):
        known = over & (centre >= 0)
        centre[known] = moved[centre[known]]
    forest = replace(old, entities=members, chunks=passages, codes=codes, centre=centre)
    forest = select_communities(forest, np.flatnonzero(forest.sizes() > 0))
    return forest_to_arrays(assign_marks(_reassign_centres(forest), entity_name_hashes(arrays)))


def entity_name_hashes(arrays: Mapping[str, NDArray[Any]]) -> Codes:
    """Return the hash of each entity's own name."""
    found = np.zeros(len(arrays["entity_keys"]), np.uint64)
    own = arrays["name_weights"] > 1
    found[arrays["name_entities"][own]] = arrays["name_hashes"][own]
    return found


def _map_positions(before: Ints, after: Ints) -> Ints:
    """Return the position in `after` of each key of `before`; -1 for removed ones."""
    if not len(after):
        return np.full(len(before), -1)
    at = np.minimum(np.searchsorted(after, before), len(after) - 1)
    return np.where(after[at] == before, at, -1)


def _remap_members(links: Csr, position: Ints) -> Csr:
    """Remap an incidence to the members' new positions, without removed ones."""
    row = np.repeat(np.arange(len(links)), links.degrees())
    to = position[links.columns] if len(links.columns) else np.zeros(0, np.int64)
    present = to >= 0
    return build_csr(len(links), row[present], to[present], links.weights[present])


def _find_strongest(links: Csr) -> Ints:
    """Return the member with the highest score of each row; -1 where there is none."""
    row = np.repeat(np.arange(len(links)), links.degrees())
    order = np.lexsort((links.columns, -links.weights, row))
    found = np.full(len(links), -1)
    rows, first = np.unique(row[order], return_index=True)
    found[rows] = links.columns[order[first]]
    return found


def _reassign_centres(forest: CommunityForest) -> CommunityForest:
    """Replace removed centres by the strongest member, or else by the first child's centre."""
    own = np.maximum(_find_strongest(forest.entities), _find_strongest(forest.chunks))
    centre = np.where(forest.centre < 0, own, forest.centre)
    for upper, lower in iterate_levels_up(forest.level, forest.below):
        missing = centre[upper] < 0
        centre[upper[missing][::-1]] = centre[lower[missing][::-1]]
    return replace(forest, centre=centre)
