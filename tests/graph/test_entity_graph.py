"""Entities joined by facts.

Like vectors, exactly and by pivots.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.graph import entity_graph as room
from clew.graph.csr import build_csr
from clew.graph.entity_graph import build_entity_graph, find_synonym_edges


def facts(*members: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    pairs = [(fact, member) for fact, some in enumerate(members) for member in some]
    return tuple(np.array(pairs, np.int64).reshape(-1, 2).T)


def test_members_are_joined_in_both_directions_and_share_a_weight_of_one() -> None:
    found = build_entity_graph(build_csr(1, *facts((0, 1, 2))), 3)
    assert found.links.row(0).tolist() == [1, 2]
    assert found.links.row_weights(0).tolist() == [0.5, 0.5]
    assert found.facts.tolist() == [0] * 6


def test_parallel_facts_stay_parallel_until_they_are_merged() -> None:
    found = build_entity_graph(build_csr(2, *facts((0, 1), (1, 0))), 2)
    assert found.links.row(0).tolist() == [1, 1]
    assert sorted(found.facts[:2].tolist()) == [0, 1]
    assert found.links.sum_duplicates().row(0).tolist() == [1]
    assert found.links.sum_duplicates().row_weights(0).tolist() == [2.0]


def test_a_long_fact_joins_its_first_member_with_the_others() -> None:
    found = build_entity_graph(build_csr(1, *facts((0, 1, 2, 3))), 4, longest=3)
    assert found.links.row(0).tolist() == [1, 2, 3]
    assert found.links.row(2).tolist() == [0]


@given(st.lists(st.lists(st.integers(0, 8), max_size=6), max_size=8))
def test_every_edge_has_its_way_back(members: list[list[int]]) -> None:
    found = build_entity_graph(build_csr(len(members), *facts(*map(tuple, members))), 9, longest=4)
    source = np.repeat(np.arange(9), found.links.degrees())
    there = sorted(zip(source.tolist(), found.links.columns.tolist(), found.facts, strict=True))
    back = sorted(zip(found.links.columns.tolist(), source.tolist(), found.facts, strict=True))
    assert there == back
    assert all(one != other for one, other, _ in there)


def unit(*angles: float) -> np.ndarray:
    return np.array([[np.cos(a), np.sin(a)] for a in np.radians(angles)], np.float32)


def test_pairs_above_the_threshold_are_joined_both_ways_by_their_cosine() -> None:
    found = find_synonym_edges(unit(0, 30, 90), 0.8, 10)
    assert [found.row(at).tolist() for at in range(3)] == [[1], [0], []]
    assert found.row_weights(0) == pytest.approx([np.cos(np.radians(30))])


def test_only_the_nearest_are_kept_but_both_ends_know_of_them() -> None:
    found = find_synonym_edges(unit(0, 1, 3, 6), 0.8, 1)
    # 3 keeps 2, 2 keeps 1 (or is kept by 3), 0 and 1 keep each other.
    assert [found.row(at).tolist() for at in range(4)] == [[1], [0, 2], [1, 3], [2]]


def test_nothing_is_alike_to_itself_and_nothing_needs_nothing() -> None:
    assert len(find_synonym_edges(unit(0), 0.8, 5).columns) == 0
    assert len(find_synonym_edges(np.zeros((0, 4), np.float32), 0.8, 5)) == 0


def test_pivots_find_nearly_all_that_comparing_all_with_all_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(3)
    centres = random.standard_normal((300, 32))
    vectors = np.repeat(centres, 5, axis=0) + random.standard_normal((1500, 32)) * 0.3
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    exact = find_synonym_edges(vectors, 0.8, 10)
    monkeypatch.setattr(room, "EXACT", 100)
    monkeypatch.setattr(room, "PER_CELL", 30)
    near = find_synonym_edges(vectors, 0.8, 10)
    assert len(near.columns) > 0.97 * len(exact.columns) > 1000
