"""Paths between seeds and the flow along them, worked out by hand."""

import numpy as np
import pytest

from clew.graph.csr import Csr, build_csr
from clew.graph.paths import SeedPathTable, compute_flows, find_short_paths


def undirected(count: int, *edges: tuple[int, int]) -> Csr:
    one, other = np.array(edges, np.int64).reshape(-1, 2).T
    return build_csr(count, np.concatenate([one, other]), np.concatenate([other, one]))


def paths(*rows: tuple[int, ...], pair: int = 0) -> SeedPathTable:
    nodes = np.full((len(rows), 4), -1, np.int64)
    for at, row in enumerate(rows):
        nodes[at, : len(row)] = row
    return SeedPathTable(nodes, np.full(len(rows), pair))


def listed(found: SeedPathTable) -> set[tuple[int, ...]]:
    return {tuple(row[row >= 0].tolist()) for row in found.nodes}


#    0 ─ 1 ─ 3
#    │       │
#    └── 2 ──┘   and 0 ─ 4 ─ 5 ─ 3
DIAMOND = undirected(6, (0, 1), (1, 3), (0, 2), (2, 3), (0, 4), (4, 5), (5, 3))


def test_all_short_simple_paths_are_found_once() -> None:
    found = find_short_paths(DIAMOND, np.array([0, 3]), 3)
    assert listed(found) == {(0, 1, 3), (0, 2, 3), (0, 4, 5, 3)}
    assert len(found) == 3


@pytest.mark.parametrize(("hops", "expected"), [(1, set()), (2, {(0, 1, 3), (0, 2, 3)})])
def test_longer_paths_are_left_out(hops: int, expected: set[tuple[int, ...]]) -> None:
    assert listed(find_short_paths(DIAMOND, np.array([0, 3]), hops)) == expected


def test_seeds_that_are_neighbours_have_a_path_of_one_edge() -> None:
    found = find_short_paths(undirected(3, (0, 1), (1, 2)), np.array([1, 0, 2]), 3)
    assert listed(found) == {(1, 0), (1, 2), (0, 1, 2)}


def test_a_busy_node_is_passed_by() -> None:
    assert listed(find_short_paths(DIAMOND, np.array([0, 3]), 3, busy=1)) == set()


def test_no_seeds_and_single_seeds_have_no_paths() -> None:
    assert len(find_short_paths(DIAMOND, np.zeros(0, np.int64))) == 0
    assert len(find_short_paths(DIAMOND, np.array([2]))) == 0


def test_flow_is_shared_among_what_follows_and_decays_after_the_first_hop() -> None:
    # 0 hands 1/3 to each of 1, 2, 4. 1 and 2 hand on 1/3 · 0.8 to 3; 4 hands 1/3 · 0.8 to 5,
    # which hands on 1/3 · 0.8 · 0.8.
    rows = paths((0, 1, 3), (0, 2, 3), (0, 4, 5, 3))
    first, second, third = 1 / 3, 0.8 / 3, 0.64 / 3
    assert compute_flows(rows, 0.8, 0.0) == pytest.approx(
        [(first + second) / 2, (first + second) / 2, (first + second + third) / 3]
    )


def test_an_edge_below_the_threshold_is_the_end_of_its_flow() -> None:
    # 1/3 passes the threshold of 0.3; 0.8/3 = 0.267 does not: what comes after it gets nothing.
    rows = paths((0, 1, 3), (0, 2, 3), (0, 4, 5, 3))
    assert compute_flows(rows, 0.8, 0.3) == pytest.approx([0.3, 0.3, (1 / 3 + 0.8 / 3 + 0) / 3])
    # Four ways out carry 0.25 each: already the second edges carry nothing.
    rows = paths((0, 1, 9), (0, 2, 9), (0, 3, 9), (0, 9))
    assert compute_flows(rows, 0.8, 0.3) == pytest.approx([0.125, 0.125, 0.125, 0.25])


def test_flow_that_meets_again_adds_up() -> None:
    # 0 → 1 → 3 → 4 and 0 → 2 → 3 → 4: 3 gets 0.4 twice and hands on 0.8 · 0.8.
    rows = paths((0, 1, 3, 4), (0, 2, 3, 4))
    assert compute_flows(rows, 0.8, 0.0) == pytest.approx([(0.5 + 0.4 + 0.64) / 3] * 2)


def test_pairs_do_not_share_their_flow() -> None:
    one, other = paths((0, 1, 3)), paths((0, 2, 5), pair=1)
    both = SeedPathTable(np.concatenate([one.nodes, other.nodes]), np.array([0, 1]))
    assert compute_flows(both, 0.8, 0.3) == pytest.approx([0.9, 0.9])
    assert len(compute_flows(paths(), 0.8, 0.3)) == 0


@pytest.mark.parametrize(("codes", "kept"), [((0, 1, 2, 3), 1), ((0, 2, 1, 3), 2)])
def test_of_more_paths_than_are_kept_the_codes_of_the_nodes_choose(
    codes: tuple[int, ...], kept: int
) -> None:
    square = undirected(4, (0, 1), (1, 3), (0, 2), (2, 3))
    found = find_short_paths(square, np.array([0, 3]), 2, most=1, codes=np.array(codes))
    assert listed(found) == {(0, kept, 3)}
