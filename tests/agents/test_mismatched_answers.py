"""Without a model: the cell asked for is named, and what is said of another thing is not."""

from pathlib import Path

import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.testing.hashed_kb import open_hashed
from clew.text.sentences import sentence_spans
from conftest import one_in_three, open_tables

SHEET = """# Lapwing pumps: sheet

The Lapwing pumps move water out of cellars.

| | P3 | P3 Max |
|---|---|---|
| Flow | 40 litres | 75 litres |
| Weight | 6 kg | 9 kg |
| Price | 180 euros | 260 euros |

## Faults

| Code | Cause | What to do |
|---|---|---|
| F11 | the filter is blocked | rinse the filter |
| F12 | the pump runs dry | lower the hose |

## Options

| Option | Default | Effect |
|---|---|---|
| `--pause` | 20s | seconds between two runs |
| `--noise` | low | greatest loudness at night |

## Cleaning the filter

1. Unplug the pump.
2. Unscrew the lid.
3. Rinse the filter.

Three hoses are sold: grey, black and amber.
"""
OFFICES = """# Places

The Corran depot was opened in 2004 and is led by Wanda Strome in building D.
The Tilbeck depot stands beside the canal and has a large yard for lorries and trailers in hall C.
Ulf Markham sweeps it.
"""


@pytest.fixture
async def kb(tmp_path: Path) -> KnowledgeBase:
    (tmp_path / "sheet.md").write_text(SHEET, encoding="utf-8")
    (tmp_path / "places.md").write_text(OFFICES, encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([tmp_path / "sheet.md", tmp_path / "places.md"])
    return base


@pytest.mark.parametrize(
    ("question", "named"),
    one_in_three(
        [
            ("What is the flow of the P3?", "40 litres"),
            ("what is the flow of the p3 max", "75 litres"),
            ("How heavy is the P3 Max?", "9 kg"),
            ("What does the P3 cost?", "180 euros"),
            ("What does fault F11 mean?", "the filter is blocked"),
            ("Why do I get F12?", "the pump runs dry"),
            ("I got f11. What is wrong?", "the filter is blocked"),
            ("What should I do about F12?", "lower the hose"),
            ("Which option sets the seconds between two runs?", "--pause"),
        ]
    ),
)
async def test_the_cell_that_is_asked_for_is_named(
    kb: KnowledgeBase, question: str, named: str
) -> None:
    answer = await kb.ask(question)
    await kb.close()
    assert answer.candidate == named, answer.answer


@pytest.mark.parametrize(
    "question",
    one_in_three(
        [
            "What colour is the P3?",
            "How many speeds does the P3 Max have?",
            "What is the weight of the hose?",
            "How do I replace the motor?",
            "When was the Tilbeck depot opened?",
            "Who leads the Tilbeck depot?",
            "Quand Wanda Strome est-elle née ?",
        ]
    ),
)
async def test_what_is_said_of_another_thing_is_no_answer(kb: KnowledgeBase, question: str) -> None:
    answer = await kb.ask(question, mode="reject")
    await kb.close()
    assert answer.verdict == "refused" and answer.confidence < 0.5, answer.answer


async def test_a_letter_at_a_line_end_ends_the_sentence() -> None:
    said = [OFFICES[start:end] for start, end in sentence_spans(OFFICES)]
    assert said[-1] == "Ulf Markham sweeps it."
    wrapped = "This part of the text was written a long time ago and in great haste by J.\nPostel."
    assert [wrapped[a:b] for a, b in sentence_spans(wrapped)] == [wrapped]


@pytest.mark.parametrize("question", ["Who is the CEO of Norvik?", "Who is Norvik's CEO?"])
def test_another_role_of_the_name_is_not_told(tmp_path: Path, question: str) -> None:
    notes = "# People\n\nThe CFO of Norvik is Petra Salo. Tellmar's CEO is Ines Brandt.\n"
    with open_tables(tmp_path, {"people.md": notes}) as base:
        assert base.ask(question).confidence < 0.5
        told = base.ask("Who is the CFO of Norvik?")
        assert "Petra Salo" in told.answer and told.confidence > 0.5


CONTRACT = """# Service agreement

The upkeep contract was signed on 4 May 2022, begins on 1 June 2022 and ends on 31 May 2025.
This agreement between Norvik Ltd and Tellmar GmbH starts on 1 March 2023 and runs for years.
"""


@pytest.mark.parametrize(
    ("question", "told"),
    one_in_three(
        [
            ("When does the upkeep contract begin?", "1 June 2022"),
            ("When does the upkeep contract start?", "1 June 2022"),
            ("When does the upkeep contract end?", "31 May 2025"),
            ("When was the upkeep contract signed?", "4 May 2022"),
            ("When does the agreement between Norvik and Tellmar start?", "1 March 2023"),
            ("When does the agreement between Norvik and Tellmar end?", ""),
        ]
    ),
)
def test_the_date_of_the_end_that_is_asked_for_is_told(
    tmp_path: Path, question: str, told: str
) -> None:
    with open_tables(tmp_path, {"contract.md": CONTRACT}) as base:
        found = base.ask(question)
    if told:
        assert (found.candidate, found.confidence > 0.5) == (told, True)
    else:  # its end is not told
        assert found.candidate != "1 March 2023" or found.confidence < 0.5
