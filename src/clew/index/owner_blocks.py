"""Passages about entities, and the words of names: of more than fit into memory, by ranges."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from clew.graph.csr import Csr, Ints, Mask, expand_ranges, sorted_unique
from clew.graph.csr_blocks import EdgeBlock, build_csr_in_blocks
from clew.graph.name_matching import NameTokenIndex, build_token_index
from clew.graph.page_owners import EntityTokens, NameTable, PassageFinder
from clew.out_of_core import Buckets, WorkingMemory

_TOKEN_BYTES = 96  # taken by a token while it is indexed
_ENTITY_BYTES = 512  # taken by an entity while its passages are looked for


def index_tokens(starts: Ints, codes: Ints, known: Ints, memory: WorkingMemory) -> NameTokenIndex:
    """Index the tokens of the entities `known`; `starts` says where those of each entity are."""
    total = int((starts[known + 1] - starts[known]).sum())
    if memory.fits(total, _TOKEN_BYTES):
        name, slots = expand_ranges(starts[known], starts[known + 1])
        return build_token_index(len(known), name, codes[slots])
    sizes = np.append(0, np.cumsum(starts[known + 1] - starts[known]))
    distinct = np.zeros(0, np.int64)
    for _, slots in _token_blocks(starts, known, memory):
        distinct = sorted_unique(np.concatenate([distinct, sorted_unique(codes[slots])]))
    places, weights = memory.empty(total, np.int32), memory.empty(total, np.float32)
    done = 0
    for _, slots in _token_blocks(starts, known, memory):
        some = slice(done, done + len(slots))
        places[some], weights[some] = np.searchsorted(distinct, codes[slots]), 1
        done = some.stop
    blocks = partial(_name_blocks, starts, known, places, memory)
    names = build_csr_in_blocks((len(distinct), len(known)), 1, blocks, memory)
    return NameTokenIndex(
        distinct,
        Csr(names.starts, names.columns, names.weights[0]),
        Csr(sizes, places, weights),
    )


def _token_blocks(starts: Ints, known: Ints, memory: WorkingMemory) -> Iterator[tuple[Ints, Ints]]:
    """The tokens of entities: the number of each one's name, and its place among all tokens."""
    for some in memory.blocks(len(known), 8 * _TOKEN_BYTES):
        name, slots = expand_ranges(starts[known[some]], starts[known[some] + 1])
        yield name + some.start, slots


def _name_blocks(
    starts: Ints, known: Ints, places: Ints, memory: WorkingMemory
) -> Iterator[EdgeBlock]:
    done = 0
    for name, _ in _token_blocks(starts, known, memory):
        some = slice(done, done + len(name))
        yield places[some], name, (np.ones(len(name), np.float32),)
        done = some.stop


def fits_at_once(entities: int, memory: WorkingMemory) -> bool:
    """Whether the passages about so many entities may be looked for at once."""
    return memory.fits(entities, _ENTITY_BYTES)


def find_owners(
    named: NameTable, owned: Csr, spelt: EntityTokens, codes: Ints, memory: WorkingMemory
) -> tuple[Csr, Mask]:
    """Find the passages about each entity, range by range, and who was matched by similarity."""
    count = len(spelt.own_names)
    finder = PassageFinder(owned, named, spelt, codes)
    if fits_at_once(count, memory):
        return finder.find(named, np.arange(count))
    ranges = list(memory.blocks(count, _ENTITY_BYTES))
    rows = Buckets(memory, [some.start for some in ranges[1:]], np.dtype(np.int64))
    for some in memory.blocks(len(named.hashes)):
        rows.add(named.entities[some], np.arange(some.start, some.stop))
    parts, unsure = [], [np.zeros(0, np.bool_)]
    for some, asked in zip(ranges, rows, strict=True):
        which = np.arange(some.start, some.stop)
        found, asked_by_words = finder.find(named.take(asked).renumber(which), which)
        parts.append(found)
        unsure.append(asked_by_words)
        memory.release()
    sizes = np.cumsum([0, *(len(one.columns) for one in parts)])
    starts = [one.starts[:-1] + size for one, size in zip(parts, sizes, strict=False)]
    owners = Csr(
        np.concatenate([*starts, sizes[-1:]]).astype(np.int64),
        np.concatenate([np.zeros(0, np.int32), *(one.columns for one in parts)]),
        np.concatenate([np.zeros(0, np.float32), *(one.weights for one in parts)]),
    )
    return owners, np.concatenate(unsure)
