"""Logic steps phrased as questions."""

import pytest

from clew.agents.logic.forms import Retrieve
from clew.agents.run_logic import phrase_question


@pytest.mark.parametrize(
    ("step", "question"),
    [
        (Retrieve("Salt", "director"), "What is the director of Salt?"),
        (Retrieve("?", "director", "Ana Roth"), "What has Ana Roth as its director?"),
        (Retrieve("Salt", "director", "Ana Roth"), "Is Ana Roth the director of Salt?"),
        (Retrieve("Salt", "director", asks="Who made Salt?"), "Who made Salt?"),
    ],
)
def test_a_lookup_is_phrased_as_a_question(step: Retrieve, question: str) -> None:
    assert phrase_question(step) == question
