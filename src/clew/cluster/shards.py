"""One shard of a generation: vectors, words, names and rows of graphs, and what it is asked.

Passages go by the hash of their document, facts with the first passage that states them, entities
by the hash of their name. A shard is a function of the generation, its number and how many there
are, so the row that names the generation pins a version of all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clew.cluster.walk import Mass, Places, PushedMass, ShardWalk, WalkRows, WalkStep
from clew.errors import VectorsDeferred
from clew.graph.csr import Doubles, Floats, Ints, expand_ranges
from clew.index.cosines import round_cosines
from clew.index.nearest import count_candidates, is_indexed, select_best
from clew.index.view import View
from clew.store.bm25 import Postings, TextSegment
from clew.store.protocol import Snapshot
from clew.store.sign_bits import SignBits, make_sign_bits
from clew.text.unicode import hash64
from clew.types import Kind

SHARDED_KINDS: tuple[Kind, ...] = ("chunk", "entity", "fact")
Owners = Mapping[Kind, NDArray[np.int16]]
"""The shard of each element, by kind."""
WordPostings = tuple[NDArray[np.int32], NDArray[np.integer]]
"""Positions of the passages with a word, ascending, and how often they have it."""
_BLOCK = 5000  # passages whose documents are read at once
_MAX_WALKS = 64  # kept at once; the oldest was given up by its question


async def find_owners(view: View, now: Snapshot, count: int) -> Owners:
    """The shard of each element of a generation."""
    keys = view.keys("chunk")
    chunk = np.zeros(len(keys), np.int16)
    for start in range(0, len(keys), _BLOCK):
        block = keys[start : start + _BLOCK].tolist()
        found = await now.chunks(block)
        chunk[start : start + len(block)] = [hash64(found[key].document) % count for key in block]
    entity = (view.codes("entity").view(np.uint64) % np.uint64(count)).astype(np.int16)
    stated = view.links("fact_chunk")
    fact = np.zeros(view.count("fact"), np.int16)
    known = np.flatnonzero(stated.degrees())
    fact[known] = chunk[stated.columns[stated.starts[known]]]
    return {"chunk": chunk, "entity": entity, "fact": fact}


class ShardVectors(NamedTuple):
    """The vectors of elements, by position, ascending; `codes` order those of equal cosine."""

    positions: Ints
    vectors: Floats
    codes: Ints


class ShardNames(NamedTuple):
    """Names of entities by hash, ascending; `at` is their place among those of all shards."""

    hashes: NDArray[np.uint64]
    at: Ints
    entities: NDArray[np.int32]
    weights: Floats
    kinds: NDArray[np.integer]

    def select(self, at: Ints) -> "ShardNames":
        """Some of the names, in the order given."""
        columns: list[Any] = [column[at] for column in self]
        return ShardNames(*columns)


@dataclass(eq=False)
class Shard:
    """Answers for its part of a generation, and walks over its part of graphs."""

    vectors: Mapping[Kind, ShardVectors]
    texts: tuple[TextSegment, ...]
    names: ShardNames
    _graphs: dict[str, WalkRows] = field(default_factory=dict)
    _walks: dict[int, ShardWalk] = field(default_factory=dict)

    @cached_property
    def _indexes(self) -> dict[Kind, SignBits]:
        return {}

    def cosines(self, kind: Kind, vector: Floats) -> Floats:
        """Cosine of every vector."""
        return round_cosines(self.vectors[kind].vectors @ vector)

    def nearest(self, kind: Kind, vector: Floats, k: int) -> tuple[Ints, Floats]:
        """Positions and cosines of the `k` nearest; of many, an index proposes candidates."""
        held = self.vectors[kind]
        at = np.arange(len(held.positions))
        if is_indexed(len(at), k):
            if kind not in self._indexes:
                self._indexes[kind] = make_sign_bits(held.vectors)
            at = self._indexes[kind].nearest_positions(vector, at, count_candidates(k))
        scores = held.vectors[at] @ vector if len(at) < len(held.codes) else held.vectors @ vector
        scores = round_cosines(scores)
        best = select_best(scores, held.codes[at], k)
        return held.positions[at[best]], scores[best]

    def compare(self, kind: Kind, asked: Sequence[tuple[Floats, Ints]]) -> list[Floats]:
        """For each vector its cosines with the elements at some positions; -1 where is none."""
        held = self.vectors[kind]
        found = []
        for vector, positions in asked:
            at, known = _find_rows(held.positions, positions)
            cosines = np.full(len(positions), -1, np.float32)
            cosines[known] = round_cosines(held.vectors[at] @ vector)
            found.append(cosines)
        return found

    def take_vectors(self, kind: Kind, positions: Ints) -> Floats:
        """The vectors at these positions; zeros for those without one."""
        held = self.vectors[kind]
        found = np.zeros((len(positions), held.vectors.shape[1]), np.float32)
        at, known = _find_rows(held.positions, positions)
        found[known] = held.vectors[at]
        return found

    def postings(self, terms: Sequence[int]) -> list[list[WordPostings]]:
        """For each hashed word the passages that have it, by segment."""
        return [[_read_postings(part, term) for part in self.texts] for term in terms]

    def find_names(self, hashes: NDArray[np.uint64]) -> tuple[Ints, ShardNames]:
        """Which of the hashes have names here, and these names."""
        known = self.names.hashes
        which, at = expand_ranges(
            np.searchsorted(known, hashes, "left"), np.searchsorted(known, hashes, "right")
        )
        return which, self.names.select(at)

    # -- walks

    def add_graph(self, name: str, rows: WalkRows) -> None:
        """Keep this shard's rows of a graph."""
        self._graphs[name] = rows

    def begin_walk(self, name: str, walk: int, given: tuple[Any, ...]) -> PushedMass | None:
        """Begin a walk with a push; None if the graph is unknown, as this was started again."""
        if name not in self._graphs:
            return None
        while len(self._walks) >= _MAX_WALKS:
            self._walks.pop(min(self._walks), None)  # another thread may have done so
        self._walks[walk] = ShardWalk(self._graphs[name])
        return self._walks[walk].push(*given)

    def walk_on(self, walk: int, what: WalkStep, given: tuple[Any, ...]) -> Any:
        """Do a step of a walk; None if it is unknown."""
        held = self._walks.get(walk)
        return None if held is None else getattr(held, what)(*given)

    def end_walk(
        self, walk: int, incoming: Mass, scale: float, spread: float, k: int
    ) -> tuple[Places, Doubles] | None:
        """Return the best places, and forget the walk; None if it is unknown."""
        held = self._walks.pop(walk, None)
        return None if held is None else held.find_best(incoming, scale, spread, k)


def _find_rows(held: Ints, wanted: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """The rows of those positions that are held, and which these are."""
    at = np.searchsorted(held, wanted)
    known = at < len(held)
    known[known] = held[at[known]] == wanted[known]
    return at[known], known


def _read_postings(part: TextSegment, term: int) -> WordPostings:
    [where] = part.find_postings(np.array([term], np.uint64))
    return part.chunks[where], part.counts[where]


def cut_shard(view: View, owners: Owners, number: int) -> Shard:
    """Cut one shard out of a generation; kinds whose vectors are still to be made are left out."""
    vectors = {}
    for kind in SHARDED_KINDS:
        try:
            matrix = view.matrices.get(kind)
        except VectorsDeferred:
            continue
        if matrix is not None and len(matrix):
            rows = view.arrays[f"{kind}_rows"]
            mine = np.flatnonzero((owners[kind] == number) & (rows >= 0))
            held = np.ascontiguousarray(matrix[rows[mine]], np.float32)
            vectors[kind] = ShardVectors(mine, held, view.codes(kind)[mine])
    texts = tuple(
        _cut_segment(segment, place, owners["chunk"], number)
        for segment, place in zip(view.bm25.segments, view.bm25.places, strict=True)
    )
    return Shard(vectors, texts, _cut_names(view, owners["entity"], number))


def _cut_segment(
    segment: TextSegment, place: NDArray[np.int32] | None, owner: NDArray[np.int16], number: int
) -> TextSegment:
    """The postings of a segment that are of this shard's passages, by position."""
    chunks = segment.chunks if place is None else place[segment.chunks]
    mine = np.flatnonzero((chunks >= 0) & (owner[chunks] == number))
    posts: Postings = (
        np.repeat(segment.terms, np.diff(segment.starts))[mine],
        chunks[mine],
        segment.counts[mine],
    )
    terms, starts = np.unique(posts[0], return_index=True)
    ends = np.append(starts, len(mine)).astype(np.int64)
    none = np.zeros(0, np.int64)
    return TextSegment(terms, ends, posts[1], posts[2], none.astype(np.int32), none)


def _cut_names(view: View, owner: NDArray[np.int16], number: int) -> ShardNames:
    hashes: NDArray[np.uint64] = view.arrays.get("name_hashes", np.zeros(0, np.uint64))
    if not len(hashes):
        none = np.zeros(0, np.int64)
        return ShardNames(hashes, none, none.astype(np.int32), none.astype(np.float32), none)
    entities = view.arrays["name_entities"]
    mine = np.flatnonzero(owner[entities] == number)
    weights, kinds = view.arrays["name_weights"][mine], view.arrays["name_kinds"][mine]
    return ShardNames(hashes[mine], mine, entities[mine], weights, kinds)
