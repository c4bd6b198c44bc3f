"""Like names: exactly and by pivots, and brought up to date as if all were compared again."""

import numpy as np
import pytest

from clew.graph import similar_names as room
from clew.graph.csr import Csr
from clew.graph.similar_names import NamedVectors, SimilarNames, find_similar_names
from clew.text.unicode import hash64


def name(vectors: np.ndarray, keys: np.ndarray | None = None) -> NamedVectors:
    """Names with these vectors; a name says what its vector is."""
    keys = np.arange(len(vectors)) if keys is None else keys
    codes = np.array([hash64(row.tobytes().hex()) for row in vectors], np.uint64).view(np.int64)
    return NamedVectors(
        keys, codes, codes, lambda at: vectors[at], lambda some, at: some @ vectors[at].T
    )


def find(vectors: np.ndarray, least: float, most: int) -> Csr:
    return find_similar_names(name(vectors), least, most).edges()


def unit(*angles: float) -> np.ndarray:
    return np.array([[np.cos(a), np.sin(a)] for a in np.radians(angles)], np.float32)


def cluster(centres: int, each: int, spread: float = 0.3) -> np.ndarray:
    random = np.random.default_rng(3)
    middle = np.repeat(random.standard_normal((centres, 32)), each, axis=0)
    vectors = middle + random.standard_normal(middle.shape) * spread
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_pairs_above_the_threshold_are_joined_both_ways_by_their_cosine() -> None:
    found = find(unit(0, 30, 90), 0.8, 10)
    assert [found.row(at).tolist() for at in range(3)] == [[1], [0], []]
    assert found.row_weights(0) == pytest.approx([np.cos(np.radians(30))], abs=1e-5)


def test_only_the_nearest_are_kept_but_both_ends_know_of_them() -> None:
    found = find(unit(0, 1, 3, 6), 0.8, 1)
    # 3 keeps 2, 2 keeps 1 (or is kept by 3), 0 and 1 keep each other.
    assert [found.row(at).tolist() for at in range(4)] == [[1], [0, 2], [1, 3], [2]]


def test_nothing_is_alike_to_itself_and_nothing_needs_nothing() -> None:
    assert len(find(unit(0), 0.8, 5).columns) == 0
    assert len(find(np.zeros((0, 4), np.float32), 0.8, 5)) == 0


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "EXACT", 100)
    monkeypatch.setattr(room, "PER_CELL", 30)


def test_pivots_find_nearly_all_that_comparing_all_with_all_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vectors = cluster(300, 5)
    exact = find(vectors, 0.8, 10)
    monkeypatch.setattr(room, "EXACT", 100)
    monkeypatch.setattr(room, "PER_CELL", 30)
    near = find(vectors, 0.8, 10)
    assert len(near.columns) > 0.97 * len(exact.columns) > 1000


def same(one: SimilarNames, other: SimilarNames) -> bool:
    """Whether both say the same, but for the last digit of a cosine."""
    equal = all(
        np.array_equal(getattr(one, part), getattr(other, part))
        for part in ("keys", "cells", "others")
    )
    return equal and bool(np.abs(one.cosines - other.cosines).max() < 2e-5)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("most", [2, 10])
def test_names_that_come_and_go_leave_what_all_together_give(most: int) -> None:
    random, vectors = np.random.default_rng(5), cluster(120, 9, 0.25)
    vectors[400:430] = vectors[400]  # equals, as for words that an embedder does not know
    keys = np.sort(random.choice(len(vectors), 700, replace=False))
    found = find_similar_names(name(vectors[keys], keys), 0.8, most)
    for come, go in ((0, 1), (1, 0), (10, 3), (40, 60), (200, 0), (0, 650), (300, 5)):
        absent = np.setdiff1d(np.arange(len(vectors)), keys)
        keys = np.delete(keys, random.choice(len(keys), go, replace=False))
        keys = np.sort(np.append(keys, random.choice(absent, min(come, len(absent)), False)))
        now = name(vectors[keys], keys)
        found = find_similar_names(now, 0.8, most, found)
        assert same(found, find_similar_names(now, 0.8, most))


@pytest.mark.usefixtures("few_are_many")
def test_what_comes_later_is_compared_and_nothing_else() -> None:
    vectors, read = cluster(200, 5), []

    def note(at: np.ndarray) -> np.ndarray:
        read.append(len(at))
        return vectors[at]

    def compare(some: np.ndarray, at: np.ndarray) -> np.ndarray:
        return some @ note(at).T

    before = find_similar_names(name(vectors[:-1]), 0.8, 10)
    now = name(vectors)
    given = NamedVectors(now.keys, now.codes, now.marks, note, compare)
    find_similar_names(given, 0.8, 10, before)
    assert 0 < sum(read) < len(vectors) / 2


@pytest.mark.usefixtures("few_are_many")
def test_a_name_with_another_vector_is_another_name() -> None:
    vectors = cluster(60, 5)
    before = find_similar_names(name(vectors), 0.8, 10)
    vectors = vectors.copy()
    vectors[:5] = vectors[100:105]
    now = name(vectors)
    assert same(find_similar_names(now, 0.8, 10, before), find_similar_names(now, 0.8, 10))
