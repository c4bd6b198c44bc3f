"""Names that several entities have: every further sense becomes an entity of its own."""

from dataclasses import dataclass, replace

import numpy as np

from clew.graph.csr import (
    Csr,
    Ints,
    Mask,
    bisect_column,
    build_csr,
    expand_ranges,
    find_positions,
    isin_sorted,
    sorted_unique,
)
from clew.graph.csr_blocks import find_positions_in_blocks
from clew.graph.entity_resolution import find_ambiguous_names, find_common_entities, find_senses
from clew.graph.parts import HERE, RunParts
from clew.out_of_core import WorkingMemory, blocks_of_groups
from clew.store.protocol import SENSE_STRIDE, Array, Tables
from clew.store.resolved_entities import majority_sense

_MENTION_BYTES = 64  # taken by a mention while its class is looked at


@dataclass(frozen=True, slots=True)
class SplitTables:
    """Tables with an entity for every sense of a name; mentions and participants are as stored."""

    tables: Tables
    who: Ints
    """The position of each mention's entity among `tables.entities`."""
    where: Ints
    """The position of each mention's chunk."""
    moved: Ints
    """Which mentions moved to another sense, as (name, chunk, sense) keys."""

    def participants(self, facts: Ints | None = None) -> Array:
        """Return the participants of some facts (keys, ascending) or of all, as senses."""
        found = self.tables.participants
        return self.with_senses(found if facts is None else select_rows(found, facts))

    def with_senses(self, participants: Array) -> Array:
        """Return these rows of the table of participants, as senses."""
        found = np.asarray(participants, np.int64)
        return _assign_senses_in_facts(found, self.tables, self.moved) if len(self.moved) else found


def split_homonyms(tables: Tables, run: RunParts = HERE) -> SplitTables:
    """Give every further sense of a name its own key: the name's key plus class * SENSE_STRIDE."""
    keys, mentions = tables.entities[:, 0], tables.mentions
    chunk_keys = tables.chunks[:, 0]
    who = find_positions_in_blocks(keys, mentions[:, 0], tables.memory)
    where = find_positions_in_blocks(chunk_keys, mentions[:, 1], tables.memory)
    none = SplitTables(tables, who, where, np.zeros((0, 3), np.int64))
    classes = tables.memory.copy(mentions[:, 4])
    several = _find_ambiguous(who, classes, tables.memory)
    if not len(several) and not len(tables.sense_pins):
        return none
    # Only the company of names that may have several senses is looked at.
    company = build_company(len(chunk_keys), who, where, isin_sorted(who, several))
    common = find_common_entities(who, len(keys), len(chunk_keys))
    sense = find_senses((who, where, classes), company, common, tables.entities[:, 2], run)
    sense = _apply_pins(tables, sense)
    if not sense.any():
        return none
    moved = sense > 0
    virtual = mentions[:, 0] + sense * SENSE_STRIDE
    rows = np.stack([mentions[moved, 0], mentions[moved, 1], virtual[moved]], axis=1)
    fresh, first = np.unique(rows[:, 2], return_index=True)
    entities = tables.entities[np.searchsorted(keys, rows[first, 0])].copy()
    entities[:, 0] = fresh
    forms = _copy_forms(tables, fresh, rows[first, 0])
    # A sense may take all of a name's mentions.
    left = np.bincount(who[~moved], minlength=len(keys)) > 0
    split = replace(
        tables,
        entities=np.concatenate([tables.entities[left], entities]),
        forms=np.concatenate([tables.forms[np.isin(tables.forms[:, 0], keys[left])], forms]),
    )
    return SplitTables(split, find_positions(split.entities[:, 0], virtual), where, rows)


def _find_ambiguous(who: Ints, classes: Array, memory: WorkingMemory) -> Ints:
    """Names that are mentioned with several classes, block by block of names."""
    found = [
        find_ambiguous_names(who[some], classes[some])
        for some in blocks_of_groups(memory, who, _MENTION_BYTES)
    ]
    return np.concatenate([np.zeros(0, np.int64), *found])


def select_rows(table: Array, keys: Ints) -> Array:
    """Return the rows with these keys (ascending); the table is sorted by its first column."""
    first, last = (bisect_column(table[:, 0], keys, right=side) for side in (False, True))
    found: Array = table[expand_ranges(first, last)[1]]
    return found


def _apply_pins(tables: Tables, sense: Ints) -> Ints:
    """Apply the senses that a user pinned (entity, chunk, sense) over the detected ones."""
    if not len(tables.sense_pins):
        return sense
    chunks = np.concatenate([tables.mentions[:, 1], tables.sense_pins[:, 1]])
    width = int(chunks.max()) + 1
    codes = tables.mentions[:, 0].astype(np.int64) * width + tables.mentions[:, 1]
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


def _assign_senses_in_facts(participants: Array, tables: Tables, rows: Ints) -> Array:
    """Assign each fact the sense that most of its chunks have."""
    sense = {(entity, chunk): key for entity, chunk, key in rows.tolist()}
    moved = {entity for entity, _, _ in rows.tolist()}
    found = participants.copy()
    concerned = np.flatnonzero(np.isin(found[:, 1], list(moved)))
    stated = select_rows(tables.supports, sorted_unique(found[concerned, 0]))
    for at in concerned.tolist():
        fact, entity = int(found[at, 0]), int(found[at, 1])
        where = stated[slice(*np.searchsorted(stated[:, 0], [fact, fact + 1])), 1].tolist()
        found[at, 1] = majority_sense(sense.get((entity, chunk), entity) for chunk in where)
    return found


def build_company(
    chunks: int, who: Ints, where: Ints, mine: Mask, common: Mask | None = None
) -> Csr:
    """Return the entities, except `common` ones, of each chunk with one of the mentions `mine`."""
    is_near = np.zeros(chunks, np.bool_)
    is_near[where[mine]] = True
    kept = is_near[where] if common is None else is_near[where] & ~common[who]
    return build_csr(chunks, where[kept], who[kept])
