import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew.retrieve.rank import best, fused
from clew.types import Hit


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0])), st.integers(-1, 10))
def test_best_is_a_stable_sort_cut_off(scores: list[float], k: int) -> None:
    array = np.array(scores, np.float32)
    order = sorted(range(len(scores)), key=lambda at: (-scores[at], at))
    assert best(array, np.arange(len(scores)), k).tolist() == order[: max(k, 0)]


def test_fusing_adds_reciprocal_ranks_and_absence_adds_nothing() -> None:
    one = (Hit(7, 9.0, "a"), Hit(8, 8.0, "a"))
    two = (Hit(8, 1.0, "b"),)
    assert [(hit.at, hit.score) for hit in fused([one, two], constant=1)] == [
        (8, 1 / 3 + 1 / 2),
        (7, 1 / 2),
    ]
