"""A prize-collecting tree, worked out by hand."""

import numpy as np

from clew.graph.csr import build_csr
from clew.graph.steiner import prize_collecting_tree


def chain(length: int, *more: tuple[int, int]):
    edges = np.array([*((at, at + 1) for at in range(length - 1)), *more], np.int64)
    one, other = edges.T
    return build_csr(
        int(edges.max()) + 1, np.concatenate([one, other]), np.concatenate([other, one])
    )


def test_prized_nodes_are_joined_where_the_way_is_worth_it() -> None:
    # 0 ─ 1 ─ 2: joining costs 1, each end brings 3.
    assert prize_collecting_tree(chain(3), {0: 3.0, 2: 3.0}, 0.5) == {0, 1, 2}
    # At 2 an edge the way costs more than the smaller prize: the better one stands alone.
    assert prize_collecting_tree(chain(3), {0: 3.0, 2: 3.5}, 2.0) == {2}


def test_a_branch_that_costs_more_than_it_brings_is_cut_off() -> None:
    # 0 ─ 1 ─ 2 ─ 3 ─ 4: 4 brings 0.4 for two edges at 0.5.
    assert prize_collecting_tree(chain(5), {0: 3.0, 2: 3.0, 4: 0.4}, 0.5) == {0, 1, 2}


def test_of_two_ways_the_shorter_is_taken() -> None:
    links = chain(4, (0, 4), (4, 3))  # 0-1-2-3 and 0-4-3
    assert prize_collecting_tree(links, {0: 3.0, 3: 3.0}, 0.5) == {0, 4, 3}


def test_what_lies_too_far_apart_is_not_joined() -> None:
    assert prize_collecting_tree(chain(9), {0: 9.0, 8: 8.0}, 0.1, max_depth=2) == {0}
    assert prize_collecting_tree(chain(9), {0: 9.0, 8: 8.0}, 0.1, max_depth=6) == set(range(9))


def test_no_prizes_no_tree() -> None:
    assert prize_collecting_tree(chain(3), {}, 0.5) == set()
