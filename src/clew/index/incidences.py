"""Incidences between passages, entities and facts: built anew, or updated from what was there.

A passage never changes: it is added or removed, with its mentions and statements. So only edges of
passages that are new or gone change, as long as names are resolved as before.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import (
    Csr,
    Floats,
    Ints,
    build_csr,
    find_positions,
    isin_sorted,
    sorted_unique,
)
from clew.graph.csr_update import Moves, find_moves, update_csr
from clew.graph.parts import HERE, RunParts, split_range
from clew.index.incidence_blocks import build_in_blocks, fits_in_memory
from clew.index.resolution import ResolvedTables
from clew.store.protocol import COLUMN_PREFIX, Array, Arrays, Tables
from clew.store.spliced_arrays import find_splice, splice_part

Named = dict[str, NDArray[Any]]
_KINDS = ("chunk", "entity", "fact")
_PARTS = ("starts", "columns", "weights")
_NAMES = tuple(
    f"{one}_{other}" for one, other in (("entity", "chunk"), ("fact", "entity"), ("fact", "chunk"))
)


@dataclass(frozen=True, slots=True)
class _Edges:
    """Edges of an incidence as positions and weights; `more` are other weights of the way back."""

    left: tuple[str, Ints]
    right: tuple[str, Ints]
    weights: Floats
    more: tuple[tuple[str, Floats], ...] = ()


def derive_incidences(
    resolved: ResolvedTables, keys: dict[str, Ints], previous: Arrays | None, run: RunParts = HERE
) -> Named:
    """Return all incidences in both directions; `keys` are those of resolved elements.

    `previous` are the arrays of a generation in which all names were resolved as they are now.
    """
    if previous is not None:
        return _update_all(resolved, keys, previous)
    if not fits_in_memory(resolved.tables):
        return build_in_blocks(resolved, keys)
    counts = {kind: len(keys[kind]) for kind in _KINDS}
    arrays: Named = {}
    for edges in (
        _mention_edges(resolved.mentions(), keys),
        _member_edges(resolved.participants(), keys),
        _support_edges(resolved.tables.supports, keys),
    ):
        arrays |= _build_incidence(edges, counts, run)
    return arrays


def _mention_edges(mentions: Array, keys: dict[str, Ints]) -> _Edges:
    entity, chunk, times, about, _ = mentions.T
    return _Edges(
        ("entity", find_positions(keys["entity"], entity)),
        ("chunk", find_positions(keys["chunk"], chunk)),
        np.maximum(times, 1).astype(np.float32),
        (("about", (about / np.float32(1000)).astype(np.float32)),),
    )


def _member_edges(participants: Array, keys: dict[str, Ints]) -> _Edges:
    fact, member, role = participants.T
    return _Edges(
        ("fact", find_positions(keys["fact"], fact)),
        ("entity", find_positions(keys["entity"], member)),
        role.astype(np.float32),
    )


def _support_edges(supports: Array, keys: dict[str, Ints]) -> _Edges:
    fact, chunk, start = supports.T
    return _Edges(
        ("fact", find_positions(keys["fact"], fact)),
        ("chunk", find_positions(keys["chunk"], chunk)),
        start.astype(np.float32),
    )


# -- building


def _build_incidence(edges: _Edges, counts: dict[str, int], run: RunParts) -> Named:
    """Build an incidence in both directions, as named CSR arrays."""
    (source, sources), (target, targets) = edges.left, edges.right
    out = _build_by_shards(counts[source], sources, targets, edges.weights, run)
    back = _build_by_shards(counts[target], targets, sources, edges.weights, run)
    more = {
        f"{target}_{source}_{name}": build_csr(counts[target], targets, sources, weights).weights
        for name, weights in edges.more
    }
    return csr_arrays(f"{source}_{target}", out) | csr_arrays(f"{target}_{source}", back) | more


def _build_by_shards(count: int, rows: Ints, columns: Ints, weights: Floats, run: RunParts) -> Csr:
    """Build a CSR by ranges of its rows."""
    ranges = split_range(count, run.count)
    if len(ranges) == 1:
        return build_csr(count, rows, columns, weights)
    parts = []
    for some in ranges:
        mine = np.flatnonzero((rows >= some.start) & (rows < some.stop))
        parts.append(
            (some.stop - some.start, rows[mine] - some.start, columns[mine], weights[mine])
        )
    built: list[Csr] = run(build_csr, parts)
    sizes = np.cumsum([0, *(len(one.columns) for one in built)])
    starts = [one.starts[:-1] + size for one, size in zip(built, sizes, strict=False)]
    return Csr(
        np.concatenate([*starts, sizes[-1:]]),
        np.concatenate([one.columns for one in built]),
        np.concatenate([one.weights for one in built]),
    )


def csr_arrays(name: str, links: Csr) -> Named:
    """The arrays of a CSR by name."""
    return {f"{name}_{part}": getattr(links, part) for part in _PARTS}


# -- updating


def is_resolved_as_before(previous: Arrays, keys: dict[str, Ints], resolved: Arrays) -> bool:
    """Whether every name that was there and still is stands for the same entity as before."""
    needed = [f"{name}_columns" for name in _NAMES]
    if any(name not in previous for name in (*needed, "merged", "sense_mentions")):
        return False
    before, now = previous["merged"], resolved["merged"]
    # Merged ones are no elements, and an element that is merged now was none before.
    if isin_sorted(now[:, 0], previous["entity_keys"]).any():
        return False
    if isin_sorted(before[:, 0], keys["entity"]).any():
        return False
    _, mine, theirs = np.intersect1d(before[:, 0], now[:, 0], return_indices=True)
    if (before[mine, 1] != now[theirs, 1]).any():
        return False
    split_before, split_now = previous["sense_mentions"], resolved["sense_mentions"]
    return np.array_equal(
        _sort_rows(split_before[isin_sorted(split_before[:, 1], keys["chunk"])]),
        _sort_rows(split_now[isin_sorted(split_now[:, 1], previous["chunk_keys"])]),
    )


def _sort_rows(rows: Array) -> Array:
    found: Array = rows[np.lexsort(rows.T)]
    return found


def find_key_moves(previous: Arrays, keys: dict[str, Ints], kind: str) -> Moves:
    """How elements of a kind moved since the previous generation."""
    name = f"{kind}_keys"
    made = find_splice(previous, name, keys[kind])
    if made is None:
        return find_moves(previous[name], keys[kind])
    added = made.at - np.searchsorted(made.gone, made.at) + np.arange(len(made.at))
    # A row that is replaced is dropped and inserted: its element stays.
    before = previous[name][made.gone]
    gone = made.gone[~isin_sorted(before, made.rows)]
    added = added[~isin_sorted(made.rows, before)]
    return Moves(len(previous[name]), len(keys[kind]), gone, added)


def _update_all(resolved: ResolvedTables, keys: dict[str, Ints], previous: Arrays) -> Named:
    """Update the incidences of the previous generation."""
    tables = resolved.tables
    moves = {kind: find_key_moves(previous, keys, kind) for kind in _KINDS}
    new = keys["chunk"][moves["chunk"].added]
    supports = tables.supports[_find_among(tables, "supports", new)]
    stated = sorted_unique(supports[:, 0])
    held = np.searchsorted(
        previous["fact_keys"], stated[isin_sorted(stated, previous["fact_keys"])]
    )
    lost = _load_csr(previous, "chunk_fact")
    touched = np.union1d(held, lost.columns[lost.edges_of(moves["chunk"].gone)[1]])
    # What a fact's names stand for may depend on the passages that state it.
    facts = moves["fact"]
    if not _has_same_members(resolved, keys, previous, touched):
        facts = facts.drop(touched)
    participants = resolved.participants(keys["fact"][facts.added])
    mentions = resolved.mentions(_find_among(tables, "mentions", new))
    return {
        **_update_incidence(previous, _mention_edges(mentions, keys), moves),
        **_update_incidence(previous, _member_edges(participants, keys), moves | {"fact": facts}),
        **_update_incidence(previous, _support_edges(supports, keys), moves),
    }


def _has_same_members(
    resolved: ResolvedTables, keys: dict[str, Ints], previous: Arrays, facts: Ints
) -> bool:
    """Whether those of the previous facts that are still there have the members they had."""
    left = facts[isin_sorted(previous["fact_keys"][facts], keys["fact"])]
    links = _load_csr(previous, "fact_entity")
    which, edges = links.edges_of(left)
    before = np.stack(
        [
            previous["fact_keys"][left[which]],
            previous["entity_keys"][links.columns[edges]],
            links.weights[edges].astype(np.int64),
        ],
        axis=1,
    )
    now = resolved.participants(previous["fact_keys"][left])
    return np.array_equal(_sort_rows(before), _sort_rows(now))


def _find_among(tables: Tables, name: str, chunks: Ints) -> Ints:
    """Which rows of a table are of these chunks, which are larger than most."""
    table: Array = getattr(tables, name)
    made = find_splice(tables.previous, f"{COLUMN_PREFIX}{name}", table)
    if made is not None:
        at = made.at - np.searchsorted(made.gone, made.at) + np.arange(len(made.at))
    else:
        least = int(chunks[0]) if len(chunks) else np.iinfo(np.int64).max
        at = np.flatnonzero(table[:, 1] >= least)
    found: Ints = at[isin_sorted(table[at, 1], chunks)]
    return found


def _update_incidence(previous: Arrays, edges: _Edges, moves: dict[str, Moves]) -> Named:
    """Update an incidence in both directions."""
    (source, sources), (target, targets) = edges.left, edges.right
    arrays: Named = {}
    for (one, at), (other, to), more in (
        ((source, sources), (target, targets), ()),
        ((target, targets), (source, sources), edges.more),
    ):
        name = f"{one}_{other}"
        edit = partial(splice_part, previous, name)
        update = update_csr(_load_csr(previous, name), (moves[one], moves[other]), (at, to), edit)
        arrays[f"{name}_starts"], arrays[f"{name}_columns"] = update.starts, update.columns
        for part, weights in (("weights", edges.weights), *more):
            held = previous[f"{name}_{part}"]
            arrays[f"{name}_{part}"] = update.carry(held, weights, part, edit)
    return arrays


def _load_csr(arrays: Arrays, name: str) -> Csr:
    return Csr(*(arrays[f"{name}_{part}"] for part in _PARTS))
