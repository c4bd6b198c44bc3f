"""What people read: drafts and checked answers, places and quotes, traces in words."""

from dataclasses import replace

import pytest

from clew.agents.base import Answer
from clew.cli.chat import StreamPrinter
from clew.cli.render import print_answer, step_name
from clew.context import AnswerDelta, StepEnded, StepStarted, TraceStep
from clew.recipes.registry import RECIPES
from clew.retrieve.step import Chain, Fork
from clew.types import Citation, Evidence, Route


def test_steps_are_called_by_their_names() -> None:
    forked = next(step for step in RECIPES["rograg-dual"].steps if isinstance(step, Fork))
    assert step_name(repr(forked)) == "Fork of low and high"
    assert step_name(repr(Chain("low", ()))) == "low"
    for recipe in RECIPES.values():
        for step in recipe.steps:
            assert step_name(repr(step)).startswith(getattr(step, "name", type(step).__name__))


def test_a_draft_has_its_own_line_and_says_what_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    teller = StreamPrinter()
    teller(StepStarted("answer", "Where?", 0))
    teller(AnswerDelta("Born in "))
    teller(AnswerDelta("Hallowmere."))
    teller(StepEnded(TraceStep("answer", "Where?", "Hallowmere", 0.0), 0))
    teller.end_line()
    teller.begin_answer()
    told = capfd.readouterr()
    assert told.out == (
        "draft, not checked yet:\nBorn in Hallowmere.\n\nchecked against the documents:\n"
    )
    assert told.err.splitlines() == ["answer Where?", "→ Hallowmere"]


def test_where_nothing_was_drafted_nothing_is_said_of_it(capfd: pytest.CaptureFixture[str]) -> None:
    teller = StreamPrinter()
    teller(StepStarted("search", "Where?", 0))
    teller.end_line()
    teller.begin_answer()
    assert capfd.readouterr().out == ""


def answer(text: str, quote: str) -> Answer:
    cited = (Citation("harbor.md", "c", 243, 243 + len(quote), quote),)
    return Answer("Where?", "reader", text, "answered", cited, Evidence(), (), 0.0)


def test_a_written_answer_shows_what_it_cites(capfd: pytest.CaptureFixture[str]) -> None:
    print_answer(answer("Ventspils [1]", "She was born in [old] Ventspils."), trace=False)
    told = capfd.readouterr().out
    assert "[1] harbor.md, characters 243–275: “She was born in [old] Ventspils.”" in told
    print_answer(answer("Ventspils [1]", "She was born. " * 100), trace=False)
    assert "born. She …”" in capfd.readouterr().out


def test_a_quoting_answer_shows_its_quotes_once(capfd: pytest.CaptureFixture[str]) -> None:
    print_answer(answer("“Born in Graz.” [1]", "Born in Graz."), trace=False)
    assert capfd.readouterr().out.count("Born in Graz.") == 1


def test_a_short_answer_that_the_text_does_not_have_is_shown(
    capfd: pytest.CaptureFixture[str],
) -> None:
    said = answer("Ilse Brandvik was born in Graz. [1]", "Born in Graz.")
    print_answer(replace(said, candidate="yes"), trace=False)
    assert capfd.readouterr().out.startswith("Answer: yes\n\nIlse Brandvik")
    print_answer(replace(said, candidate="Graz"), trace=False)
    assert "Answer:" not in capfd.readouterr().out
    refused = replace(said, candidate="yes", verdict="refused")
    print_answer(refused, trace=False)
    assert "Answer:" not in capfd.readouterr().out


def test_only_the_path_to_the_answer_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    paths = (
        Route(("Bridge", "Ilse", "Medal"), ("designed by Ilse", "received a medal"), 1.0),
        Route(("Bridge", "Ilse", "Hallowmere", "Sea"), ("designed by Ilse", "born", "by"), 0.9),
    )
    found = Evidence(paths=paths)
    answer = Answer("q", "clew", "Hallowmere", "answered", (), found, (), 0.0, "Hallowmere")
    print_answer(answer, trace=False)
    said = capsys.readouterr().out
    assert "→ Hallowmere" in said
    assert "Medal" not in said and "Sea" not in said
    print_answer(replace(answer, candidate="Oslo"), trace=False)
    assert "Path" not in capsys.readouterr().out
