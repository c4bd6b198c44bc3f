"""Entity resolution over the store's tables: split homonyms, then merge aliases.

A pure function of the tables, so that the order of adding and removing does not matter. The tables
keep every name as written; every decision made here can be shown and undone.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.resolve.groups import CandidatePairs, EntityGroups
from clew.resolution.aliases import find_near_names, group_names
from clew.resolution.homonyms import split_homonyms
from clew.resolution.merged import merge_tables
from clew.store.protocol import Array, Tables

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ResolvedTables:
    """The resolved tables, and the reasons as arrays for the generation's folder."""

    tables: Tables
    arrays: dict[str, Array]


def resolve(tables: Tables) -> ResolvedTables:
    """Split names of several entities, then merge names of one entity."""
    split, moved = split_homonyms(tables)
    near = find_near_names(tables)
    groups, found = group_names(split, near)
    arrays: dict[str, Array] = {
        "near_codes": near.codes,
        "near_pairs": near.pairs,
        "near_cosines": near.cosines,
        "sense_mentions": moved,
        **_record_merges(split.entities[:, 0], groups, found),
    }
    return ResolvedTables(merge_tables(split, groups), arrays)


def _record_merges(keys: Ints, groups: EntityGroups, found: CandidatePairs) -> dict[str, Array]:
    """Return arrays of merged names: target, pair, reason and score."""
    gone = np.flatnonzero(keys[groups.into] != keys)
    by = groups.pair_index
    return {
        "merged": np.stack([keys[gone], keys[groups.into[gone]]], axis=1),
        "merged_pairs": np.stack(
            [keys[found.left[by]], keys[found.right[by]], found.reason[by]], axis=1
        ).astype(np.int64),
        "merged_scores": found.score[by].astype(np.float32),
    }
