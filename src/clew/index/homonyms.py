"""Names that several entities have: every further sense becomes an entity of its own."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from clew.graph.csr import (
    Csr,
    Ints,
    Mask,
    build_csr,
    expand_ranges,
    isin_sorted,
    sorted_unique,
)
from clew.graph.csr_blocks import find_positions_in_blocks
from clew.graph.entity_resolution import find_common_entities, find_senses
from clew.graph.parts import HERE, RunParts
from clew.index.name_statistics import NameStatistics, make_statistics
from clew.sorted_columns import bisect_column
from clew.store.protocol import SENSE_STRIDE, Array, Tables
from clew.store.resolved_entities import majority_sense


@dataclass(frozen=True)
class SplitTables:
    """Tables with an entity for every sense of a name; mentions and participants are as stored."""

    tables: Tables
    moved: Ints
    """Which mentions moved to another sense, as (name, chunk, sense) keys."""
    senses: Ints | None = None
    """The key of each mention's sense; None where all are those of names."""

    @cached_property
    def who(self) -> Ints:
        """The position of each mention's entity among `tables.entities`."""
        return self.find_entities(slice(None))

    @cached_property
    def where(self) -> Ints:
        """The position of each mention's chunk."""
        return self.find_chunks(slice(None))

    def find_entities(self, which: Ints | slice) -> Ints:
        """The positions of the entities of some mentions."""
        keys = self.tables.mentions[which, 0] if self.senses is None else self.senses[which]
        return find_positions_in_blocks(self.tables.entities[:, 0], keys, self.tables.memory)

    def find_chunks(self, which: Ints | slice) -> Ints:
        """The positions of the chunks of some mentions."""
        keys = self.tables.mentions[which, 1]
        return find_positions_in_blocks(self.tables.chunks[:, 0], keys, self.tables.memory)

    def participants(self, facts: Ints | None = None) -> Array:
        """Return the participants of some facts (keys, ascending) or of all, as senses."""
        found = self.tables.participants
        return self.with_senses(found if facts is None else select_rows(found, facts))

    def with_senses(self, participants: Array) -> Array:
        """Return these rows of the table of participants, as senses."""
        found = np.asarray(participants, np.int64)
        return _assign_senses_in_facts(found, self.tables, self.moved) if len(self.moved) else found


def split_homonyms(
    tables: Tables, run: RunParts = HERE, names: NameStatistics | None = None
) -> SplitTables:
    """Give every further sense of a name its own key: the name's key plus class * SENSE_STRIDE."""
    none = SplitTables(tables, np.zeros((0, 3), np.int64))
    several = np.flatnonzero((names or make_statistics(tables)).several)
    if not len(several) and not len(tables.sense_pins):
        return none
    keys, mentions, chunk_keys = tables.entities[:, 0], tables.mentions, tables.chunks[:, 0]
    who, where, classes = none.who, none.where, tables.memory.copy(mentions[:, 4])
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
    return SplitTables(split, rows, virtual)


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
