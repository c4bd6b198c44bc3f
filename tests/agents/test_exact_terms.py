"""Numbers, options and acronyms of a question decide which row or definition is quoted."""

from pathlib import Path

import pytest

from clew.agents.answering.exact_terms import find_cell, find_exact_terms, holds_term
from clew.agents.reading.spans import keep_in_cell, trim_span
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.testing.hashed_kb import open_hashed

MANUAL = """# Crane

Write-Ahead Logging (WAL) keeps the log. This is known as journaling.

| Boom angle | Max load | Wind limit |
|---|---|---|
| 30° | 12.5 t | 14 m/s |
| 45° | 9.8 t | 12 m/s |
| 60° | 7.1 t | 10 m/s |

## Exit status

0
:   All files were read.

2
:   A syntax error in the settings.

3
:   A file could not be read, and the tool went on.
"""


@pytest.fixture
async def base(tmp_path: Path) -> KnowledgeBase:
    (tmp_path / "crane.md").write_text(MANUAL, encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([tmp_path / "crane.md"])
    return base


async def test_the_acronym_is_spelled_out(base: KnowledgeBase) -> None:
    answer = await base.ask("What does WAL stand for?")
    assert answer.candidate == "Write-Ahead Logging"


async def test_an_acronym_of_a_glossary_is_spelled_out(tmp_path: Path) -> None:
    notes = """# Notes

## Glossary
SLO: service level objective, the target we set ourselves.
SLA: what we promise customers in a contract.
"""
    (tmp_path / "notes.md").write_text(notes, encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([tmp_path / "notes.md"])
    assert (await base.ask("What does SLO stand for?")).candidate == "service level objective"
    assert (await base.ask("What does SLA stand for?")).candidate != "service level objective"


async def test_the_first_quote_has_the_number_of_the_question(base: KnowledgeBase) -> None:
    for question, said in [
        ("What is the maximum load at a boom angle of 45°?", "9.8 t"),
        ("What does exit status 2 mean?", "syntax error"),
    ]:
        answer = await base.ask(question)
        assert said in answer.citations[0].quote, answer.answer


async def test_the_term_is_named_whose_definition_says_what_is_asked(tmp_path: Path) -> None:
    settings = """# Settings

cache_ttl
:   Seconds an entry stays. Default 300. Raise it if the database is slow.
pool_size
:   Connections kept open. Default 12. Lower it if the server runs out of sockets.
"""
    page = """.TH FROB 1
.SH "EXIT STATUS"
.B frob
exits with the following status:
.IP 3
if the input file is missing
.IP 4
if the disk is full
"""
    (tmp_path / "settings.md").write_text(settings, encoding="utf-8")
    (tmp_path / "frob.1").write_text(page, encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([tmp_path / "settings.md", tmp_path / "frob.1"])
    for question, term in [
        ("Which setting should I raise if the database is slow?", "cache_ttl"),
        ("Which setting should I lower when sockets run out?", "pool_size"),
        ("What exit status does frob return if the disk is full?", "4"),
        ("Which exit status of frob means that the input file is missing?", "3"),
    ]:
        answer = await base.ask(question)
        assert answer.candidate == term and answer.confidence > 0.5, answer.answer
    answer = await base.ask("Which setting is green?")
    assert not answer.candidate or answer.confidence < 0.5


def test_terms_of_a_question_and_the_cell_it_names() -> None:
    assert find_exact_terms("What does ssh -J do on port 22 with max_wait?") == (
        *("-J", "max_wait", "22"),
    )
    assert holds_term("45", "angle: 45°") and not holds_term("45", "4.45 or 450 or 45,5")
    assert holds_term("RETRANS_TIMER", "the Retrans Timer field")
    assert not holds_term("work_mem", "maintenance_work_mem is larger")
    assert not holds_term("work_mem", "work_mem_limit is larger")
    row = "| Boom angle: 45° | Max load: 9.8 t | Wind limit: 12 m/s |"
    assert find_cell("What is the load at 45°?", ("45",), row) == "9.8 t"
    assert find_cell("What is it at 45°?", ("45",), row) == ""


def test_a_bracket_is_closed_or_left_out() -> None:
    text = "It is 4 megabytes (4MB)."
    assert text[slice(*trim_span(text, 6, 22))] == "4 megabytes (4MB)"
    assert text[slice(*trim_span(text, 6, 21))] == "4 megabytes"


def test_an_answer_is_the_value_of_one_cell() -> None:
    text = "Resistance\n\n| Sample: S1 | Ohm: 112 |\n| Sample: S2 | Ohm: 87 |"
    start = text.index("S2 |")
    assert (
        text[slice(*keep_in_cell("What is the resistance of S2?", text, start, start + 12))] == "87"
    )
    assert keep_in_cell("What is it?", text, start, start + 2) == (start, start + 2)


WEAVER = """WEAVER

DESCRIPTION
       Weaver prints a pattern. Signs stand behind a stroke, and a tie
       is set by its number.

SIGNS
       /k     knits a stitch through the front loop

       /w     winds the yarn on the shuttle

       /W     wraps the yarn twice around the needle and turns the
              work

TIES
       Every tie needs wool. The ties are these.

       Tie     Wool     Rest
       ------------------------
       -1      20 g     5 g
       -2      45 g     8 g
"""
OVEN = """<h1>Oven</h1><p>The panel shows %A and the like.</p><dl><dt>A<dd>The door is open.
<dt>B<dd>The lower fan is blocked.<dt>H<dd>The water tank is empty.</dl>"""


async def test_a_sign_and_a_row_are_found_by_what_they_are_called(tmp_path: Path) -> None:
    (tmp_path / "weaver.txt").write_text(WEAVER, encoding="utf-8")
    (tmp_path / "oven.html").write_text(OVEN, encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([tmp_path / "weaver.txt", tmp_path / "oven.html"])
    wraps = await base.ask("What does /W do?")
    assert wraps.citations[0].quote.startswith("/W\n:   wraps the yarn twice")
    tank = await base.ask("What does %H mean?")
    assert tank.citations[0].quote == "H\n:   The water tank is empty."
    rest = await base.ask("What is the rest of tie -2?")
    assert rest.candidate == "8 g"
    await base.close()
