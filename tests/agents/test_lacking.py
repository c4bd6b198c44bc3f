"""What is merely near is not trusted: the rarest word, the value or the meaning must be quoted."""

from pathlib import Path

import pytest

from clew.agents.answering.exact_terms import defines_term, misses_value
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.testing.hashed_kb import open_hashed
from conftest import one_in_three

MANUAL = """# Kiln 40

The Kiln 40 is an oven made by Tarn Works. Its chamber holds 40 litres.

## Cleaning the flue

First let it cool. Then unscrew the cap. Finally brush out the soot.

## Options

- `--ramp` sets how fast it heats. The default is 3.
- `--hold` sets the minutes at the top. The default is 20.

## Error codes

| Code | Meaning | Remedy |
|---|---|---|
| E1 | Flue blocked | Clean the flue |
| E2 | Door open | Close the door |

## Installing the panel program

On Haiku:

    pkgman install kiln
    kiln login

On Linux:

    curl -O https://tarn.example/kiln.deb
    kiln login
"""


@pytest.fixture
async def base(tmp_path: Path) -> KnowledgeBase:
    (tmp_path / "kiln.md").write_text(MANUAL, encoding="utf-8")
    kb = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await kb.add([tmp_path / "kiln.md"])
    return kb


async def test_steps_are_those_of_their_own_section(base: KnowledgeBase) -> None:
    answer = await base.ask("How do I clean the flue?")
    assert answer.citations[0].quote.startswith("First let it cool.")
    assert answer.confidence >= 0.5


async def test_what_announces_commands_says_where_they_hold(base: KnowledgeBase) -> None:
    answer = await base.ask("How can I install kiln on Haiku?")
    assert "pkgman install kiln" in answer.citations[0].quote
    assert "mismatch" not in answer.signals
    other = await base.ask("How can I uninstall kiln on Linux?")
    assert other.confidence < 0.5


async def test_the_quote_with_the_option_is_compared_with_the_question(base: KnowledgeBase) -> None:
    answer = await base.ask("In Kiln 40, what happens with --hold?")
    assert "`--hold` sets" in " ".join(one.quote for one in answer.citations)
    assert answer.signals["inexact"] == 0


async def test_a_short_code_chooses_its_row(base: KnowledgeBase) -> None:
    answer = await base.ask("What does E2 mean?")
    assert "Door open" in answer.citations[0].quote


@pytest.mark.parametrize(
    "question",
    one_in_three(
        [
            "How do I clean the thermostat?",
            "What is raku glazing?",
            "Who is the treasurer of Tarn Works?",
            "What is the default of kiln_speed?",
        ]
    ),
)
async def test_what_no_quote_says_has_no_confidence(base: KnowledgeBase, question: str) -> None:
    assert (await base.ask(question)).confidence < 0.5
    assert (await base.ask(question, mode="reject")).verdict == "refused"


def test_a_term_is_defined_at_the_head_of_a_line() -> None:
    assert defines_term("--onto", "--onto <base>\n:   Where the new commits begin.")
    assert defines_term("--base", "-b, --base=NAME\n:   Where they begin.")
    assert defines_term("MAX_TRIES", "Constants:\n\n      MAX_TRIES         3 transmissions")
    assert defines_term("--ramp", "- `--ramp` sets how fast it heats.")
    assert not defines_term("MAX_TRIES", "   MAX_TRIES messages are sent\n   before it gives up.")
    assert not defines_term("--onto", "When used with --onto, it skips changes.")


def test_the_value_asked_for_stands_beside_its_name() -> None:
    question = "What is the default of MAX_TRIES?"
    assert misses_value(question, ["A host sends up to MAX_TRIES messages."])
    assert misses_value(question, ["It defaults to 64 megabytes."])
    assert not misses_value(question, ["MAX_TRIES     3 transmissions"])
    assert not misses_value(question, ["MAX_TRIES (integer)\n:   How often. The default is three."])
    assert not misses_value("How often does it try?", ["It does."])
