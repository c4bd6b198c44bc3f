"""Like vectors, exactly and by pivots."""

import numpy as np
import pytest

import clew.graph.synonyms as room
from clew.graph.synonyms import find_synonym_edges


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
