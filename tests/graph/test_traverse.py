"""Stepping through facts: direction, n-ary facts, subgraphs, hubs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.graph import traverse as trails
from clew.graph.csr import build_csr, isin_sorted
from clew.graph.paths import follow_codes, shortest_paths, simple_paths
from clew.graph.traverse import (
    FactGraph,
    expand_entities,
    extend_relation_paths,
    stack_relation_paths,
    start_relation_paths,
)

MEMBER, HEAD, TAIL = 1, 2, 3


def ways(entities: int, facts: list[tuple[int, list[tuple[int, int]]]], names: int) -> FactGraph:
    """Facts as (label, [(entity, role), …])."""
    fact = np.array([at for at, (_, members) in enumerate(facts) for _ in members], np.int64)
    entity = np.array([e for _, members in facts for e, _ in members], np.int64)
    role = np.array([r for _, members in facts for _, r in members], np.float32)
    labels = np.array([label for label, _ in facts], np.int32)
    return FactGraph(
        build_csr(entities, entity, fact, role),
        build_csr(len(facts), fact, entity, role),
        labels,
        names,
    )


def triples(entities: int, rows: list[tuple[int, int, int]], names: int) -> FactGraph:
    return ways(entities, [(r, [(h, HEAD), (t, TAIL)]) for h, r, t in rows], names)


# 0 and 1 are films of director 3; 2 is a film of director 4; 5 acts in 0 and 2; 6 is a year.
FILMS = triples(7, [(0, 0, 3), (1, 0, 3), (2, 0, 4), (0, 1, 5), (2, 1, 5), (1, 2, 6)], 3)
DIRECTED, STARRED, YEAR = 0, 2, 4
BACK = 1


def test_a_step_knows_its_direction() -> None:
    edges = expand_entities(FILMS, np.array([3]))
    assert sorted(zip(edges.target.tolist(), edges.code.tolist(), strict=True)) == [
        (0, DIRECTED + BACK),
        (1, DIRECTED + BACK),
    ]
    assert sorted(expand_entities(FILMS, np.array([0])).code.tolist()) == [DIRECTED, STARRED]


def test_a_fact_without_relation_joins_all_its_members_and_has_no_direction() -> None:
    graph = ways(4, [(-1, [(0, MEMBER), (1, MEMBER), (2, MEMBER)]), (0, [(2, HEAD), (3, TAIL)])], 1)
    edges = expand_entities(graph, np.array([1]))
    assert sorted(edges.target.tolist()) == [0, 2]
    assert set(edges.code.tolist()) == {2 * 1}
    assert graph.fact_of_code(edges.code).tolist() == [0, 0]
    assert graph.fact_of_code(np.array([0, 1])).tolist() == [-1, -1]


def test_a_subgraph_hides_other_facts_and_a_loop_leads_to_itself_both_ways() -> None:
    graph = triples(3, [(0, 0, 0), (0, 0, 1), (0, 1, 2)], 2)
    edges = expand_entities(graph, np.array([0]))
    assert sorted(edges.target.tolist()) == [0, 0, 1, 2]
    assert sorted(edges.code[edges.target == 0].tolist()) == [0, 1]
    part = FactGraph(graph.facts, graph.members, graph.labels, graph.relation_count, np.array([2]))
    assert expand_entities(part, np.array([0])).target.tolist() == [2]


def test_trails_lead_to_all_that_a_relation_path_reaches_but_not_back() -> None:
    trails = extend_relation_paths(
        FILMS, extend_relation_paths(FILMS, start_relation_paths(np.array([0])))
    )
    reached = {
        tuple(codes): trails.ends_of(at).tolist() for at, codes in enumerate(trails.codes.tolist())
    }
    assert reached == {(DIRECTED, DIRECTED + BACK): [1], (STARRED, STARRED + BACK): [2]}


def test_trails_of_several_lengths_are_stacked_in_one_table() -> None:
    one = extend_relation_paths(FILMS, start_relation_paths(np.array([0])))
    codes, part, row = stack_relation_paths([one, extend_relation_paths(FILMS, one)])
    assert codes.shape == (4, 2) and part.tolist() == [0, 0, 1, 1] and row.tolist() == [0, 1, 0, 1]
    assert (codes[:2, 1] == -1).all()
    assert stack_relation_paths([])[0].shape == (0, 0)


def test_paths_along_codes_are_simple() -> None:
    routes = follow_codes(FILMS, 0, np.array([DIRECTED, DIRECTED + BACK, YEAR]))
    assert routes.entities.tolist() == [[0, 3, 1, 6]]
    assert len(follow_codes(FILMS, 6, np.array([YEAR]))) == 0


def test_parallel_relations_between_two_entities_all_survive() -> None:
    graph = triples(3, [(0, 0, 1), (0, 1, 1), (1, 0, 2), (0, 0, 1)], 2)
    first, second = shortest_paths(graph, 0, 4)
    assert sorted(first.facts[:, 0].tolist()) == [0, 1, 3]
    assert len(second) == 3 and set(second.entities[:, -1].tolist()) == {2}


def test_shortest_paths_are_shorter_than_other_simple_ones() -> None:
    square = triples(4, [(0, 0, 1), (1, 0, 2), (0, 0, 2), (2, 0, 3)], 1)
    ends = [set(routes.entities[:, -1].tolist()) for routes in shortest_paths(square, 0, 4)]
    assert ends == [{1, 2}, {3}]
    lengths = [len(routes) for routes in simple_paths(square, 0, 4)]
    # 0-1, 0-2; 0-1-2, 0-2-1, 0-2-3; 0-1-2-3
    assert lengths == [2, 3, 1]


def test_a_hub_with_a_million_neighbours_is_bounded_and_keeps_its_rare_relation() -> None:
    count = 1_000_000
    head = np.zeros(count + 1, np.int64)
    tail = np.arange(1, count + 2)
    fact = np.arange(count + 1)
    roles = np.repeat(np.array([HEAD, TAIL], np.float32), count + 1)
    entity, which = np.concatenate([head, tail]), np.concatenate([fact, fact])
    labels = np.zeros(count + 1, np.int32)
    labels[777_777] = 1
    graph = FactGraph(
        build_csr(count + 2, entity, which, roles),
        build_csr(count + 1, which, entity, roles),
        labels,
        2,
    )
    edges = expand_entities(graph, np.array([0]), most=4096)
    paths = shortest_paths(graph, 0, 4)
    assert len(edges) == 4096
    assert set(np.unique(edges.code)) == {0, 2}
    assert sum(map(len, paths)) <= 4096


def test_a_rare_relation_of_a_hub_is_kept() -> None:
    rows = [(0, 0, at) for at in range(1, 6000)] + [(0, 1, 6000)]
    graph = triples(6001, rows, 2)
    edges = expand_entities(graph, np.array([0]), most=64)
    assert len(edges) == 64 and 2 in edges.code.tolist()


@given(st.lists(st.integers(0, 30)), st.lists(st.integers(0, 30)))
def test_among_is_membership(wanted: list[int], known: list[int]) -> None:
    found = isin_sorted(np.array(wanted, np.int64), np.unique(np.array(known, np.int64)))
    assert found.tolist() == [one in known for one in wanted]


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(0, 6)), min_size=1, max_size=20
    )
)
def test_a_trail_reaches_what_its_paths_reach(rows: list[tuple[int, int, int]]) -> None:
    graph = triples(7, rows, 3)
    start = rows[0][0]
    trails = extend_relation_paths(
        graph, extend_relation_paths(graph, start_relation_paths(np.array([start])))
    )
    for at, codes in enumerate(trails.codes):
        simple = follow_codes(graph, start, codes)
        # A trail may repeat a fact; back at the start is only what leads nowhere else.
        assert set(simple.entities[:, -1].tolist()) <= set(trails.ends_of(at).tolist())
        if codes[1] == codes[0] ^ 1:
            ends = trails.ends_of(at).tolist()
            assert start not in ends or ends == [start]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 4)), max_size=12))
def test_trails_are_the_same_where_numbers_would_grow_too_large(
    rows: list[tuple[int, int, int]],
) -> None:
    graph = triples(5, rows, 2)
    one = extend_relation_paths(
        graph, extend_relation_paths(graph, start_relation_paths(np.arange(5)))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trails, "MOST_KINDS", 0)
        patch.setattr(trails, "MOST_PACKED", 0)
        other = extend_relation_paths(
            graph, extend_relation_paths(graph, start_relation_paths(np.arange(5)))
        )
    for name in ("codes", "starts", "ends", "origin"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
