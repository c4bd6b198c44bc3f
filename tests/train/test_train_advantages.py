"""Advantages and weights by hand (eq. 11-12)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.train.learn.grpo import (
    broadcast_advantages,
    group_advantages,
    reinforce_advantages,
    token_weights,
    whiten,
)


def test_a_group_is_its_own_measure():
    # Group 1: mean 0, spread of (-1, 0, 1) is 1. Group 2: all alike, so nothing to learn.
    found = group_advantages([-1.0, 0.0, 1.0, 0.5, 0.5, 0.5], 3)
    assert found.tolist() == [-1.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert group_advantages([0.0, 4.0], 2, scale=False).tolist() == [-2.0, 2.0]


@given(st.lists(st.floats(-1, 1, width=32), min_size=4, max_size=4))
def test_a_groups_advantages_cancel(rewards):
    found = group_advantages(rewards, 4)
    assert abs(float(found.sum())) < 1e-3
    assert np.isfinite(found).all()


def test_trajectories_or_tokens_count_the_same():
    by_trajectory = token_weights([1, 4], "trajectory")
    assert [one.tolist() for one in by_trajectory] == [[0.5], [0.125] * 4]
    by_token = token_weights([1, 4], "token")
    assert np.concatenate(by_token).tolist() == pytest.approx([0.2] * 5)
    assert token_weights([0, 2], "trajectory")[0].tolist() == []


def test_reinforce_takes_the_divergence_still_to_come_off():
    kl = [np.float32([1.0, 2.0]), np.float32([0.0, 0.0])]
    # Returns 1-0.1·3, 1-0.1·2, 1, 1 → 0.7, 0.8, 1, 1, then mean 0 and spread 1.
    found = np.concatenate(reinforce_advantages([1.0, 1.0], kl, 0.1))
    raw = np.array([0.7, 0.8, 1.0, 1.0])
    assert found == pytest.approx((raw - raw.mean()) / raw.std(), abs=1e-4)


def test_constant_spreads_one_value():
    assert [one.tolist() for one in broadcast_advantages(np.float32([2, -1]), [2, 1])] == [
        [2, 2],
        [-1],
    ]
    assert whiten([]) == []
