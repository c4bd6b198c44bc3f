"""Entities joined by facts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew.graph.csr import build_csr
from clew.graph.entity_graph import build_entity_graph


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
