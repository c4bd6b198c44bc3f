"""Sentences as relations, and trees that are tended instead of grown afresh."""

from dataclasses import replace

import numpy as np
import pytest
from bench.cluster_quality import silhouette
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from clew.graph.cluster.dual import BALANCED
from clew.graph.cluster.hierarchy import (
    Hierarchy,
    HierarchyLimits,
    HierarchyState,
    ScoredHierarchy,
    build_hierarchy,
    community_means,
    update_hierarchy,
)
from clew.graph.cluster.leiden import leiden_communities
from clew.graph.cluster.relations import (
    EntityRelations,
    build_entity_links,
    count_relations,
    count_relations_with_fallback,
)
from clew.graph.cluster.vectors import add_rows, relabel_by_size
from clew.graph.csr import Csr, build_csr

SUBJECT, MEMBER = 0, 1


def facts(*members: list[tuple[int, int]]) -> Csr:
    """Facts as lists of (entity, role)."""
    fact = [at for at, some in enumerate(members) for _ in some]
    flat = [one for some in members for one in some]
    who, role = np.array(flat, np.int64).reshape(-1, 2).T
    return build_csr(len(members), np.array(fact, np.int64), who, role.astype(np.float32))


def test_a_relation_counts_for_all_its_participants() -> None:
    members = facts([(0, MEMBER), (1, MEMBER)], [(0, MEMBER), (2, MEMBER)])
    found = count_relations_with_fallback(
        members, 3, np.array([4, 4]), np.array([0, 0, 0])
    ).relations
    assert found.columns.tolist() == [4, 4, 4]
    assert found.weights.tolist() == [2, 1, 1]


def test_in_a_sentence_roles_and_neighbouring_types_stand_for_relations() -> None:
    # Entities 0 and 1 are people (type 0), 2 is a date (type 1), 3 has no type.
    types = np.array([0, 0, 1, -1])
    members = facts([(0, SUBJECT), (2, MEMBER)], [(1, SUBJECT), (2, MEMBER), (3, MEMBER)])
    found = count_relations_with_fallback(members, 4, np.array([-1, -1]), types).relations
    rows = [dict(zip(found.row(e).tolist(), found.row_weights(e), strict=True)) for e in range(4)]
    beside = {"date": SUBJECT * 3 + 1, "untyped": SUBJECT * 3 + 2}
    assert rows[0] == {beside["date"]: 1}
    assert rows[1] == {beside["date"]: 1, beside["untyped"]: 1}
    # The date is a member beside two people (one a fact) and something untyped.
    assert rows[2] == {MEMBER * 3 + 0: 2, MEMBER * 3 + 2: 1}
    assert rows[3] == {MEMBER * 3 + 0: 1, MEMBER * 3 + 1: 1}


def test_relations_and_sentences_do_not_share_columns() -> None:
    members = facts([(0, MEMBER), (1, MEMBER)], [(0, SUBJECT), (1, MEMBER)])
    found = count_relations_with_fallback(members, 2, np.array([0, -1]), np.array([0, 0])).relations
    assert sorted(found.row(0).tolist()) == [0, 1]  # relation 0, then subject beside type 0
    assert sorted(found.row(1).tolist()) == [0, 3]  # relation 0, then member beside type 0


def topics(count: int, groups: int, seed: int = 0) -> tuple[NDArray[np.float32], EntityRelations]:
    """Entities around a few directions, each group with its own relation."""
    rng = np.random.default_rng(seed)
    group = np.arange(count) % groups
    middle = rng.standard_normal((groups, 24)).astype(np.float32) * 3
    vectors = middle[group] + rng.standard_normal((count, 24)).astype(np.float32)
    pairs = np.stack([np.arange(count), (np.arange(count) + groups) % count], axis=1)
    members = build_csr(count, np.repeat(np.arange(count), 2), pairs.ravel())
    return vectors.astype(np.float32), count_relations(members, count, group)


BOUNDS = HierarchyLimits(max_size=30, min_size=3)


def kept_up(
    vectors: NDArray[np.float32], ties: EntityRelations, old: ScoredHierarchy, lost: list[int]
) -> tuple[ScoredHierarchy, Hierarchy]:
    """Tend a tree that has lost the place of some entities."""
    leaf = old.tree.leaf.copy()
    leaf[lost] = -1
    held = HierarchyState(
        replace(old, tree=replace(old.tree, leaf=leaf)), community_means(vectors, old.tree)
    )
    now = update_hierarchy(lambda at: vectors[at], ties, held, BALANCED, BOUNDS)
    assert now.middles.shape == (len(now.scored.tree.parent), vectors.shape[1])
    return now.scored, now.scored.tree


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 120), st.integers(1, 6), st.data())
def test_after_tending_every_entity_is_in_one_leaf(
    count: int, groups: int, data: st.DataObject
) -> None:
    vectors, ties = topics(count, groups)
    old = build_hierarchy(vectors, ties, BALANCED, BOUNDS)
    lost = data.draw(st.sets(st.integers(0, count - 1)))
    now, tree = kept_up(vectors, ties, old, list(lost))
    assert ((tree.leaf >= 0) & (tree.leaf < len(tree.parent))).all()
    assert (tree.parent < np.arange(len(tree.parent))).all()
    ends = ~np.isin(np.arange(len(tree.parent)), tree.parent)
    assert ends[tree.leaf].all()
    assert sorted(set(tree.leaf.tolist())) == np.flatnonzero(ends).tolist()
    assert len(now.centres) == len(tree.parent)
    assert np.isfinite(now.scores).all()


def test_where_nothing_is_new_nothing_moves() -> None:
    vectors, ties = topics(120, 4)
    old = build_hierarchy(vectors, ties, BALANCED, BOUNDS)
    now, _ = kept_up(vectors, ties, old, [])
    assert now.tree.leaf.tolist() == old.tree.leaf.tolist()
    assert now.tree.parent.tolist() == old.tree.parent.tolist()


def test_a_leaf_that_grows_too_large_is_split() -> None:
    vectors, ties = topics(200, 2)
    leaf = np.where(np.arange(200) < 40, np.arange(200) % 2, -1)
    middles = np.stack([vectors[:40][leaf[:40] == at].mean(axis=0) for at in (0, 1)])
    tree = Hierarchy(leaf, np.array([-1, -1]), np.array([0, 0]))
    old = ScoredHierarchy(tree, np.array([0, 1]), np.zeros(200, np.float32))
    held = HierarchyState(old, middles)
    now = update_hierarchy(lambda at: vectors[at], ties, held, BALANCED, BOUNDS).scored.tree
    assert now.depth == 2
    assert np.bincount(now.leaf).max() <= BOUNDS.max_size
    top = now.labels_at(0)
    assert all(len(set(top[np.arange(200) % 2 == g].tolist())) == 1 for g in (0, 1))


def test_tended_and_regrown_trees_are_equally_good() -> None:
    """The stated tolerance: silhouette of the leaves within 0.05, as many leaves within a half."""
    vectors, ties = topics(600, 8)
    some = np.arange(540)
    start = build_hierarchy(vectors[some], ties.select(some), BALANCED, BOUNDS)
    leaf = np.concatenate([start.tree.leaf, np.full(60, -1)])
    wide = ScoredHierarchy(
        replace(start.tree, leaf=leaf), start.centres, np.resize(start.scores, 600)
    )
    before = HierarchyState(wide, community_means(vectors[some], start.tree))
    held = update_hierarchy(lambda at: vectors[at], ties, before, BALANCED, BOUNDS).scored.tree
    fresh = build_hierarchy(vectors, ties, BALANCED, BOUNDS).tree
    good = [silhouette(vectors, relabel_by_size(tree.leaf)) for tree in (held, fresh)]
    assert abs(good[0] - good[1]) < 0.05
    leaves = [len(set(tree.leaf.tolist())) for tree in (held, fresh)]
    assert 0.5 < leaves[0] / leaves[1] < 1.5


@pytest.mark.parametrize("leaves", [5000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_star_has_a_valid_tree(leaves: int) -> None:
    pairs = np.stack([np.zeros(leaves, np.int64), np.arange(1, leaves + 1)], axis=1)
    members = build_csr(leaves, np.repeat(np.arange(leaves), 2), pairs.ravel())
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((leaves + 1, 4)).astype(np.float32)
    ties = count_relations_with_fallback(
        members, leaves + 1, np.zeros(leaves, np.int64), np.full(leaves + 1, -1)
    )
    tree = build_hierarchy(vectors, ties, BALANCED).tree
    assert (tree.leaf >= 0).all()
    assert np.bincount(tree.leaf).max() <= 100
    one, other, weight = build_entity_links(members)
    assert (leiden_communities(leaves + 1, (one, other, weight)).leaf >= 0).all()


def test_dust_has_a_valid_tree() -> None:
    """No fact joins anything: meaning alone decides, and links make everyone a community."""
    vectors = np.random.default_rng(4).standard_normal((2000, 8)).astype(np.float32)
    members = build_csr(0, np.zeros(0, np.int64), np.zeros(0, np.int64))
    none = np.zeros(0, np.int64)
    ties = count_relations_with_fallback(members, 2000, none, np.full(2000, -1))
    tree = build_hierarchy(vectors, ties, BALANCED).tree
    assert (tree.leaf >= 0).all()
    alone = leiden_communities(2000, (none, none, np.zeros(0, np.float32)))
    assert len(set(alone.leaf.tolist())) == 2000


@given(st.lists(st.integers(0, 6), max_size=60), st.integers(0, 2**32 - 1))
def test_rows_are_added_to_whom_they_belong(to: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = np.sort(np.array(to, np.int64))
    rows = rng.standard_normal((20, 3)).astype(np.float32)
    at = rng.integers(20, size=len(target))
    sums = np.zeros((7, 3))
    add_rows(sums, target, rows, at)
    expected = np.zeros((7, 3))
    np.add.at(expected, target, rows[at])
    assert np.allclose(sums, expected, atol=1e-5)
