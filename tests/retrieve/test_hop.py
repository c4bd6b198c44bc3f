"""One hop of the walk: compiled loops and numpy find the same, and compare the same facts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import numpy as np
import pytest

from clew import kernels
from clew.graph.csr import Csr, Floats, Ints, build_csr
from clew.graph.walk_edges import CompiledEdges, PlainEdges, WalkColumns, WalkEdges
from clew.index.cosines import RowCosines
from clew.index.estimates import Estimates, compare_nearest
from clew.index.view import View
from clew.retrieve.facts import SentenceFits, compare_chunks
from clew.retrieve.hop import HopWeights, take_hop
from clew.retrieve.mentions import NO_FACT, Mentions, WalkHop
from clew.store.sign_bits import make_sign_bits

CHUNKS, FACTS, ENTITIES = 60, 200, 80
WEIGHTS = HopWeights(4.0, 2.0, 0.45, 0.5, 0.4, 0.7, common=5)


@dataclass
class GraphView:
    """As much of a view as a hop asks for."""

    walk_edges: WalkEdges
    rarity: Floats
    memo: dict[str, Floats] = field(default_factory=dict)

    def links(self, name: str) -> Csr:
        return self.walk_edges.columns.links[name]

    def keep_once(self, name: str, make: Callable[[], Floats]) -> Floats:
        return self.memo.setdefault(name, make())


def random_csr(numbers: np.random.Generator, rows: int, columns: int, edges: int) -> Csr:
    source, target = numbers.integers(0, rows, edges), numbers.integers(0, columns, edges)
    return build_csr(rows, source, target, numbers.integers(1, 3, edges).astype(np.float32))


@pytest.fixture
def columns() -> WalkColumns:
    numbers = np.random.default_rng(3)
    sizes = ((CHUNKS, FACTS, 240), (FACTS, ENTITIES, 300), (CHUNKS, ENTITIES, 300))
    chunk_fact, fact_entity, chunk_entity = (random_csr(numbers, *one) for one in sizes)
    links = {
        "chunk_fact": chunk_fact,
        "fact_chunk": chunk_fact.transpose(FACTS),
        "fact_entity": fact_entity,
        "entity_fact": fact_entity.transpose(ENTITIES),
        "chunk_entity": chunk_entity,
        "entity_chunk": chunk_entity.transpose(ENTITIES),
        "owners": random_csr(numbers, ENTITIES, CHUNKS, 90),
    }
    about = numbers.random(len(chunk_entity.columns)).astype(np.float32)
    namesake = np.minimum(np.arange(ENTITIES), numbers.integers(0, ENTITIES, ENTITIES))
    return WalkColumns(links, numbers.random(ENTITIES) < 0.2, namesake, about)


def make_fits(columns: WalkColumns, *, facts_known: bool, chunks_known: bool) -> SentenceFits:
    """How well everything fits; what is not known is compared when it is asked for."""
    vectors = np.random.default_rng(4).standard_normal((FACTS, 96)).astype(np.float16)
    target = vectors[7].astype(np.float32)

    def estimate(rows: Ints, *, known: bool) -> Estimates:
        compare = RowCosines(vectors, rows, target)
        if known:
            return Estimates(compare(np.arange(len(rows))))
        return compare_nearest(make_sign_bits(vectors), rows, target, 15, compare)

    facts = estimate(np.arange(FACTS), known=facts_known)
    whole = estimate(np.arange(CHUNKS), known=chunks_known)
    compare = partial(compare_chunks, columns.links["chunk_fact"], facts, whole)
    fit = np.maximum(whole.values, 0)
    if facts_known and chunks_known:
        return SentenceFits(facts, Estimates(compare(np.arange(CHUNKS))), whole)
    return SentenceFits(facts, Estimates(fit, np.zeros(CHUNKS, np.bool_), compare), whole)


def view_of(edges: WalkEdges, rarity: Floats) -> View:
    return cast(View, GraphView(edges, rarity))


def take(edges: WalkEdges, fits: SentenceFits, known: Ints) -> WalkHop:
    """Take a hop out of three chunks with mentions in facts and others."""
    numbers, rows = np.random.default_rng(5), np.array([3, 17, 59])
    view = view_of(edges, numbers.random(ENTITIES).astype(np.float32))
    weights = numbers.random(CHUNKS).astype(np.float32)
    stated = Mentions(*PlainEdges(edges.columns).find_mentions(rows, known, 0.45))
    unstated = Mentions(np.array([0, 2]), np.array([8, 31]), np.full(2, NO_FACT))
    return take_hop(view, WEIGHTS, (rows, weights), (stated, unstated, known), fits)


@pytest.mark.parametrize("known", [(True, True), (False, True), (False, False)])
def test_a_hop_without_kernels_is_the_same(columns: WalkColumns, known: tuple[bool, bool]) -> None:
    compiled = kernels.COMPILED
    if compiled is None:
        pytest.skip("no compiled kernels")
    quick, plain = CompiledEdges(columns, compiled), PlainEdges(columns)
    quick.room = 2  # there is more than fits at first
    for names in (np.zeros(0, np.int64), np.unique(columns.namesake[::6])):
        fits = [make_fits(columns, facts_known=known[0], chunks_known=known[1]) for _ in range(2)]
        found, expected = take(quick, fits[0], names), take(plain, fits[1], names)
        np.testing.assert_allclose(found.weight, expected.weight, rtol=1e-6)
        there = np.flatnonzero(expected.weight)
        assert len(there) > 10
        for name in ("chunks", "entity", "fact", "origin"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        np.testing.assert_array_equal(found.via[there], expected.via[there])
        for one, other in zip(
            (fits[0].facts, fits[0].whole), (fits[1].facts, fits[1].whole), strict=True
        ):
            np.testing.assert_array_equal(one.find_known(), other.find_known())
            np.testing.assert_allclose(one.values, other.values, atol=1.1e-5)
        np.testing.assert_allclose(fits[0].chunks.values, fits[1].chunks.values, atol=1.1e-5)


def test_a_hop_by_facts_that_are_not_there_is_refused(columns: WalkColumns) -> None:
    if kernels.COMPILED is None:
        pytest.skip("no compiled kernels")
    edges = CompiledEdges(columns, kernels.COMPILED)
    fits = make_fits(columns, facts_known=False, chunks_known=True)
    lost = Mentions(np.array([0]), np.array([8]), np.array([FACTS]))
    none = Mentions(*np.zeros((3, 0), np.int64))
    start = np.array([3]), np.ones(CHUNKS, np.float32)
    view = view_of(edges, np.ones(ENTITIES, np.float32))
    with pytest.raises(IndexError, match="outside"):
        take_hop(view, WEIGHTS, start, (lost, none, np.zeros(0, np.int64)), fits)
