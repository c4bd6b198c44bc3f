"""The graph's names settled: what is one becomes one node, what only sounds alike stays apart.

A pure function of the tables, so that adding and removing in any order ends the same. The tables
themselves keep every name as it was said; what is decided here can be shown and taken back.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.resolve.groups import Groups, Pairs
from clew.resolution.aliases import grouped_names, near_names
from clew.resolution.homonyms import split_names
from clew.resolution.merged import merged_tables
from clew.store.protocol import Array, Tables

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Resolved:
    """The tables with every name settled, and why, as arrays for the generation's folder."""

    tables: Tables
    arrays: dict[str, Array]


def resolve(tables: Tables) -> Resolved:
    """Split names that are several things, then merge names that are one."""
    split, moved = split_names(tables)
    near = near_names(tables)
    groups, found = grouped_names(split, near)
    arrays: dict[str, Array] = {
        "near_codes": near.codes,
        "near_pairs": near.pairs,
        "near_cosines": near.cosines,
        "sense_mentions": moved,
        **_reasons(split.entities[:, 0], groups, found),
    }
    return Resolved(merged_tables(split, groups), arrays)


def _reasons(keys: Ints, groups: Groups, found: Pairs) -> dict[str, Array]:
    """For every name that was merged: into whom, by which pair, why and how surely."""
    gone = np.flatnonzero(keys[groups.into] != keys)
    by = groups.by
    return {
        "merged": np.stack([keys[gone], keys[groups.into[gone]]], axis=1),
        "merged_pairs": np.stack(
            [keys[found.left[by]], keys[found.right[by]], found.reason[by]], axis=1
        ).astype(np.int64),
        "merged_scores": found.score[by].astype(np.float32),
    }
