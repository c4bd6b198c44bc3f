import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from clew.graph.cluster.kmeans import KMeansOptions, cluster_count, kmeans
from clew.graph.cluster.vectors import entity_vectors, group_sums, relabel_by_size
from clew.graph.csr import build_csr

NUMBER = st.integers(-3, 3)
POINTS = st.lists(st.tuples(NUMBER, NUMBER, NUMBER), min_size=1, max_size=40)


def blobs(per_blob: int, blobs: int = 5, noise: float = 0.1) -> NDArray[np.float32]:
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((blobs, 12)) * 3
    points = np.repeat(centres, per_blob, axis=0)
    return (points + noise * rng.standard_normal(points.shape)).astype(np.float32)


@given(POINTS, st.integers(1, 10))
def test_clusters_are_never_empty_and_rows_go_to_the_nearest(
    points: list[tuple[int, int, int]], k: int
) -> None:
    rows = np.array(points, np.float32)
    found = kmeans(rows, k)
    count = len(found.centroids)
    assert sorted(set(found.labels.tolist())) == list(range(count))
    assert count == min(k, len({tuple(row) for row in points})) or count < k
    apart = ((rows[:, None] - found.centroids[None]) ** 2).sum(axis=2)
    own = apart[np.arange(len(rows)), found.labels]
    assert (own <= apart.min(axis=1) + 1e-3).all()
    assert kmeans(rows, k).labels.tolist() == found.labels.tolist()


@given(POINTS, st.integers(1, 10), st.randoms(use_true_random=False))
def test_shuffled_rows_give_the_same_clusters(
    points: list[tuple[int, int, int]], k: int, random: object
) -> None:
    rows = np.array(points, np.float32)
    order = list(range(len(rows)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert kmeans(rows, k).labels[order].tolist() == kmeans(rows[order], k).labels.tolist()


@pytest.mark.parametrize("per_blob", [30, 4000])
def test_clear_clusters_are_found_also_from_a_sample(per_blob: int) -> None:
    found = kmeans(blobs(per_blob), 5)
    assert len(found.centroids) == 5
    truth = np.repeat(np.arange(5), per_blob)
    assert len(set(zip(found.labels.tolist(), truth.tolist(), strict=True))) == 5


def test_more_starts_are_no_worse() -> None:
    rows = blobs(100, 30, noise=1.0)
    assert kmeans(rows, 30).inertia <= kmeans(rows, 30, KMeansOptions(n_init=1)).inertia


def test_directions_keep_clusters_of_noise_even() -> None:
    rng = np.random.default_rng(1)
    noise = (3 + rng.standard_normal((600, 64))).astype(np.float32)
    by_distance = np.bincount(kmeans(noise, 12, KMeansOptions(n_init=1)).labels)
    by_direction = np.bincount(kmeans(noise, 12, KMeansOptions(n_init=1, spherical=True)).labels)
    assert by_direction.max() < by_distance.max()
    assert by_direction.min() > 10


def test_the_number_of_clusters_is_the_papers() -> None:
    assert [cluster_count(n) for n in (0, 5, 29, 30, 500, 10**6)] == [2, 2, 2, 3, 50, 200]


FACTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=60)


@given(FACTS)
def test_an_entity_is_the_mean_of_its_facts(pairs: list[tuple[int, int]]) -> None:
    rows = np.array(pairs, np.int64).reshape(-1, 2)
    facts = np.random.default_rng(0).standard_normal((10, 4), np.float32)
    members, present = build_csr(10, rows[:, 1], rows[:, 0]), np.ones(10, np.bool_)
    found = entity_vectors(members, 7, 4, lambda at: (facts[at], present[at]))
    for entity in range(7):
        own = sorted({fact for who, fact in pairs if who == entity})
        wanted = facts[own].mean(axis=0) if own else np.zeros(4)
        assert found[entity] == pytest.approx(wanted, abs=1e-5)


def test_sums_by_group_are_scaled() -> None:
    rows = np.arange(10_000, dtype=np.float32).reshape(5000, 2)
    labels, scale = np.arange(5000) % 3, np.linspace(0, 1, 5000, dtype=np.float32)
    found = group_sums(rows, labels, 4, scale)
    wanted = [(rows * scale[:, None])[labels == at].sum(axis=0, dtype=float) for at in range(4)]
    assert found == pytest.approx(np.array(wanted), rel=1e-5)


def test_groups_are_numbered_by_size() -> None:
    assert relabel_by_size(np.array([7, 3, 3, 9, 7, 3])).tolist() == [1, 0, 0, 2, 1, 0]
