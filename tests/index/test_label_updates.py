"""Labels of elements are updated by the rows that came and went, as if all were encoded anew."""

import numpy as np
import pytest

from clew.index.derive import encode_labels, find_bearers
from clew.out_of_core import UNBOUNDED
from clew.splice import splice
from clew.store.row_edits import Splice

LABELS = np.array([0, 11, 23, 37, 58])  # 0 stands for none


@pytest.mark.parametrize("seed", range(60))
def test_labels_after_rows_came_and_went_are_those_of_all_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.choice(LABELS, 30)
    before = encode_labels("label", "bearer", codes, UNBOUNDED)
    known = np.unique(codes[codes != 0])
    gone = np.flatnonzero(rng.random(30) < rng.choice([0, 0.2, 0.7]))
    at = np.sort(rng.integers(0, 31, rng.integers(0, 6)))
    rows = rng.choice(np.append(known, 0), len(at))
    numbers = np.where(rows > 0, np.searchsorted(known, rows), -1)
    held = before["label"]
    bearers = find_bearers(before["bearer"], held, Splice(held, gone, at, rows), numbers)
    after = splice(codes, gone, at, rows)
    anew = encode_labels("label", "bearer", after, UNBOUNDED)
    if bearers is None:
        assert len(np.unique(after[after != 0])) < len(known)
        return
    np.testing.assert_array_equal(bearers, anew["bearer"])
    np.testing.assert_array_equal(splice(held, gone, at, numbers), anew["label"])
    assert (bearers is before["bearer"]) == np.array_equal(bearers, before["bearer"])


def test_a_label_that_no_element_has_any_more_is_noticed() -> None:
    codes = np.array([11, 23, 11])
    before = encode_labels("label", "bearer", codes, UNBOUNDED)
    none, held = np.zeros(0, np.int64), before["label"]
    lost = Splice(held, np.array([1]), none, none)
    assert find_bearers(before["bearer"], held, lost, none) is None
