import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew.graph.csr import argsort_numbers, build_csr, find_positions, sorted_unique

EDGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)))


@given(EDGES)
def test_every_edge_is_kept_both_ways(edges: list[tuple[int, int]]) -> None:
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    links = build_csr(6, pairs[:, 0], pairs[:, 1])
    forth = [(row, int(t)) for row in range(6) for t in links.row(row)]
    assert forth == sorted(edges)
    back = links.transpose(7)
    assert sorted((int(s), row) for row in range(7) for s in back.row(row)) == sorted(edges)


def test_edges_of_some_rows_are_written_out() -> None:
    links = build_csr(3, np.array([0, 0, 2]), np.array([5, 4, 9]), np.array([1, 2, 3], np.float32))
    source, edge = links.edges_of(np.array([2, 0, 1]))
    assert source.tolist() == [0, 1, 1]
    assert links.columns[edge].tolist() == [9, 4, 5]
    assert links.weights[edge].tolist() == [3, 2, 1]


@given(st.lists(st.integers(-(2**40), 2**40)))
def test_distinct_is_unique(values: list[int]) -> None:
    array = np.array(values, np.int64)
    assert sorted_unique(array).tolist() == sorted(set(values))


NUMBERS = st.lists(st.one_of(st.integers(0, 9), st.integers(0, 1 << 40), st.integers(0, 1 << 62)))


@given(NUMBERS)
def test_numbers_are_sorted_stably_whatever_their_size(listed: list[int]) -> None:
    numbers = np.array(listed, np.int64)
    np.testing.assert_array_equal(argsort_numbers(numbers), np.argsort(numbers, kind="stable"))


@given(st.sets(st.one_of(st.integers(0, 3000), st.integers(1 << 40, 1 << 42)), min_size=1))
def test_positions_of_dense_and_of_sparse_keys(held: set[int]) -> None:
    keys = np.array(sorted(held), np.int64)
    wanted = np.concatenate([keys[::-1], keys[:1]])
    np.testing.assert_array_equal(keys[find_positions(keys, wanted)], wanted)
