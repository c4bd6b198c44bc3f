"""Incidences of more edges than fit into memory, equal to those that are built at once."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Ints, find_positions
from clew.graph.csr_blocks import EDGE_BYTES, EdgeBlock, WeightedCsr, build_csr_in_blocks
from clew.index.resolution import ResolvedTables
from clew.out_of_core import WorkingMemory
from clew.store.protocol import Tables

Named = dict[str, NDArray[Any]]


def fits_in_memory(tables: Tables) -> bool:
    """Whether the largest incidence can be built at once."""
    edges = max(len(tables.mentions), len(tables.participants), len(tables.supports))
    return tables.memory.fits(edges, EDGE_BYTES)


def build_in_blocks(resolved: ResolvedTables, keys: dict[str, Ints]) -> Named:
    """Build all incidences in both directions; each direction back is made from the other."""
    counts = {kind: len(found) for kind, found in keys.items()}
    memory = resolved.tables.memory
    arrays: Named = {}
    shape = counts["entity"], counts["chunk"]
    out = build_csr_in_blocks(shape, 2, partial(_mention_blocks, resolved, keys), memory)
    out = _weigh_mentions(_combine(out, memory) if len(resolved.arrays["merged"]) else out, memory)
    arrays |= _both_ways("entity", "chunk", out, shape, memory)
    del arrays["entity_chunk_about"]
    for other, blocks in (("entity", _member_blocks), ("chunk", _support_blocks)):
        shape = counts["fact"], counts[other]
        out = build_csr_in_blocks(shape, 1, partial(blocks, resolved, keys), memory)
        arrays |= _both_ways("fact", other, out, shape, memory)
    return arrays


def _mention_blocks(resolved: ResolvedTables, keys: dict[str, Ints]) -> Iterator[EdgeBlock]:
    for owners, found in resolved.mention_blocks():
        entity = find_positions(keys["entity"], owners)
        yield entity, find_positions(keys["chunk"], found[:, 1]), (found[:, 2], found[:, 3])


def _member_blocks(resolved: ResolvedTables, keys: dict[str, Ints]) -> Iterator[EdgeBlock]:
    for found in resolved.participant_blocks():
        fact, member, role = found.T
        entity = find_positions(keys["entity"], member)
        yield find_positions(keys["fact"], fact), entity, (role,)


def _support_blocks(resolved: ResolvedTables, keys: dict[str, Ints]) -> Iterator[EdgeBlock]:
    tables = resolved.tables
    for some in tables.memory.blocks(len(tables.supports), EDGE_BYTES):
        fact, chunk, start = tables.supports[some].T
        where = find_positions(keys["chunk"], chunk)
        yield find_positions(keys["fact"], fact), where, (start,)


def _combine(links: WeightedCsr, memory: WorkingMemory) -> WeightedCsr:
    """Make parallel edges one: the first weights add up, of the others the highest counts."""
    first = memory.empty(len(links.columns), np.bool_)
    before = (-1, -1)
    for at, (rows, columns, _) in _number_blocks(links, memory):
        some = slice(at, at + len(rows))
        first[some] = np.append(True, (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1]))
        first[at] = (int(rows[0]), int(columns[0])) != before
        before = int(rows[-1]), int(columns[-1])
    # The number of distinct edges before each one.
    kept = memory.empty(len(first) + 1, np.int64)
    kept[0] = 0
    np.cumsum(first, out=kept[1:])
    times, about = memory.empty(int(kept[-1]), np.float32), memory.empty(int(kept[-1]), np.float32)
    columns_left = memory.empty(int(kept[-1]), np.int32)
    times[:], about[:] = 0, 0
    for at, (rows, columns, weights) in _number_blocks(links, memory):
        place = kept[at + 1 : at + 1 + len(rows)] - 1
        columns_left[place] = columns
        np.add.at(times, place, weights[0])
        np.maximum.at(about, place, weights[1])
    return WeightedCsr(kept[links.starts], columns_left, (times, about))


def _number_blocks(links: WeightedCsr, memory: WorkingMemory) -> Iterator[tuple[int, EdgeBlock]]:
    """The blocks of edges, each with the number of its first edge."""
    at = 0
    for block in links.edge_blocks(memory):
        yield at, block
        at += len(block[0])


def _weigh_mentions(links: WeightedCsr, memory: WorkingMemory) -> WeightedCsr:
    """Turn numbers of spans and thousandths into weights, as they are in the arrays."""
    times, about = links.weights
    for some in memory.blocks(len(links.columns), EDGE_BYTES):
        times[some] = np.maximum(times[some], 1)
        about[some] = about[some].astype(np.int64) / np.float32(1000)
    return links


def _both_ways(
    source: str, target: str, out: WeightedCsr, shape: tuple[int, int], memory: WorkingMemory
) -> Named:
    back = build_csr_in_blocks(
        (shape[1], shape[0]), len(out.weights), partial(_turn, out, memory), memory
    )
    arrays: Named = {}
    for name, links in ((f"{source}_{target}", out), (f"{target}_{source}", back)):
        arrays[f"{name}_starts"], arrays[f"{name}_columns"] = links.starts, links.columns
        # Weights, and what passages are about.
        for part, weights in zip(("weights", "about"), links.weights, strict=False):
            arrays[f"{name}_{part}"] = weights
    return arrays


def _turn(links: WeightedCsr, memory: WorkingMemory) -> Iterator[EdgeBlock]:
    for rows, columns, weights in links.edge_blocks(memory):
        yield columns, rows, weights
