"""Whether a text contains an answer: how many of its words must occur, and how close."""

import pytest

from clew.agents.citing.support import contains_answer


@pytest.mark.parametrize(
    ("answer", "text", "expected"),
    [
        ("grey stone bridge", "It is a grey stone bridge.", True),
        ("grey stone bridge", "It is a bridge of grey stone.", True),
        ("grey stone bridge", "It is a grey bridge.", False),  # of three words none may be missing
        ("grey stone bridge", "The bridge, they say, was made of a very grey stone.", False),
        ("old grey stone bridge", "It is an old grey bridge.", True),  # of four one may be missing
        ("old grey stone bridge", "It is an old bridge.", False),
        ("old grey stone bridge", "The old thing is a grey kind of bridge.", True),
        ("old grey bridge of 1921", "It is an old grey bridge of note.", False),  # but no number
        ("Old Grey stone bridge", "It is an old stone bridge.", False),  # and no name
        ("not old grey stone", "It is an old grey stone.", False),
        ("", "It is an old grey stone.", False),
    ],
)
def test_contains_answer(answer: str, text: str, expected: bool) -> None:
    assert contains_answer(answer, text) is expected
