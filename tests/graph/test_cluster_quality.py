import numpy as np
import pytest
from bench.cluster_quality import modularity, purity, silhouette
from hypothesis import given
from hypothesis import strategies as st

LABELS = st.lists(st.integers(0, 3), min_size=8, max_size=8)


@given(LABELS, st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1))
def test_modularity_is_its_definition(labels: list[int], pairs: list[tuple[int, int]]) -> None:
    one, other = np.array(pairs).T
    adjacent = np.zeros((8, 8))
    np.add.at(adjacent, (one, other), 1)
    np.add.at(adjacent, (other, one), 1)
    degrees, total = adjacent.sum(axis=0), adjacent.sum()
    same = np.equal.outer(labels, labels)
    wanted = ((adjacent - np.outer(degrees, degrees) / total) * same).sum() / total
    assert modularity(np.array(labels), one, other) == pytest.approx(wanted)


@given(LABELS, st.integers(0, 99))
def test_silhouette_is_its_definition(labels: list[int], seed: int) -> None:
    kinds = np.unique(labels, return_inverse=True)[1]
    vectors = np.random.default_rng(seed).standard_normal((8, 3)).astype(np.float32)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    apart = 1 - units @ units.T
    widths = []
    for row in range(8):
        own = (kinds == kinds[row]) & (np.arange(8) != row)
        others = [apart[row][kinds == k].mean() for k in set(kinds.tolist()) - {int(kinds[row])}]
        if not own.any() or not others:
            widths.append(0.0)
            continue
        a, b = apart[row][own].mean(), min(others)
        widths.append((b - a) / max(a, b))
    assert silhouette(vectors, kinds) == pytest.approx(np.mean(widths), abs=1e-4)


def test_purity_counts_the_commonest_type() -> None:
    assert purity(np.array([0, 0, 0, 1, 1]), np.array([2, 2, 0, 1, 1])) == pytest.approx(0.8)


def test_nothing_to_judge() -> None:
    none = np.zeros(0, np.int64)
    assert modularity(none, none, none) == 0
    assert silhouette(np.zeros((0, 2), np.float32), none) == 0
    assert silhouette(np.zeros((5, 2), np.float32), np.arange(5) // 3) == 0
    assert purity(none, none) == 0
