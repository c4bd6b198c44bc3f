"""Quotes have the indented line that a sentence breaks off before, and the notes it refers to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import clew

FILES = {
    "kettle.txt": "Warming up\n==========\n\nThe kettle keeps water at 70 degrees. To raise this "
    "target for\none brew, call\n\n   set_target(kettle, 95);\n\nbefore the lid is closed.\n\n"
    "Cleaning\n========\n\nDescale the kettle each month with vinegar.\n",
    "hire.md": "# Hire of the hall\n\n## Deposit\n\nHirers of the hall pay a deposit of 80 "
    "euros[^dep]. The hall has 60 chairs.\n\n[^dep]: Schools pay no deposit.\n",
    "moss.rst": "Moss garden\n===========\n\nWatering\n--------\n\nThe moss garden is watered at "
    "dawn [1]_ from the upper pond.\n\n.. [1] From November to March it is not watered.\n",
}


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    folder: Path = tmp_path_factory.mktemp("papers")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    with clew.open(folder / "kb") as base:
        base.add([folder / name for name in FILES])
        yield base


@pytest.mark.parametrize(
    "question",
    ["How do I raise the target of the kettle?", "Which function raises the kettle's target?"],
)
def test_a_sentence_is_quoted_with_the_code_it_breaks_off_before(
    papers: clew.Kb, question: str
) -> None:
    quote = papers.ask(question).citations[0].quote
    assert "one brew, call" in quote
    assert "set_target(kettle, 95);" in quote and quote.endswith("before the lid is closed.")


@pytest.mark.parametrize(
    ("question", "said", "note"),
    [
        ("What deposit do hirers of the hall pay?", "80 euros", "Schools pay no deposit."),
        ("When is the moss garden watered?", "at dawn", "it is not watered."),
    ],
)
def test_a_footnote_is_quoted_with_what_refers_to_it(
    papers: clew.Kb, question: str, said: str, note: str
) -> None:
    answer = papers.ask(question)
    quotes = [one.quote for one in answer.citations]
    assert said in quotes[0] and any(one.endswith(note) for one in quotes)
    assert f"[{len(quotes)}]" in answer.answer
