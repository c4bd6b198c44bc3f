"""Rewrites the tables so that every entity has a single name."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from clew.graph.resolve.groups import EntityGroups
from clew.names import FORM, TOKEN
from clew.store.protocol import STATED_WEIGHT, Array, Tables

Ints = NDArray[np.int64]


def merge_tables(tables: Tables, groups: EntityGroups) -> Tables:
    """Replace every entity by the representative of its group, in all tables."""
    keys = tables.entities[:, 0]
    into = keys[groups.into]
    gone = into != keys
    if not gone.any():
        return tables

    def mapped(column: Ints) -> Ints:
        found: Ints = into[np.searchsorted(keys, column)]
        return found

    mentions = tables.mentions.copy()
    mentions[:, 0] = mapped(mentions[:, 0])
    participants = tables.participants.copy()
    participants[:, 1] = mapped(participants[:, 1])
    own = np.stack(
        [
            into[gone],
            tables.entities[gone, 2],
            np.full(gone.sum(), STATED_WEIGHT),
            np.full(gone.sum(), FORM),
        ],
        axis=1,
    )
    forms = tables.forms.copy()
    stays = ~(gone[np.searchsorted(keys, forms[:, 0])] & (forms[:, 3] == TOKEN))
    forms[:, 0] = mapped(forms[:, 0])
    entities = tables.entities.copy()
    np.add.at(entities[:, 6], groups.into[gone], tables.entities[gone, 6])
    return replace(
        tables,
        entities=entities[~gone],
        mentions=_combine_mentions(mentions),
        participants=_distinct_participants(participants),
        forms=_merge_forms(np.concatenate([forms[stays], own]), tables.entities),
    )


def _combine_mentions(mentions: Array) -> Array:
    """Keep one row per entity and chunk: span counts add up, the highest claim counts."""
    order = np.lexsort((mentions[:, 1], mentions[:, 0]))
    mentions = mentions[order]
    first = np.ones(len(mentions), np.bool_)
    first[1:] = (np.diff(mentions[:, :2], axis=0) != 0).any(axis=1)
    starts = np.flatnonzero(first)
    found = mentions[starts].copy()
    found[:, 2] = np.add.reduceat(mentions[:, 2], starts)
    found[:, 3] = np.maximum.reduceat(mentions[:, 3], starts)
    return found


def _distinct_participants(participants: Array) -> Array:
    """Drop duplicates: a fact with two names of one entity holds it once per role."""
    _, first = np.unique(participants, axis=0, return_index=True)
    return participants[np.sort(first)]


def _merge_forms(forms: Array, entities: Array) -> Array:
    """Keep each form once per entity, the most certain; a name is no form of itself."""
    order = np.lexsort((forms[:, 3], -forms[:, 2], forms[:, 1], forms[:, 0]))
    forms = forms[order]
    first = np.ones(len(forms), np.bool_)
    first[1:] = (np.diff(forms[:, :2], axis=0) != 0).any(axis=1)
    token = forms[:, 3] == TOKEN
    own = entities[np.searchsorted(entities[:, 0], forms[:, 0]), 2] == forms[:, 1]
    kept: Array = forms[(first & ~own) | token]
    return kept


def _sort_rows(table: Array) -> Array:
    return table[np.lexsort((table[:, 1], table[:, 0]))]
