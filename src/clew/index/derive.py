"""Derive a generation's retrieval arrays from the store's tables."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.community_tree import carry_over_trees, has_whole_trees
from clew.graph.csr import (
    Ints,
    find_positions,
    isin_sorted,
    sorted_unique,
)
from clew.graph.parts import HERE, RunParts, split_range
from clew.index.details import derive_details, sum_mention_codes, use_detailed_rows
from clew.index.incidences import derive_incidences, is_resolved_as_before
from clew.index.name_table import find_changed_names, index_names
from clew.index.owners import index_owners
from clew.index.resolution import ResolvedTables, resolve
from clew.out_of_core import WorkingMemory
from clew.store.bm25 import (
    TextSegment,
    build_index,
    index_from_arrays,
    index_to_arrays,
    make_segment,
    merge_segments,
)
from clew.store.bm25_runs import make_segment_in_runs
from clew.store.protocol import (
    COLUMN_PREFIX,
    DETAIL_PREFIX,
    HAS_DETAILS,
    Array,
    Arrays,
    DeriveArrays,
    Tables,
)
from clew.store.resolved_entities import LONG_DESCRIPTION
from clew.store.row_edits import Splice
from clew.store.spliced_arrays import find_splice, splice_rows

# Increase it whenever the arrays or their meaning change: older ones are then derived again.
LAYOUT = 6
_CODE_BITS, _MAX_START = 43, (1 << 20) - 1  # of a passage's number: its hash, and its place
_QUOTES = f"{DETAIL_PREFIX}quote_"  # of the arrays of facts that passages quote
_RESOLVED = ("merged", "sense_mentions")  # arrays of names that are not one entity each


def derive_arrays(tables: Tables, run: RunParts = HERE) -> dict[str, NDArray[Any]]:
    """Derive a generation's arrays: resolve names to entities, then build columns and CSR.

    Names are resolved by blocks of their keys, and incidences and texts go by shards: `run` may
    compute these parts elsewhere.
    """
    release = tables.memory.release  # after each step: what it read the next one does not need
    resolved = resolve(tables, run)
    release()
    tables = resolved.tables
    arrays = {"layout": np.array([LAYOUT]), **resolved.arrays, **_derive_columns(tables)}
    release()
    keys = {kind: arrays[f"{kind}_keys"] for kind in ("chunk", "entity", "fact")}
    known = tables.previous if has_current_layout(tables.previous) else None
    if known is not None and not is_resolved_as_before(known, keys, resolved.arrays):
        known = None
    arrays |= derive_incidences(resolved, keys, known, run)
    release()
    arrays |= _find_quotes(tables)
    arrays |= _derive_details(resolved)
    if tables.facts[:, 4].any():
        arrays["fact_rows"] = use_detailed_rows(arrays)
    release()
    changed = find_changed_names(resolved, keys["entity"], known)
    named, update = index_names(tables, keys["entity"], changed, tables.previous)
    arrays |= named
    release()
    arrays |= index_owners(tables, arrays, update)
    release()
    arrays |= carry_over_trees(tables.previous, arrays)
    make = partial(make_segment_in_runs, tables.memory)
    if run.count > 1:
        make = partial(_index_by_shards, run)
    text = build_index(keys["chunk"], tables.texts, index_from_arrays(tables.previous), make)
    return arrays | index_to_arrays(text)


def _derive_columns(tables: Tables) -> dict[str, NDArray[Any]]:
    """Return what each element has by itself: key, vector row, length, weight, relation, type."""
    arrays: dict[str, NDArray[Any]] = {}
    chunks, entities, facts = (_Columns(tables, name) for name in ("chunks", "entities", "facts"))
    for kind, table in {"chunk": chunks, "entity": entities, "fact": facts}.items():
        arrays[f"{kind}_keys"] = table.derive(f"{kind}_keys", lambda rows: rows[:, 0])
        if kind == "fact" and _has_other_rows(tables):
            arrays["fact_rows"] = tables.memory.copy(tables.facts[:, 1])
        else:
            arrays[f"{kind}_rows"] = table.derive(f"{kind}_rows", lambda rows: rows[:, 1])
    arrays["chunk_codes"] = chunks.derive("chunk_codes", _order_passages)
    # Equal scores are ordered by these: keys depend on when an element was added.
    arrays["entity_codes"] = entities.derive("entity_codes", lambda rows: rows[:, 5])
    arrays["fact_codes"] = facts.derive("fact_codes", lambda rows: rows[:, 5])
    arrays["entity_literal"] = entities.derive("entity_literal", lambda rows: rows[:, 3] > 0)
    arrays["entity_small"] = entities.derive("entity_small", _tell_small)
    arrays["entity_long"] = entities.derive("entity_long", partial(_is_long, 6))
    arrays["fact_long"] = facts.derive("fact_long", partial(_is_long, 4))
    arrays["fact_weight"] = facts.derive("fact_weight", _weigh_facts)
    arrays |= facts.encode_labels("fact_relation", "relation_fact", 2)
    return arrays | entities.encode_labels("entity_type", "type_entity", 4)


def _has_other_rows(tables: Tables) -> bool:
    """Whether vector rows of facts are, or were, those of their details or quotes."""
    if tables.quotes is not None or f"{_QUOTES}rows" in tables.previous:
        return True
    return bool(tables.facts[:, 4].any())


def _tell_small(rows: Array) -> Array:
    """How names are written (`text/small_names.py`)."""
    return (rows[:, 7] >> 1).astype(np.int8)


def _is_long(column: int, rows: Array) -> Array:
    """Whether a description is worth summarising."""
    found: Array = rows[:, column] % HAS_DETAILS > LONG_DESCRIPTION
    return found


def _weigh_facts(rows: Array) -> Array:
    return (rows[:, 3] / 1000).astype(np.float32)


def _order_passages(rows: Array) -> Array:
    """Number passages so that of equals the one nearer to its document's beginning is first."""
    codes, starts = rows[:, 2], rows[:, 3]
    return (np.clip(starts, 0, _MAX_START) << _CODE_BITS) | (codes & ((1 << _CODE_BITS) - 1))


class _Columns:
    """Derives columns of a table: from the rows that came and went, if it is known which."""

    def __init__(self, tables: Tables, name: str) -> None:
        self.table: Array = getattr(tables, name)
        self._memory, self._previous = tables.memory, tables.previous
        self._made: Splice | None = None
        self._earlier: Array = self.table[:0]
        old, raw = tables.previous, f"{COLUMN_PREFIX}{name}"
        resolved = name == "entities" and any(len(old.get(part, "?")) for part in _RESOLVED)
        if has_current_layout(old) and not resolved:
            self._made = find_splice(old, raw, self.table)
            self._earlier = old[raw] if self._made is not None else self._earlier

    def derive(self, name: str, make: Callable[[Array], Array]) -> Array:
        """Return what `make` makes of all rows, block by block."""
        held, made = self._find_earlier(name), self._made
        if held is not None and made is not None:
            return splice_rows(self._previous, name, held, made.gone, made.at, make(made.rows))
        found = self._memory.empty(len(self.table), make(self.table[:0]).dtype)
        for some in self._memory.blocks(len(self.table)):
            found[some] = make(self.table[some])
        return found

    def encode_labels(self, name: str, bearer: str, column: int) -> dict[str, Array]:
        """Encode labels as small integers, -1 for none; `bearer` maps each to one element with it.

        A label's text is read from the store through that element: arrays hold numbers only.
        """
        held, made = self._find_earlier(name), self._made
        if held is not None and made is not None:
            first = self._previous[bearer]
            labels, more = self._earlier[first, column], made.rows[:, column]
            known = isin_sorted(more, labels)
            codes = np.where(known, np.searchsorted(labels, more), -1)
            now = find_bearers(first, held, made, codes) if (known | (more == 0)).all() else None
            if now is not None:
                encoded = splice_rows(self._previous, name, held, made.gone, made.at, codes)
                return {name: encoded, bearer: now}
        return encode_labels(name, bearer, self.table[:, column], self._memory)

    def _find_earlier(self, name: str) -> Array | None:
        """The column of the rows that were there before, if they are as they were."""
        held = self._previous.get(name) if self._made is not None else None
        return held if held is not None and len(held) == len(self._earlier) else None


def find_bearers(first: Ints, held: Array, made: Splice, codes: Ints) -> Ints | None:
    """Return the first element with each label after rows, with these labels, came and others went.

    `held` are the labels before; None if one of them has no element left.
    """
    gone, at = made.gone, made.at
    found = first + np.searchsorted(at, first, "right") - np.searchsorted(gone, first)
    count = len(held) + len(at)
    for label in np.flatnonzero(isin_sorted(first, gone)).tolist():
        others = np.flatnonzero(held == label)
        others = others[~isin_sorted(others, gone)][:1]
        ahead = np.searchsorted(at, others, "right") - np.searchsorted(gone, others)
        found[label] = (others + ahead).min(initial=count)
    place = at - np.searchsorted(gone, at) + np.arange(len(at))
    np.minimum.at(found, codes[codes >= 0], place[codes >= 0])
    if len(found) and int(found.max()) == count:
        return None
    return first if np.array_equal(found, first) else found


def _index_by_shards(run: RunParts, keys: Ints, texts: Mapping[int, str]) -> TextSegment:
    """Index the words of texts, range by range of passages."""
    listed = list(texts.items())
    parts = [(dict(listed[some]),) for some in split_range(len(listed), run.count)]
    return merge_segments(run(_index_texts, parts), keys)


def _index_texts(texts: Mapping[int, str]) -> TextSegment:
    return make_segment(np.array(sorted(texts), np.int64), texts)


def _find_quotes(tables: Tables) -> dict[str, NDArray[Any]]:
    """Return the vector rows of facts that are embedded within passages; nothing if none are."""
    facts, chunks = tables.facts, tables.chunks
    if tables.quotes is None or facts[:, 2].all():  # a fact with a relation is no quote
        return {}
    keys, rows = _choose_quoting(tables), np.full(len(facts), -1, np.int64)
    old = tables.previous
    if f"{_QUOTES}rows" in old and len(old["fact_keys"]):
        at = np.minimum(np.searchsorted(old["fact_keys"], facts[:, 0]), len(old["fact_keys"]) - 1)
        same = (old["fact_keys"][at] == facts[:, 0]) & (old[f"{_QUOTES}chunks"][at] == keys)
        rows[same] = old[f"{_QUOTES}rows"][at[same]]
    ask = np.flatnonzero((rows < 0) & (keys >= 0) & (facts[:, 2] == 0))
    if len(ask):
        passages = chunks[find_positions(chunks[:, 0], keys[ask]), 1]
        rows[ask] = tables.quotes.find(passages, facts[ask, 5])
    found = np.where(rows >= 0, rows, facts[:, 1])
    return {f"{_QUOTES}chunks": keys, f"{_QUOTES}rows": rows, "fact_rows": found}


def _choose_quoting(tables: Tables) -> Ints:
    """Return for each fact the key of the passage with the smallest code that states it, or -1."""
    keys = np.full(len(tables.facts), -1, np.int64)
    stated, stated_in, _ = tables.supports.T
    if len(stated):
        fact = find_positions(tables.facts[:, 0], stated)  # ascending
        codes = tables.chunks[find_positions(tables.chunks[:, 0], stated_in), 2]
        first = np.flatnonzero(np.append(True, fact[1:] != fact[:-1]))
        least = np.minimum.reduceat(codes, first)
        best = codes == np.repeat(least, np.diff(np.append(first, len(fact))))
        keys[fact[best]] = stated_in[best]
    return keys


def _derive_details(resolved: ResolvedTables) -> dict[str, NDArray[Any]]:
    """Return which entities and facts have details, and the rows known of them."""
    tables = resolved.tables
    detailed = tables.entities[:, 6] > 0
    unsteady = resolved.arrays["sense_mentions"][:, 0]
    arrays = derive_details(
        "entity",
        tables.entities[detailed, 0],
        resolved.mention_codes[detailed],
        tables.previous,
        unsteady,
    )
    facts = tables.facts[tables.facts[:, 4] > 0, 0]
    stated = _select_supports(tables, facts)
    codes = sum_mention_codes(
        len(facts), np.searchsorted(facts, stated[:, 0]), stated[:, 0], stated[:, 1]
    )
    return arrays | derive_details("fact", facts, codes, tables.previous, unsteady[:0])


def _select_supports(tables: Tables, facts: Ints) -> NDArray[Any]:
    """The statements of these facts (ascending)."""
    parts = [
        tables.supports[some][isin_sorted(tables.supports[some, 0], facts)]
        for some in tables.memory.blocks(len(tables.supports) if len(facts) else 0)
    ]
    return np.concatenate([tables.supports[:0], *parts])


def derive_keeping_trees(held: Arrays) -> DeriveArrays:
    """Return a deriver that keeps the (costly) trees of `held` and rebuilds everything else."""

    def derive(tables: Tables) -> Arrays:
        arrays = derive_arrays(tables)
        return arrays | (carry_over_trees(held, arrays) if has_whole_trees(held) else {})

    return derive


def has_current_layout(arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Whether arrays were derived with the current layout version."""
    held = arrays.get("layout")
    return held is not None and int(held[0]) == LAYOUT


def encode_labels(
    name: str, bearer: str, codes: Ints, memory: WorkingMemory
) -> dict[str, NDArray[Any]]:
    """The labels of all elements, as `encode_labels` of columns returns them."""
    parts = [sorted_unique(codes[some]) for some in memory.blocks(len(codes))]
    found = parts[0] if len(parts) == 1 else sorted_unique(np.concatenate([codes[:0], *parts]))
    real = found != 0
    number = np.where(real, np.cumsum(real) - 1, -1).astype(np.int32)
    encoded, first = memory.empty(len(codes), np.int32), np.full(len(found), -1, np.int64)
    for some in memory.blocks(len(codes)):
        label = np.searchsorted(found, codes[some])
        encoded[some] = number[label]
        here = np.full(len(found), -1, np.int64)
        here[label[::-1]] = np.arange(some.start, some.stop)[::-1]  # the first one last: it stays
        first = np.where(first < 0, here, first)
    return {name: encoded, bearer: first[real]}
