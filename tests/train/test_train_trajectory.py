"""Masks and batches as arrays; nothing is decoded here."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew.train.core.environment import Episode
from clew.train.core.trajectory import TrajectoryRecorder, flatten_values, make_batches

PAD = 99
EPISODE = Episode("q")


def _recorded(prompt, turns):
    record = TrajectoryRecorder(prompt)
    for written, given_back in turns:
        for token in written:
            record.append_generated(token, -0.1 * token)
        record.append_reply(given_back)
    return record.to_trajectory(EPISODE)


def test_own_tokens_and_nothing_else_are_marked():
    one = _recorded([1, 2], [([3, 4], [5, 5, 5]), ([6], [])])
    assert one.ids.tolist() == [1, 2, 3, 4, 5, 5, 5, 6]
    assert one.loss_mask.tolist() == [0, 0, 1, 1, 0, 0, 0, 1]
    assert one.logprobs.tolist() == np.float32([0, 0, -0.3, -0.4, 0, 0, 0, -0.6]).tolist()
    assert (len(one), one.generated_count) == (8, 3)


def test_a_batch_pads_on_the_right_and_its_targets_look_one_ahead():
    long = _recorded([1], [([2, 3], [4, 4])])
    short = _recorded([7], [([8], [])])
    (batch,) = make_batches([short, long], 100, PAD)
    assert batch.indices == [1, 0]
    assert batch.ids.tolist() == [[1, 2, 3, 4, 4], [7, 8, PAD, PAD, PAD]]
    assert batch.targets.tolist() == [[True, True, False, False], [True, False, False, False]]
    values = [np.float32([0.5]), np.float32([1.0, 2.0])]
    assert flatten_values(batch, values).tolist() == [1.0, 2.0, 0.5]


turns = st.lists(
    st.tuples(
        st.lists(st.integers(0, 50), min_size=1, max_size=5),
        st.lists(st.integers(0, 50), max_size=4),
    ),
    min_size=1,
    max_size=4,
)


@given(st.lists(st.tuples(st.lists(st.integers(0, 50), min_size=1, max_size=6), turns), min_size=1))
def test_batches_hold_every_own_token_once_and_no_padding(drawn):
    made = [_recorded(prompt, moves) for prompt, moves in drawn]
    seen: dict[int, list[int]] = {}
    for batch in make_batches(made, 24, PAD):
        assert len(batch.indices) == 1 or batch.ids.size <= 24
        for row, at in enumerate(batch.indices):
            assert at not in seen
            chosen = batch.ids[row, 1:][batch.targets[row]].tolist()
            assert PAD not in chosen
            seen[at] = chosen
    for at, one in enumerate(made):
        assert seen[at] == one.ids[one.loss_mask == 1].tolist()
