from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.graph.cluster.relations import count_by_community, count_relations, jaccard_overlap
from clew.graph.csr import build_csr

SAID = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=40)


@given(SAID, st.sampled_from(["total", "mean", "set"]))
def test_overlap_is_the_jaccard_of_multisets(pairs: list[tuple[int, int]], profile: str) -> None:
    rows = np.array(pairs, np.int64).reshape(-1, 2)
    links = build_csr(6, rows[:, 0], rows[:, 1]).sum_duplicates()
    if profile == "set":
        links = replace(links, weights=np.ones_like(links.weights))
    own = np.zeros((6, 5))
    for row in range(6):
        own[row, links.row(row)] = links.row_weights(row)
    labels = np.arange(6) % 2
    theirs = np.array([own[labels == at].sum(axis=0) for at in range(2)])
    theirs = {"total": theirs, "mean": theirs / 3, "set": np.minimum(theirs, 1)}[profile]
    held = count_by_community(links, labels, 2, profile)
    for tables in (held, replace(held, table=None)):
        for community in range(2):
            found = jaccard_overlap(links, np.arange(6), tables, np.full(6, community))
            for row in range(6):
                least = np.linalg.norm(np.minimum(own[row], theirs[community]))
                most = np.linalg.norm(np.maximum(own[row], theirs[community]))
                share = least / most if most else 0.0
                assert found[row] == pytest.approx(share**2 if profile == "set" else share)


def test_a_relation_no_community_has_is_shared_with_none() -> None:
    known = build_csr(2, np.array([0, 1]), np.array([0, 0]))
    asker = build_csr(1, np.array([0]), np.array([7]))
    held = count_by_community(known, np.array([0, 1]), 2, "total")
    for tables in (held, replace(held, table=None)):
        assert jaccard_overlap(asker, np.zeros(2, np.int64), tables, np.arange(2)).tolist() == [
            0,
            0,
        ]


def test_ties_count_relations_once_a_fact_and_forget_unnamed_ones() -> None:
    # Fact 0: 0-1 by r2, twice the same pair in fact 1; fact 2 has no relation; fact 3 is a loop.
    members = build_csr(4, np.array([0, 0, 1, 1, 2, 2, 3, 3]), np.array([0, 1, 1, 0, 1, 2, 2, 2]))
    ties = count_relations(members, 4, np.array([2, 2, -1, 0]))
    assert ties.relations.row(0).tolist() == [2]
    assert ties.relations.row_weights(0).tolist() == [2]
    assert ties.relations.row(2).tolist() == [0]
    assert ties.relations.row_weights(2).tolist() == [1]
    assert [ties.neighbours.row(at).tolist() for at in range(4)] == [[1], [0, 2], [1], []]
    assert (ties.neighbours.weights == 1).all()
    assert len(count_relations(members, 4).relations.columns) == 0
