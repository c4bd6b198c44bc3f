from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from clew.graph.cluster.dual import (
    BALANCED,
    PAPER,
    RELEASED,
    DualOptions,
    assign_communities,
    build_profiles,
    compute_affinities,
    compute_gaps,
    find_communities,
)
from clew.graph.cluster.hierarchy import HierarchyLimits, build_hierarchy
from clew.graph.cluster.kmeans import cluster_count
from clew.graph.cluster.relations import EntityRelations, build_entity_links, count_relations
from clew.graph.cluster.vectors import entity_vectors
from clew.graph.csr import build_csr

PRESETS = st.sampled_from([PAPER, BALANCED, RELEASED])
TRIPLE = st.tuples(st.integers(0, 40), st.integers(0, 3), st.integers(0, 40))
TRIPLES = st.lists(TRIPLE, max_size=80)


def graph(
    entities: int, triples: list[tuple[int, int, int]], seed: int = 0
) -> tuple[NDArray[np.float32], EntityRelations]:
    """Entity vectors and ties of triples; a fact's vector is its relation's, and noise."""
    rows = np.array(triples, np.int64).reshape(-1, 3)
    fact = np.arange(len(rows))
    members = build_csr(
        len(rows), np.concatenate([fact, fact]), np.concatenate([rows[:, 0], rows[:, 2]])
    )
    rng = np.random.default_rng(seed)
    kinds = rng.standard_normal((4, 16), np.float32)
    said = kinds[rows[:, 1]] + 0.3 * rng.standard_normal((len(rows), 16), np.float32)
    present = np.ones(len(said), np.bool_)
    vectors = entity_vectors(members, entities, 16, lambda at: (said[at], present[at]))
    return vectors, count_relations(members, entities, rows[:, 1])


def same_groups(one: NDArray[np.int64], other: NDArray[np.int64]) -> bool:
    pairs = len(set(zip(one.tolist(), other.tolist(), strict=True)))
    return pairs == len(set(one.tolist())) == len(set(other.tolist()))


@settings(max_examples=20, deadline=None)  # the machine may be busy
@given(TRIPLES, PRESETS)
def test_no_entity_is_lost_and_labels_have_no_gaps(
    triples: list[tuple[int, int, int]], how: DualOptions
) -> None:
    vectors, ties = graph(41, triples)
    found = find_communities(vectors, ties, how)
    assert sorted(set(found.labels.tolist())) == list(range(len(found.centres)))
    assert found.labels[found.centres].tolist() == list(range(len(found.centres)))
    assert len(found.labels) == len(found.scores) == 41
    again = find_communities(vectors, ties, how)
    assert found.labels.tolist() == again.labels.tolist()
    assert found.scores.tolist() == again.scores.tolist()
    assert found.merges == again.merges


@settings(max_examples=20, deadline=None)  # the machine may be busy
@given(TRIPLES, PRESETS)
def test_the_merges_lead_from_the_start_to_the_communities(
    triples: list[tuple[int, int, int]], how: DualOptions
) -> None:
    found = find_communities(*graph(41, triples), how)
    now = found.start.copy()
    for merge in found.merges:
        assert merge.kept in now
        assert merge.gone in now
        now[now == merge.gone] = merge.kept
    assert same_groups(now, found.labels)


@settings(max_examples=20, deadline=None)  # the machine may be busy
@given(TRIPLES, st.randoms(use_true_random=False), PRESETS)
def test_shuffled_entities_give_the_same_communities(
    triples: list[tuple[int, int, int]], random: object, how: DualOptions
) -> None:
    vectors, ties = graph(41, triples)
    shuffled = list(range(41))
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    order = np.array(shuffled)
    to = np.argsort(order)
    near = build_csr(
        41, to[np.repeat(np.arange(41), ties.neighbours.degrees())], to[ties.neighbours.columns]
    )
    moved = EntityRelations(ties.select(order).relations, near)
    # Merging compares sums whose last bits depend on the order; the start does not.
    one = find_communities(vectors, ties, replace(how, max_iterations=0))
    other = find_communities(vectors[order], moved, replace(how, max_iterations=0))
    assert same_groups(one.labels[order], other.labels)


@settings(max_examples=20, deadline=None)  # the machine may be busy
@given(TRIPLES, PRESETS, st.integers(2, 20))
def test_a_grown_tree_holds_every_entity_once_on_every_level(
    triples: list[tuple[int, int, int]], how: DualOptions, size: int
) -> None:
    vectors, ties = graph(41, triples)
    grown = build_hierarchy(vectors, ties, how, HierarchyLimits(max_size=size))
    tree = grown.tree
    assert set(tree.leaf.tolist()) <= set(range(len(tree.parent)))
    assert len(grown.centres) == len(tree.level)
    for level in range(tree.depth):
        labels = tree.labels_at(level)
        assert (labels >= 0).all()
        assert (tree.level[labels] <= level).all()
        if level:
            above = tree.labels_at(level - 1)
            lower = tree.level[labels] == level
            assert (tree.parent[labels[lower]] == above[lower]).all()
    top = np.bincount(tree.labels_at(0))
    assert len(top) == 1 or top.min() >= 3 or top.max() < 3
    inner = np.unique(tree.parent[tree.parent >= 0])
    assert not np.isin(tree.leaf, inner).any()
    assert (tree.level[inner] + 1 == [tree.level[tree.parent == at][0] for at in inner]).all()
    for community, centre in enumerate(grown.centres):
        assert tree.labels_at(int(tree.level[community]))[centre] == community


def test_scores_are_those_of_the_paper() -> None:
    # a: {r0, r0, r1}; b: {r0}; their community: {r0: 3, r1: 1}.
    ties = EntityRelations(
        build_csr(2, np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([2, 1, 1], np.float32)),
        build_csr(2, np.array([0, 1]), np.array([1, 0])),
    )
    vectors = np.array([[2, 0], [0, 2]], np.float32)
    scores, centres = compute_affinities(vectors, ties, np.zeros(2, np.int64), PAPER)
    cosine = np.sqrt(0.5)
    assert scores[0] == pytest.approx(np.sqrt(5 / 10) + cosine)
    assert scores[1] == pytest.approx(np.sqrt(1 / 10) + cosine)
    assert centres.tolist() == [0]
    # Of the two neighbours in the community's set each has one.
    released, _ = compute_affinities(vectors, ties, np.zeros(2, np.int64), RELEASED)
    assert released.tolist() == pytest.approx([0.3 * 0.5 + 0.7 * cosine] * 2)


@settings(max_examples=20, deadline=None)  # the machine may be busy
@given(TRIPLES, st.integers(0, 5))
def test_gaps_equal_those_computed_one_by_one(
    triples: list[tuple[int, int, int]], seed: int
) -> None:
    vectors, ties = graph(41, triples, seed)
    labels = np.arange(41) % 3
    scene = build_profiles(vectors, ties, labels, BALANCED)
    one, other = np.array([0, 0, 1]), np.array([1, 2, 2])
    found = compute_gaps(scene, labels, one, other)

    def fit(home: int, community: int) -> float:
        rows = np.flatnonzero(labels == home)
        to = np.full(len(rows), community)
        return float(np.mean(scene.relational_score(rows, to) + scene.semantic_score(rows, to)))

    for at, (a, b) in enumerate(zip(one.tolist(), other.tolist(), strict=True)):
        wanted = max(fit(a, a) - fit(a, b), fit(b, b) - fit(b, a))
        assert found[at] == pytest.approx(wanted, abs=1e-5)


def test_communities_that_cannot_be_told_apart_merge() -> None:
    # Two relations whose facts are far apart, k-means starts with more clusters than that.
    triples = [(at, 0, at + 20) for at in range(20)] + [(at, 1, at + 20) for at in range(40, 60)]
    vectors, ties = graph(80, triples)
    found = find_communities(vectors, ties, replace(BALANCED, threshold=0.5))
    assert len(set(found.start.tolist())) > 2
    assert len(found.centres) == 2
    assert len(set(found.labels[:40].tolist())) == 1
    assert found.labels[0] != found.labels[79]


def test_no_merge_exceeds_the_size_bound() -> None:
    triples = [(at, 0, (at * 7 + 1) % 300) for at in range(300)]
    vectors, ties = graph(300, triples)
    eager = replace(RELEASED, threshold=-1.0, max_size=40)
    found = find_communities(vectors, ties, eager)
    assert found.merges
    started = np.bincount(found.start).max()
    assert np.bincount(found.labels).max() <= max(40, started)


def test_new_entities_are_placed_where_they_fit_best() -> None:
    triples = [(at, 0, at + 20) for at in range(20)] + [(at, 1, at + 20) for at in range(40, 60)]
    vectors, ties = graph(80, triples)
    labels = np.repeat([0, 1], 40)
    hidden = labels.copy()
    hidden[[3, 30, 50, 79]] = -1
    assert assign_communities(vectors, ties, hidden).tolist() == labels.tolist()
    assert assign_communities(vectors, ties, np.full(80, -1)).tolist() == [0] * 80


@pytest.mark.parametrize("how", [PAPER, BALANCED, RELEASED])
@pytest.mark.parametrize("entities", [0, 1, 2, 3])
def test_tiny_graphs(how: DualOptions, entities: int) -> None:
    vectors, ties = graph(entities, [])
    found = find_communities(vectors, ties, how)
    assert found.labels.tolist() == [0] * entities
    assert build_hierarchy(vectors, ties, how).tree.leaf.tolist() == [0] * entities


@pytest.mark.parametrize("how", [PAPER, RELEASED])
def test_dust_and_identical_vectors_stay_together(how: DualOptions) -> None:
    for vectors in (np.zeros((500, 8), np.float32), np.ones((500, 8), np.float32)):
        found = build_hierarchy(vectors, graph(500, [])[1], how)
        assert found.tree.leaf.tolist() == [0] * 500
        assert np.isfinite(found.scores).all()


@pytest.mark.parametrize("how", [pytest.param(PAPER, marks=pytest.mark.slow), RELEASED])
def test_a_star_of_many_leaves_is_no_harder(how: DualOptions) -> None:
    leaves = 50_000  # squared, more than there is memory for
    triples = [(0, at % 4, at) for at in range(1, leaves + 1)]
    vectors, ties = graph(leaves + 1, triples)
    found = find_communities(vectors, ties, how)
    assert len(found.labels) == leaves + 1
    assert len(found.centres) <= cluster_count(leaves)


def test_facts_of_many_participants_tie_them_to_the_first() -> None:
    members = build_csr(2, np.repeat([0, 1], [3, 50]), np.concatenate([[1, 2, 3], np.arange(50)]))
    one, other, weight = build_entity_links(members)
    found = {(int(a), int(b)): float(w) for a, b, w in zip(one, other, weight, strict=True)}
    assert found == {(0, at): 1.0 for at in range(1, 50)} | {(1, 2): 1, (1, 3): 1, (2, 3): 1}
