import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from clew.graph.cluster.raptor import (
    RaptorOptions,
    build_soft_levels,
    cluster_means,
    find_soft_clusters,
    fit_mixture,
    project_pca,
    select_mixture,
)
from clew.graph.csr import Csr

NUMBER = st.integers(-2, 2)
POINTS = st.lists(st.tuples(NUMBER, NUMBER, NUMBER), max_size=50)


def blobs(per_blob: int, blobs: int, noise: float = 0.1) -> NDArray[np.float32]:
    rng = np.random.default_rng(5)
    centres = rng.standard_normal((blobs, 20)) * 3
    points = np.repeat(centres, per_blob, axis=0)
    return (points + noise * rng.standard_normal(points.shape)).astype(np.float32)


def rows_of(clusters: Csr) -> list[list[int]]:
    return [clusters.row(at).tolist() for at in range(len(clusters))]


@given(POINTS, st.integers(2, 9))
def test_every_passage_is_in_a_bounded_cluster_and_levels_end_in_one(
    points: list[tuple[int, int, int]], size: int
) -> None:
    vectors = np.array(points, np.float32).reshape(-1, 3)
    levels = build_soft_levels(vectors, RaptorOptions(max_size=size))
    count = len(vectors)
    for level in levels:
        groups = rows_of(level)
        assert sorted({row for group in groups for row in group}) == list(range(count))
        assert all(0 < len(group) <= size for group in groups)
        assert len({tuple(group) for group in groups}) == len(groups)
        assert (level.weights > 0).all()
        assert len(level) < count or count == 1
        count = len(level)
    assert count == min(len(vectors), 1)
    again = build_soft_levels(vectors, RaptorOptions(max_size=size))
    assert [rows_of(one) for one in levels] == [rows_of(one) for one in again]


def test_clear_groups_are_clusters() -> None:
    found = find_soft_clusters(blobs(12, 6))
    wanted = [list(range(at * 12, at * 12 + 12)) for at in range(6)]
    assert rows_of(found) == wanted


def test_a_passage_between_two_groups_is_in_both() -> None:
    rng = np.random.default_rng(0)
    left = rng.standard_normal((100, 2)) + [-2, 0]
    right = rng.standard_normal((100, 2)) + [2, 0]
    middle = np.zeros((1, 2))
    found = find_soft_clusters(
        np.concatenate([left, right, middle]).astype(np.float32), RaptorOptions(max_size=150)
    )
    assert sum(200 in group for group in rows_of(found)) == 2


def test_bic_finds_the_number_of_components() -> None:
    points = project_pca(blobs(80, 7), 10)
    assert points.shape == (560, 10)
    assert len(select_mixture(points, 50).shares) in (6, 7, 8)
    # Likelihood never falls with more components, BIC does not reward it for ever.
    assert fit_mixture(points, 31).bic > fit_mixture(points, 8).bic


def test_a_projection_keeps_distances_when_it_may() -> None:
    vectors = blobs(4, 3, noise=0.0)
    points = project_pca(vectors, 10)
    assert points.shape[1] == 2
    apart = np.linalg.norm(vectors[0] - vectors[11])
    assert np.linalg.norm(points[0] - points[11]) == pytest.approx(apart, rel=1e-4)


def test_identical_and_zero_vectors_end() -> None:
    for vectors in (np.zeros((200, 4), np.float32), np.ones((200, 4), np.float32)):
        levels = build_soft_levels(vectors)
        assert len(levels[-1]) == 1
        assert max(levels[0].degrees()) <= 30


def test_means_are_weighted() -> None:
    clusters = Csr(np.array([0, 2]), np.array([0, 1], np.int32), np.array([1, 3], np.float32))
    assert cluster_means(np.array([[0], [4]], np.float32), clusters).tolist() == [[3]]
