import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew.retrieve.rank import fuse_rankings, top_positions
from clew.types import Hit


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0])), st.integers(-1, 10))
def test_best_is_a_stable_sort_cut_off(scores: list[float], k: int) -> None:
    array = np.array(scores, np.float32)
    order = sorted(range(len(scores)), key=lambda at: (-scores[at], at))
    assert top_positions(array, np.arange(len(scores)), k).tolist() == order[: max(k, 0)]


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 30))
def test_the_best_of_many_are_found_block_by_block(seed: int, k: int, kinds: int) -> None:
    scores = np.random.default_rng(seed).integers(0, kinds, 2500).astype(np.float32)
    order = sorted(range(len(scores)), key=lambda at: (-scores[at], at))
    assert top_positions(scores, np.arange(len(scores)), k).tolist() == order[:k]


def test_fusing_adds_reciprocal_ranks_and_absence_adds_nothing() -> None:
    one = (Hit(7, 9.0, "a"), Hit(8, 8.0, "a"))
    two = (Hit(8, 1.0, "b"),)
    assert [(hit.at, hit.score) for hit in fuse_rankings([one, two], constant=1)] == [
        (8, 1 / 3 + 1 / 2),
        (7, 1 / 2),
    ]
