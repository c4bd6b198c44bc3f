"""What resolution needs of all names: made anew, or updated from what the generation before had.

Names by their hashes, how often and as what each is mentioned, which other names documents state.
An update looks at the rows of tables that came or went; the result is the same bit for bit.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import (
    Ints,
    Mask,
    argsort_pairs,
    expand_ranges,
    find_positions,
    isin_sorted,
    sorted_unique,
)
from clew.graph.entity_resolution import find_ambiguous_names
from clew.out_of_core import blocks_of_groups
from clew.sorted_columns import bisect_column
from clew.splice import splice
from clew.store.protocol import COLUMN_PREFIX, STATED_WEIGHT, Array, Arrays, Tables
from clew.store.row_edits import Splice
from clew.store.spliced_arrays import find_splice, splice_rows
from clew.text.entity_types import alias_relation_codes
from clew.text.names import FORM

_MENTION_BYTES = 96  # taken by a mention while it is counted
_MAX_COUNTED_CLASSES = 64  # of more, mentions are sorted: counting takes a number for each
_PREFIX = "resolve_"


@dataclass(frozen=True, slots=True)
class NameStatistics:
    """Names by hash; the mentions of each name; stated names, and facts that state sameness."""

    hashes: Ints
    """Of all names, ascending."""
    keys: Ints
    """The keys of the names in this order; of equal hashes the smaller first."""
    mentions: NDArray[np.int32]
    """How often each name of the table is mentioned."""
    classes: NDArray[np.int32]
    """Its most frequent class; of equals the first."""
    several: Mask
    """Whether it is mentioned with several classes."""
    stated: Ints
    """Other names that documents state: the key of the name, the hash of the other one."""
    same_facts: Ints
    """Keys of facts that say that two names are one entity."""

    def to_arrays(self) -> dict[str, Array]:
        """The arrays that a generation keeps for the next one."""
        return {_PREFIX + part: getattr(self, part) for part in self.__slots__}


def find_statistics(tables: Tables) -> NameStatistics:
    """Return the statistics of all names of the tables."""
    previous = tables.previous
    if all(_PREFIX + part in previous for part in NameStatistics.__slots__):
        made = {
            name: find_splice(previous, COLUMN_PREFIX + name, getattr(tables, name))
            for name in ("entities", "mentions", "forms", "facts")
        }
        known = {name: one for name, one in made.items() if one is not None}
        if len(known) == len(made):
            return _update(tables, known)
    return make_statistics(tables)


# -- making


def make_statistics(tables: Tables) -> NameStatistics:
    """The same, made of all rows."""
    memory, keys = tables.memory, tables.entities[:, 0]
    counts, classes = np.zeros(len(keys), np.int32), np.zeros(len(keys), np.int32)
    several = np.zeros(len(keys), np.bool_)
    for some in blocks_of_groups(memory, tables.mentions[:, 0], _MENTION_BYTES):
        rows = tables.mentions[some]
        who = find_positions(keys, rows[:, 0])
        if not len(who):
            continue
        first, last = int(who[0]), int(who[-1]) + 1
        counts[first:last] = np.bincount(who - first)
        classes[first:last], several[first:last] = _classify(who - first, rows[:, 4], last - first)
    stated = [select_stated(tables.forms[some]) for some in memory.blocks(len(tables.forms))]
    facts = [_select_same(tables.facts[some]) for some in memory.blocks(len(tables.facts))]
    return NameStatistics(
        *sort_names(tables.entities),
        counts,
        classes,
        several,
        np.concatenate([np.zeros((0, 2), np.int64), *stated]),
        np.concatenate([np.zeros(0, np.int64), *facts]),
    )


def sort_names(entities: Array) -> tuple[Ints, Ints]:
    """The hashes of all names, ascending, and their keys in this order."""
    hashes = np.ascontiguousarray(entities[:, 2])
    order = argsort_pairs(hashes, np.arange(len(hashes)))
    return hashes[order], entities[order, 0]


def select_stated(forms: Array) -> Ints:
    """Names that documents state, of rows of the table of forms: key and hash."""
    found: Ints = forms[(forms[:, 2] == STATED_WEIGHT) & (forms[:, 3] == FORM), :2]
    return found


def _select_same(facts: Array) -> Ints:
    found: Ints = facts[np.isin(facts[:, 2], list(alias_relation_codes())), 0]
    return found


def _classify(who: Ints, classes: Array, count: int) -> tuple[Ints, Mask]:
    """The most frequent class of each of so many names, and whether it has several."""
    several = np.zeros(count, np.bool_)
    several[find_ambiguous_names(who, classes)] = True
    return count_classes(who, classes, count), several


def count_classes(who: Ints, classes: Array, count: int) -> Ints:
    """The most frequent class of each of so many names; of equals the first, 0 for none."""
    found = np.zeros(count, np.int64)
    known = np.flatnonzero(classes > 0)
    if not len(known):
        return found
    width = int(classes.max()) + 1
    codes = who[known] * width + classes[known]
    if width > _MAX_COUNTED_CLASSES:
        pair, times = np.unique(codes, return_counts=True)
        pair = pair[np.lexsort((-(pair % width), times))]  # the best last, which then stays
        found[pair // width] = pair % width
        return found
    times = np.bincount(codes, minlength=count * width).reshape(-1, width)
    best: Ints = times.argmax(axis=1)  # class 0 is never counted: it is the best only of none
    return best


# -- updating


def _update(tables: Tables, made: dict[str, Splice]) -> NameStatistics:
    """The statistics, of which those of rows that came or went are made again."""
    previous = tables.previous
    names, said = made["entities"], made["mentions"]
    before = previous[COLUMN_PREFIX + "mentions"][said.gone], said.rows
    counts, classes, several = (
        splice(held, names.gone, names.at, np.zeros(len(names.rows), held.dtype))
        for held in (previous[f"{_PREFIX}{part}"] for part in ("mentions", "classes", "several"))
    )
    keys = _among(tables.entities, *(rows[:, 0] for rows in before), names.rows[:, 0])
    at, first, last = _find_mentions(tables, keys)
    counts[at] = last - first
    # A mention without a class changes none.
    keys = _among(tables.entities, *(rows[rows[:, 4] > 0, 0] for rows in before), names.rows[:, 0])
    at, first, last = _find_mentions(tables, keys)
    who, rows = expand_ranges(first, last)
    classes[at], several[at] = _classify(who, tables.mentions[rows, 4], len(at))
    hashes, bearers = _update_hashes(previous, names)
    stated = _update_stated(tables, made["forms"])
    same = _update_same(previous, made["facts"])
    return NameStatistics(hashes, bearers, counts, classes, several, stated, same)


def _among(entities: Array, *keys: Array) -> Ints:
    """Those of the keys that there are still, ascending."""
    wanted = sorted_unique(np.concatenate(keys))
    at = np.minimum(bisect_column(entities[:, 0], wanted), len(entities) - 1)
    return wanted[entities[at, 0] == wanted] if len(entities) else wanted[:0]


def _find_mentions(tables: Tables, keys: Ints) -> tuple[Ints, Ints, Ints]:
    """The positions of some names, and where the mentions of each begin and end."""
    column = tables.mentions[:, 0]
    first, last = (bisect_column(column, keys, right=side) for side in (False, True))
    return bisect_column(tables.entities[:, 0], keys), first, last


def _update_hashes(previous: Arrays, names: Splice) -> tuple[Ints, Ints]:
    """Names by hash, without the rows that are gone and with those that came."""
    hashes, keys = previous[f"{_PREFIX}hashes"], previous[f"{_PREFIX}keys"]
    old = previous[f"{COLUMN_PREFIX}entities"][names.gone]
    which, at = _find_equal(hashes, old[:, 2])
    gone = np.sort(at[keys[at] == old[which, 0]])
    rows = names.rows[np.lexsort((names.rows[:, 0], names.rows[:, 2]))]
    which, at = _find_equal(hashes, rows[:, 2])
    smaller = np.bincount(which[keys[at] < rows[which, 0]], minlength=len(rows))
    places = np.searchsorted(hashes, rows[:, 2]) + smaller
    return (
        splice_rows(previous, f"{_PREFIX}hashes", hashes, gone, places, rows[:, 2]),
        splice_rows(previous, f"{_PREFIX}keys", keys, gone, places, rows[:, 0]),
    )


def _find_equal(hashes: Ints, wanted: Array) -> tuple[Ints, Ints]:
    """All places of some numbers: which of them, and where."""
    return expand_ranges(np.searchsorted(hashes, wanted), np.searchsorted(hashes, wanted, "right"))


def _update_stated(tables: Tables, forms: Splice) -> Ints:
    """Stated names, of which those of names with other forms are read again."""
    held: Ints = tables.previous[f"{_PREFIX}stated"]
    old = tables.previous[f"{COLUMN_PREFIX}forms"][forms.gone, 0]
    keys = sorted_unique(np.concatenate([old, forms.rows[:, 0]]))
    table = tables.forms
    edges = (bisect_column(table[:, 0], keys, right=side) for side in (False, True))
    fresh = select_stated(table[expand_ranges(*edges)[1]])
    kept = held[~isin_sorted(held[:, 0], keys)]
    if len(kept) == len(held) and not len(fresh):
        return held
    found = np.concatenate([kept, fresh])
    return found[np.argsort(found[:, 0], kind="stable")]


def _update_same(previous: Arrays, facts: Splice) -> Ints:
    """Facts that say that two names are one entity, after some came and went."""
    held: Ints = previous[f"{_PREFIX}same_facts"]
    old: NDArray[Any] = previous[f"{COLUMN_PREFIX}facts"][facts.gone, 0]
    fresh, kept = _select_same(facts.rows), held[~isin_sorted(held, old)]
    unchanged = len(kept) == len(held) and not len(fresh)
    return held if unchanged else np.sort(np.concatenate([kept, fresh]))
