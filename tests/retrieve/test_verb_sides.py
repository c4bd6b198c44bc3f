"""Which end of a relation a question's verb asks for, and which kind of thing it asks for."""

from pathlib import Path

import pytest

from clew.engine import KnowledgeBase

_ROWS = """
Tall Heron	eats	Silver Roach
Silver Roach	eats	Mayfly
Roof Tool	depends_on	Base Tool
Base Tool	maintainer	Ada Lindqvist
Mill Trust	founded_by	Jonas Ek
Jonas Ek	teaches	Kira Moss
Kira Moss	teaches	Levin Aho
"""


@pytest.fixture
async def rows(base: KnowledgeBase, tmp_path: Path) -> KnowledgeBase:
    graph = tmp_path / "rows.tsv"
    graph.write_text(_ROWS.lstrip(), "utf-8")
    await base.import_graph(graph)
    return base


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("What is the Silver Roach eaten by?", "Tall Heron"),
        ("Which bird eats the Silver Roach?", "Tall Heron"),
        ("What does the Silver Roach eat?", "Mayfly"),
        ("What is eaten by the Silver Roach?", "Mayfly"),
        ("Who teaches Kira Moss?", "Jonas Ek"),
        ("Whom did Kira Moss teach?", "Levin Aho"),
    ],
)
async def test_the_side_of_the_verb_says_which_end_is_meant(
    rows: KnowledgeBase, question: str, right: str
) -> None:
    answer = await rows.ask(question, recipe="lego-12")
    assert answer.candidate == right


@pytest.mark.parametrize(
    "question",
    [
        "Who eats the Tall Heron?",
        "What does Base Tool depend on?",
        "What does the Mayfly eat?",
        "What depends on Roof Tool?",
        "Who teaches Jonas Ek?",
    ],
)
async def test_the_other_end_of_a_verb_is_no_answer(rows: KnowledgeBase, question: str) -> None:
    answer = await rows.ask(question, recipe="lego-12")
    assert answer.confidence < 0.5


async def test_a_noun_for_who_acts_has_its_verb(rows: KnowledgeBase) -> None:
    who = await rows.ask("Who maintains Base Tool?", recipe="lego-12")
    what = await rows.ask("Which tool does Ada Lindqvist maintain?", recipe="lego-12")
    assert (who.candidate, what.candidate) == ("Ada Lindqvist", "Base Tool")
    assert "wrong side" not in {**who.signals, **what.signals}


@pytest.mark.parametrize(
    "question",
    ["When was Mill Trust founded?", "How old is Kira Moss?"],
)
async def test_a_name_is_no_date_and_no_number(rows: KnowledgeBase, question: str) -> None:
    answer = await rows.ask(question, recipe="lego-12")
    assert answer.confidence < 0.5
