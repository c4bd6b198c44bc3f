"""Answers of another kind than asked for, or of another thing on the page, are not believed."""

import pytest

from clew.agents.answering.told import is_untold
from clew.agents.reading.choose import contradicts_kind, fits_kind
from clew.agents.rules.sections_about import cut_to_section
from clew.agents.rules.table import table_for
from clew.engine import KnowledgeBase
from conftest import document, stream

FIRMS = (
    "# Alder Pumps\nAlder Pumps was founded in 1974 in Orm.\n\n"
    "# Kest Sensors\nKest Sensors sells sensors to fishermen.\n"
)


@pytest.mark.parametrize(
    ("question", "answer", "fits"),
    [
        ("Where is the fair held?", "every September", -1),
        ("When is the fair held?", "every September", 1),
        ("Where is the fair held?", "Orm", 1),
        ("How many people work there?", "12 million euros", -1),
        ("How many people work there?", "310", 1),
        ("How many years did it last?", "12 years", 1),
        ("How much does the lamp cost?", "40 litres", -1),
        ("How much did they pay for it?", "12 million pounds", 1),
        ("How much does the lamp cost?", "40 kroner", 1),
        ("How much does it weigh?", "11 kg", 1),
        ("How long does it last?", "two years", 1),
        ("What position does the player who came last have?", "central defender", 0),
    ],
)
def test_an_answer_is_of_the_kind_asked_for(question: str, answer: str, fits: float) -> None:
    assert fits_kind(question, answer) == fits


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("Which languages does Ana Roth speak?", "four", True),
        ("Which languages does Ana Roth speak?", "Danish", False),
        ("How many languages does Ana Roth speak?", "four", False),
        ("Which page has the table?", "four", False),
    ],
)
def test_a_count_does_not_say_which(question: str, answer: str, other: bool) -> None:
    assert contradicts_kind(question, answer) is other


def test_the_first_question_word_asks() -> None:
    find = table_for("x").find_answer_kind
    assert find("What did the man who built it, where it stands, call it?") == ""
    assert find("What kind of boat sailed from the cook's birthplace?") == ""
    assert find("The state where Ana Roth died has how many counties?") == "number"
    assert find("In which year did the man who built it die?") == "date"
    assert find("What is the population of the town where he lives?") == "number"


def test_a_section_has_the_headings_above_it() -> None:
    text = "# Lamp\nIt burns.\n## Care\nWipe it.\n## Codes\nE1: no oil."
    assert cut_to_section(text, text.index("no oil")).split("\n") == [
        "Lamp",
        "Codes",
        "",
        "E1: no oil.",
    ]
    assert cut_to_section("It burns. Wipe it.", 12) == "It burns. Wipe it."


async def test_a_value_of_another_section_is_not_believed(base: KnowledgeBase) -> None:
    await base.take(stream([document("firms", FIRMS, title="Firms")]))
    right = await base.ask("When was Alder Pumps founded?")
    wrong = await base.ask("When was Kest Sensors founded?")
    assert right.signals["named"] == 1
    assert wrong.signals.get("named", 0) == 0
    assert wrong.confidence < right.confidence


@pytest.mark.parametrize("greeting", ["你好", "谢谢"])
async def test_a_greeting_is_no_question(base: KnowledgeBase, greeting: str) -> None:
    await base.take(
        stream([document("town", "青石镇位于清水河边，居民约三千人。", title="青石镇")])
    )
    answer = await base.ask(greeting, mode="reject")
    assert answer.verdict == "refused"


@pytest.mark.parametrize(
    ("question", "quote", "untold"),
    [
        ("Where did Ana Roth die?", "She was born in Orm and studied in Pell.", True),
        ("Where did Ana Roth die?", "Her death in Orm was sudden.", False),
        ("When did Ana Roth die?", "Ana Roth (1870–1942) was a painter.", False),
        ("Who founded Kest Sensors?", "It was established by Ana Roth.", False),
        ("Ana Roth?", "Ana Roth was a painter.", False),
    ],
)
def test_a_quote_that_speaks_of_something_else_tells_nothing(
    question: str, quote: str, untold: bool
) -> None:
    assert is_untold(question, ["Ana Roth", "Kest Sensors"], quote) is untold
