"""Logic steps phrased as questions, and names found after a cue in the same sentence."""

import pytest

from clew.agents.logic.forms import Retrieve
from clew.agents.rules.english_answers import find_answer
from clew.agents.run_logic import phrase_question
from clew.types import Passage


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


@pytest.mark.parametrize(
    ("text", "father"),
    [
        ("Otto Vance was the son of Karl Vance. He left.", "Karl Vance"),
        ("Otto Vance was the son of a smith. Karl Berg met him.", None),
        (
            "Otto Vance was the son of a smith who, as they say, long ago"
            + " and far away" * 20
            + " met Karl Berg.",
            None,
        ),
    ],
)
def test_a_name_must_be_near_its_cue_and_in_its_sentence(text: str, father: str | None) -> None:
    page = Passage("c", "doc", "Otto Vance", 1.0, text, 0, len(text))
    found = find_answer("Who is the father of Otto Vance?", "Otto Vance", [page])
    assert (found.text if found else None) == father
