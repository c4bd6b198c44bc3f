"""The table of names: all names and short forms sorted by hash, made anew or updated.

Of names with the same hash own names are first, then those of the highest weight.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import (
    Ints,
    argsort_pairs,
    expand_ranges,
    find_positions,
    isin_sorted,
    sorted_unique,
)
from clew.graph.csr_update import GONE, find_places, stays
from clew.graph.page_owners import NameTable
from clew.index.resolution import ResolvedTables
from clew.out_of_core import Buckets
from clew.sorted_columns import bisect_column
from clew.splice import splice
from clew.store.protocol import SENSE_STRIDE, Array, Arrays, Tables
from clew.store.spliced_arrays import splice_rows
from clew.text.names import FORM, TOKEN

_NAME_BYTES = 128  # taken by a name while it is sorted
_NAME_RECORD = np.dtype(
    [("hash", np.uint64), ("bearer", np.int32), ("weight", np.int32), ("kind", np.int8)]
)
_OWN_WEIGHT = 2000  # marks an entity's own name; no form has as much


@dataclass(frozen=True, slots=True)
class NameUpdate:
    """How names differ from those of the previous generation."""

    changed: Ints | None
    """Positions of entities whose names may differ; None if all may."""
    old_hashes: NDArray[np.uint64]
    """Hashes of the names that these, and entities that are gone, had."""


def index_names(
    tables: Tables, entities: Ints, changed: Ints | None, previous: Arrays
) -> tuple[dict[str, NDArray[Any]], NameUpdate]:
    """Return names and forms sorted by hash, weight 2 marks own names; and what they update.

    `changed` are the positions of entities whose names may differ from those in `previous`, and
    None if all may. `entity_same` maps an entity to the first one whose name has the same hash.
    """
    lost = np.zeros(0, np.uint64)
    if changed is None:
        names = _make_whole_table(tables, entities)
    else:
        names, lost = _update_table(tables, entities, changed, previous)
    own = np.flatnonzero(names.weights > 1)
    hashes, bearers = names.hashes[own], names.entities[own]
    is_first = np.append(True, hashes[1:] != hashes[:-1])[: len(own)]
    same = np.empty(len(entities), np.int32)
    same[bearers] = bearers[np.flatnonzero(is_first)[np.cumsum(is_first) - 1]]
    found = {f"name_{part}": getattr(names, part) for part in NameTable.__slots__}
    return {"entity_same": same, **found}, NameUpdate(changed, lost)


def _make_whole_table(tables: Tables, entities: Ints) -> NameTable:
    """Return the sorted names of all entities, of more than fit into memory by ranges of hashes."""
    memory, total = tables.memory, len(entities) + len(tables.forms)
    if memory.fits(total, _NAME_BYTES):
        return make_table(tables, entities, np.arange(len(entities)))
    parts = -(-total // (memory.rows_at_once(_NAME_BYTES) or total))
    edges = np.linspace(0, 2.0**64, parts + 1)[1:-1].astype(np.uint64)
    buckets, count = Buckets(memory, edges, _NAME_RECORD), 0
    for found in _collect_names(tables, entities):
        buckets.add(found["hash"], found)
        count += len(found)
    names = NameTable(
        *(memory.empty(count, kind) for kind in (np.uint64, np.int32, np.float32, np.int8))
    )
    done = 0
    for found in buckets:
        some = slice(done, done + len(found))
        sorted_names = _sort_names(found, len(entities))
        for part in NameTable.__slots__:
            getattr(names, part)[some] = getattr(sorted_names, part)
        done = some.stop
        memory.release()
    return names


def _collect_names(tables: Tables, entities: Ints) -> Iterator[NDArray[Any]]:
    """All names, then all forms, as records, block by block."""
    for some in tables.memory.blocks(len(tables.entities), _NAME_BYTES):
        yield _name_records(tables.entities[some], tables.forms[:0], entities)
    for some in tables.memory.blocks(len(tables.forms), _NAME_BYTES):
        yield _name_records(tables.entities[:0], tables.forms[some], entities)


def make_table(tables: Tables, entities: Ints, some: Ints) -> NameTable:
    """Return the sorted names of the entities at these positions."""
    own, forms = tables.entities[some], tables.forms
    if len(some) < len(entities):
        edges = (bisect_column(forms[:, 0], entities[some], right=side) for side in (False, True))
        forms = forms[expand_ranges(*edges)[1]]
    return _sort_names(_name_records(own, forms, entities), len(entities))


def _name_records(own: Array, forms: Array, entities: Ints) -> NDArray[Any]:
    """The names of rows of entities and of rows of forms; words of names are left out."""
    at = np.flatnonzero(forms[:, 3] != TOKEN)
    found = np.empty(len(own) + len(at), _NAME_RECORD)
    found["hash"] = np.concatenate([own[:, 2], forms[at, 1]]).astype(np.uint64)
    found["bearer"] = find_positions(entities, np.concatenate([own[:, 0], forms[at, 0]]))
    found["weight"] = np.concatenate([np.full(len(own), _OWN_WEIGHT), forms[at, 2]])
    found["kind"] = np.concatenate([np.full(len(own), FORM), forms[at, 3]])
    return found


def _sort_names(found: NDArray[Any], entities: int) -> NameTable:
    """Names by hash, then own ones, then by weight; the number of entities is given."""
    weights = found["weight"].astype(np.int64)
    # One combined sort key is faster than two.
    highest = int(weights.max(initial=0))
    hashes = np.ascontiguousarray(found["hash"])
    order = argsort_pairs(hashes, (highest - weights) * entities + found["bearer"])
    return NameTable(
        hashes[order],
        found["bearer"][order].astype(np.int32),
        (weights[order] / 1000).astype(np.float32),
        found["kind"][order].astype(np.int8),
    )


def find_changed_names(
    resolved: ResolvedTables, entities: Ints, previous: Arrays | None
) -> Ints | None:
    """Return the positions of entities whose names may have changed; None if all may have.

    `previous` are the arrays of a generation in which all names were resolved as they are now.
    """
    if previous is None:
        return None
    touched = resolved.tables.touched_names
    merged = resolved.arrays["merged"], previous["merged"]
    # Where nothing is merged, forms are not looked through for repetitions.
    if touched is None or bool(len(merged[0])) != bool(len(merged[1])):
        return None
    targets = [rows[isin_sorted(rows[:, 0] % SENSE_STRIDE, touched), 1] for rows in merged]
    places = find_places(previous["entity_keys"], entities)
    is_new = np.ones(len(entities), np.bool_)  # a sense may be new although its name is not
    is_new[places[places != GONE]] = False
    own = entities[is_new | isin_sorted(entities % SENSE_STRIDE, touched)]
    keys = sorted_unique(np.concatenate([own, *targets]))
    return np.flatnonzero(isin_sorted(entities, keys))


def _update_table(
    tables: Tables, entities: Ints, changed: Ints, previous: Arrays
) -> tuple[NameTable, NDArray[np.uint64]]:
    """Replace the names of entities that changed, and drop those of entities that are gone.

    Also returns the hashes of the names that were replaced or dropped.
    """
    held = NameTable(*(previous[f"name_{part}"] for part in NameTable.__slots__))
    places = find_places(previous["entity_keys"], entities).astype(np.int32)
    is_changed = np.zeros(len(entities) + 1, np.bool_)  # the last one is that of GONE
    is_changed[changed] = True
    places[is_changed[places]] = GONE
    bearers = held.entities if stays(places) else places[held.entities]
    gone = np.flatnonzero(bearers == GONE)
    fresh = make_table(tables, entities, changed)
    hashes, weights, left = (_drop(one, gone) for one in (held.hashes, held.weights, bearers))
    at = _find_slots(hashes, weights, left, fresh)
    at += np.searchsorted(gone - np.arange(len(gone)), at, "right")  # among those that are gone

    def update(part: str, base: NDArray[Any]) -> NDArray[Any]:
        return splice_rows(previous, f"name_{part}", base, gone, at, getattr(fresh, part))

    updated = NameTable(
        update("hashes", held.hashes),
        update("entities", bearers),
        update("weights", held.weights),
        update("kinds", held.kinds),
    )
    return updated, held.hashes[gone]


def _drop(held: NDArray[Any], gone: Ints) -> NDArray[Any]:
    return splice(held, gone, gone[:0], held[:0]) if len(gone) else held


def _find_slots(
    hashes: NDArray[np.uint64], weights: NDArray[Any], bearers: NDArray[Any], fresh: NameTable
) -> Ints:
    """Return before which of the sorted names each fresh one is."""
    first = np.searchsorted(hashes, fresh.hashes)
    last = np.searchsorted(hashes, fresh.hashes, "right")
    while (open_ := np.flatnonzero(first < last)).size:
        middle = (first[open_] + last[open_]) // 2
        held, sought = weights[middle], fresh.weights[open_]
        before = (held > sought) | ((held == sought) & (bearers[middle] < fresh.entities[open_]))
        first[open_[before]] = middle[before] + 1
        last[open_[~before]] = middle[~before]
    return first
