"""The edges that a walk over passages follows: mentions in facts, and where these lead.

A hop follows a few thousand edges by way of a dozen small arrays; a compiled loop does it in one
pass (see `kernels.c`). `PlainEdges` is the same in numpy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clew import kernels
from clew.graph.csr import Csr, Floats, Ints, Mask, isin_sorted
from clew.kernel_calls import WALK_ROWS, HopCall, WalkCall, place_of

Triples = tuple[Ints, Ints, Ints]
INCIDENCES = WALK_ROWS
"""Incidences in CSR form, in both directions where retrieval needs both.

`owners` maps an entity to the chunks about it, weighted by confidence.
"""
_FEW = 4096  # edges that there is room for at first


@dataclass(frozen=True, slots=True)
class WalkColumns:
    """The incidences of a walk by name, and what is known of entities."""

    links: dict[str, Csr]
    literal: NDArray[np.bool_]
    namesake: Ints
    about: Floats
    """How far each chunk is about each of its entities, parallel to `chunk_entity`."""


@dataclass(frozen=True, slots=True)
class HopEdges:
    """All edges of one hop, each kind as three columns."""

    owned: Triples
    """Chunks about what is mentioned: number of the mention, chunk, edge among `owners`."""
    beside: Triples
    """Other facts with it: number of the mention, their chunk, fact."""
    inward: Triples
    """Facts that mention what the chunks are about: index of the chunk, entity, fact."""
    naming: Triples
    """The chunks of these facts: number of the inward mention, chunk, fact."""


class WalkEdges(Protocol):
    """Finds edges: each as three columns, in the order of what is asked for."""

    @property
    def columns(self) -> WalkColumns:
        """What they are found in."""

    def find_mentions(self, chunks: Ints, known: Ints, own: float) -> Triples:
        """What facts of chunks mention: index of the chunk, entity, fact.

        Not literals, names in `known` (ascending), nor those with a claim of at least `own`.
        """

    def find_subjects(self, chunks: Ints, known: Ints, sure: float, common: int) -> Triples:
        """Facts that mention what chunks are about: index of the chunk, entity, fact.

        Of entities with a claim of at least `sure` that are in 2 to `common` chunks.
        """


def prepare_edges(columns: WalkColumns) -> WalkEdges:
    """Return the quickest way to find edges here."""
    if kernels.COMPILED is None or not _lie_as_expected(columns):
        return PlainEdges(columns)
    return CompiledEdges(columns, kernels.COMPILED)


def _lie_as_expected(columns: WalkColumns) -> bool:
    parts: list[tuple[NDArray[Any], type]] = [
        (columns.literal, np.bool_),
        (columns.namesake, np.int64),
        (columns.about, np.float32),
    ]
    for links in columns.links.values():
        parts += [(links.starts, np.int64), (links.columns, np.int32), (links.weights, np.float32)]
    return all(
        type(one) is np.ndarray and one.dtype == kind and one.flags.c_contiguous
        for one, kind in parts
    )


@dataclass(slots=True)
class CompiledEdges:
    """Finds edges by compiled loops."""

    columns: WalkColumns
    compiled: kernels.Kernels
    graph: WalkCall = field(init=False)
    room: int = _FEW
    """Edges that there is room for; it grows."""

    def __post_init__(self) -> None:
        """Note where the arrays are."""
        links = [self.columns.links[name] for name in INCIDENCES]
        rows = [(one.starts, one.columns, one.weights) for one in links]
        entities = self.columns.literal, self.columns.namesake, self.columns.about
        self.graph = WalkCall.prepare(rows, entities)

    def find_mentions(self, chunks: Ints, known: Ints, own: float) -> Triples:
        """See `WalkEdges`."""
        return self._find("find_mentions", chunks, known, (own,))

    def find_subjects(self, chunks: Ints, known: Ints, sure: float, common: int) -> Triples:
        """See `WalkEdges`."""
        return self._find("find_subjects", chunks, known, (sure, common))

    def take_hop(self, given: Mapping[str, Any], numbers: Mapping[str, float]) -> kernels.LedEdges:
        """Take one hop by arrays and numbers; `HopCall` says which."""
        places = {
            name: place_of(one) if isinstance(one, np.ndarray) else one
            for name, one in given.items()
        }
        while True:
            call = HopCall(**places, **numbers, room=self.room)
            found = self.compiled.take_hop(self.graph, call)
            if isinstance(found, kernels.LedEdges):
                return found
            self.room = 2 * found

    def _find(
        self, what: str, rows: Ints, known: Ints | None, numbers: tuple[float, ...]
    ) -> Triples:
        while True:
            room = self.room
            found, count = self.compiled.find_edges(what, self.graph, (rows, known), numbers, room)
            if count <= room:
                return found[0, :count], found[1, :count], found[2, :count]
            self.room = 2 * count


@dataclass(frozen=True, slots=True)
class PlainEdges:
    """Finds edges with numpy."""

    columns: WalkColumns

    def find_mentions(self, chunks: Ints, known: Ints, own: float) -> Triples:
        """See `WalkEdges`."""
        facts, members = self.columns.links["chunk_fact"], self.columns.links["fact_entity"]
        at, edge = facts.edges_of(chunks)
        stated = facts.columns[edge].astype(np.int64)
        which, member = members.edges_of(stated)
        row, fact = at[which], stated[which]
        entity = members.columns[member].astype(np.int64)
        # Role 0 is the subject, which is not a mention.
        keep = (members.weights[member] > 0) & self._can_follow(entity, known)
        keep &= ~self._is_own_name(chunks, row, entity, own)
        return row[keep], entity[keep], fact[keep]

    def find_subjects(self, chunks: Ints, known: Ints, sure: float, common: int) -> Triples:
        """See `WalkEdges`."""
        links, facts = self.columns.links["chunk_entity"], self.columns.links["entity_fact"]
        at, edge = links.edges_of(chunks)
        entity = links.columns[edge].astype(np.int64)
        passages = self.columns.links["entity_chunk"].degrees_of(entity)
        usable = (self.columns.about[edge] >= sure) & (passages > 1) & (passages <= common)
        usable &= self._can_follow(entity, known)
        at, entity = at[usable], entity[usable]
        which, edge = facts.edges_of(entity)
        named = facts.weights[edge] > 0
        which, edge = which[named], edge[named]
        return at[which], entity[which], facts.columns[edge].astype(np.int64)

    def find_hop(
        self, chunks: Ints, known: Ints, entities: Ints, sure: float, common: int
    ) -> HopEdges:
        """The edges out of chunks that mention `entities`; `known` and `sure` as above.

        Through facts only those lead on that are about an entity in 2 to `common` chunks.
        """
        inward, stating = self.find_subjects(chunks, known, sure, common), self.columns.links
        which, edge = stating["fact_chunk"].edges_of(inward[2])
        passages = stating["fact_chunk"].columns[edge].astype(np.int64)
        return HopEdges(
            self._find_owners(entities),
            self._find_co_mentions(entities, common),
            inward,
            (which, passages, inward[2][which]),
        )

    def _find_owners(self, entities: Ints) -> Triples:
        """Chunks about entities: index of the entity, chunk, edge among `owners`."""
        owners = self.columns.links["owners"]
        which, edge = owners.edges_of(entities)
        return which, owners.columns[edge].astype(np.int64), edge

    def _find_co_mentions(self, entities: Ints, common: int) -> Triples:
        """Facts with an entity that is in 2 to `common` chunks: its index, their chunk, fact."""
        facts, chunks = self.columns.links["entity_fact"], self.columns.links["fact_chunk"]
        passages = self.columns.links["entity_chunk"].degrees_of(entities)
        rare_enough = np.flatnonzero((passages > 1) & (passages <= common))
        which, edge = facts.edges_of(entities[rare_enough])
        stating = facts.columns[edge].astype(np.int64)
        place, where = chunks.edges_of(stating)
        found = chunks.columns[where].astype(np.int64)
        return rare_enough[which[place]], found, stating[place]

    def _can_follow(self, entity: Ints, known: Ints) -> Mask:
        named = isin_sorted(self.columns.namesake[entity], known)
        followable: Mask = ~self.columns.literal[entity] & ~named
        return followable

    def _is_own_name(self, chunks: Ints, row: Ints, entity: Ints, claim: float) -> Mask:
        """Mark other names of a chunk's subject: they lead to namesakes only."""
        links, count = self.columns.links["chunk_entity"], len(self.columns.namesake)
        at, edge = links.edges_of(chunks)
        own = self.columns.about[edge] >= claim
        names = np.sort(at[own] * count + links.columns[edge[own]])
        return isin_sorted(row * count + entity, names)
