"""Which end of a relation a question's verb asks for, and which kind of thing it asks for."""

import pytest

from clew.engine import KnowledgeBase
from clew.reader.query_scorer import SCORER_FILE, QueryScorer
from conftest import OpenFilled

_ROWS = """
Tall Heron	eats	Silver Roach
Silver Roach	eats	Mayfly
Roof Tool	depends_on	Base Tool
Base Tool	maintainer	Ada Lindqvist
Mill Trust	founded_by	Jonas Ek
Nils Roo	employer	Vinter Yard
Olga Rask	employer	Vinter Yard
Vinter Yard	chief_executive	Pia Holm
Pia Holm	lives_at	Tarnby
Tarnby	part_of	Norway
Jonas Ek	teaches	Kira Moss
Kira Moss	teaches	Levin Aho
"""


async def fill_rows(base: KnowledgeBase) -> None:
    graph = base.settings.kb.parent / "rows.tsv"
    graph.write_text(_ROWS.lstrip(), "utf-8")
    await base.import_graph(graph)


@pytest.fixture
async def rows(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_filled(fill_rows)


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


async def test_who_works_for_an_employer_are_those_that_have_it(rows: KnowledgeBase) -> None:
    answer = await rows.ask("Who works for Vinter Yard?", recipe="lego-12")
    assert "Nils Roo" in answer.answer and "Olga Rask" in answer.answer
    assert "Pia Holm" not in answer.answer


async def test_a_role_in_capitals_is_no_name_that_the_graph_lacks(rows: KnowledgeBase) -> None:
    role = await rows.ask("Who is the CEO of Vinter Yard?", recipe="lego-12", mode="reject")
    name = await rows.ask("Who at ZORB hired Vinter Yard?", recipe="lego-12", mode="reject")
    assert role.signals["named"] == 1.0 if role.signals else "CEO" not in role.missing
    assert "ZORB" in name.missing


@pytest.mark.skipif(not SCORER_FILE.is_file(), reason="the scorer's weights are not installed")
@pytest.mark.parametrize(
    "asked",
    [
        "Who delivers the Base Tool",
        "Could you please tell me: Who delivers the Base Tool?",
        "Hi, I would like to know Who delivers the Base Tool, thanks",
    ],
)
async def test_courtesy_and_marks_change_no_path(rows: KnowledgeBase, asked: str) -> None:
    rows.scorer = QueryScorer.load()
    plain = await rows.ask("Who delivers the Base Tool?", recipe="lego-12")
    polite = await rows.ask(asked, recipe="lego-12")
    assert polite.answer == plain.answer
    for signal in ("asked", "chance", "fit of path"):
        assert polite.signals[signal] == pytest.approx(plain.signals[signal])


async def test_a_country_is_one_step_beyond_the_town(rows: KnowledgeBase) -> None:
    answer = await rows.ask("In which country lives Pia Holm?", recipe="lego-12")
    town = await rows.ask("In which town lives Pia Holm?", recipe="lego-12")
    assert (answer.candidate, town.candidate) == ("Norway", "Tarnby")
