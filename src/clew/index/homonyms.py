"""Homonyms: each further sense of a name gets a key of its own."""

from dataclasses import replace

import numpy as np

from clew.graph.csr import Ints, build_csr
from clew.graph.entity_resolution import find_common_entities, find_senses
from clew.store.protocol import SENSE_STRIDE, Array, Tables
from clew.store.resolved_entities import majority_sense


def split_homonyms(tables: Tables) -> tuple[Tables, Ints]:
    """Give every further sense of a name its own key: the name's key plus class * SENSE_STRIDE.

    Also returns which mentions moved, as (name, chunk, sense) keys.
    """
    keys, mentions = tables.entities[:, 0], tables.mentions
    chunk_keys = tables.chunks[:, 0]
    who = np.searchsorted(keys, mentions[:, 0])
    where = np.searchsorted(chunk_keys, mentions[:, 1])
    company = build_csr(len(chunk_keys), where, who)
    sense = find_senses(
        who, where, mentions[:, 4], company, find_common_entities(company, len(keys))
    )
    sense = _apply_pins(tables, sense)
    if not sense.any():
        return tables, np.zeros((0, 3), np.int64)
    moved = sense > 0
    virtual = mentions[:, 0] + sense * SENSE_STRIDE
    mapped = np.concatenate([virtual[:, None], mentions[:, 1:]], axis=1)
    rows = np.stack([mentions[moved, 0], mentions[moved, 1], virtual[moved]], axis=1)
    fresh, first = np.unique(rows[:, 2], return_index=True)
    base = np.searchsorted(keys, rows[first, 0])
    entities = tables.entities[base].copy()
    entities[:, 0] = fresh
    forms = _copy_forms(tables, fresh, rows[first, 0])
    left = np.isin(keys, np.unique(mapped[:, 0]))  # a sense may take all of a name's mentions
    return (
        replace(
            tables,
            entities=np.concatenate([tables.entities[left], entities]),
            mentions=mapped[np.lexsort((mapped[:, 1], mapped[:, 0]))],
            participants=_assign_senses_in_facts(tables, rows),
            forms=np.concatenate([tables.forms[np.isin(tables.forms[:, 0], keys[left])], forms]),
        ),
        rows,
    )


def _apply_pins(tables: Tables, sense: Ints) -> Ints:
    """Apply the senses that a user pinned (entity, chunk, sense) over the detected ones."""
    if not len(tables.sense_pins):
        return sense
    chunks = np.concatenate([tables.mentions[:, 1], tables.sense_pins[:, 1]])
    width = int(chunks.max()) + 1
    codes = tables.mentions[:, 0] * width + tables.mentions[:, 1]
    pins = tables.sense_pins[:, 0] * width + tables.sense_pins[:, 1]
    order = np.argsort(codes)
    at = np.minimum(np.searchsorted(codes[order], pins), max(len(codes) - 1, 0))
    real = codes[order][at] == pins if len(codes) else np.zeros(len(pins), np.bool_)
    found = sense.copy()
    found[order[at[real]]] = tables.sense_pins[real, 2]
    return found


def _copy_forms(tables: Tables, senses: Ints, bases: Ints) -> Array:
    """Copy the forms of a name to its senses."""
    parts = []
    for key, base in zip(senses.tolist(), bases.tolist(), strict=True):
        mine = tables.forms[tables.forms[:, 0] == base].copy()
        mine[:, 0] = key
        parts.append(mine)
    return np.concatenate(parts) if parts else np.zeros((0, 4), np.int64)


def _assign_senses_in_facts(tables: Tables, rows: Ints) -> Array:
    """Assign each fact the sense that most of its chunks have."""
    supports = tables.supports
    sense = {(entity, chunk): key for entity, chunk, key in rows.tolist()}
    moved = {entity for entity, _, _ in rows.tolist()}
    found = tables.participants.copy()
    for at in np.flatnonzero(np.isin(found[:, 1], list(moved))).tolist():
        fact, entity = int(found[at, 0]), int(found[at, 1])
        where = supports[slice(*np.searchsorted(supports[:, 0], [fact, fact + 1])), 1].tolist()
        found[at, 1] = majority_sense(sense.get((entity, chunk), entity) for chunk in where)
    return found
