"""Yes or no over a graph: the direction of the claim, other values, and what is left open."""

import pytest

from clew.engine import KnowledgeBase
from clew.reader.query_scorer import SCORER_FILE, QueryScorer
from clew.retrieve.claim_sides import Head, find_head, read_claim
from clew.retrieve.question import locate_names, parse_question
from conftest import OpenFilled, one_in_three

_ROWS = """
Borg Mining	subsidiary	Borg Haulage
Borg Haulage	sued	Hollis Drury
Hollis Drury	represented_by	Vera Lank
Vera Lank	advisor	Otto Prem
Otto Prem	spouse	Ida Prem
Noor Ames	appointed_by	Otto Prem
Eagle Owl	larger_than	Red Kite
Hollis Drury	lives_in	Tarrow
Vera Lank	lives_in	Kelm
"""


async def fill_court(base: KnowledgeBase) -> None:
    graph = base.settings.kb.parent / "court.tsv"
    graph.write_text(_ROWS.lstrip(), "utf-8")
    await base.import_graph(graph)


@pytest.fixture
async def court(open_filled: OpenFilled) -> KnowledgeBase:
    base = await open_filled(fill_court)
    base.scorer = QueryScorer.load()
    return base


@pytest.mark.skipif(not SCORER_FILE.is_file(), reason="the scorer's weights are not installed")
@pytest.mark.parametrize(
    ("question", "right"),
    one_in_three(
        [
            ("Is Borg Haulage a subsidiary of Borg Mining?", "Yes"),
            ("Is Borg Mining a subsidiary of Borg Haulage?", "No"),
            ("Is Borg Mining the parent of Borg Haulage?", "Yes"),
            ("Did Hollis Drury sue Borg Haulage?", "No"),
            ("Did Borg Haulage sue Hollis Drury?", "Yes"),
            ("Does Vera Lank represent Hollis Drury?", "Yes"),
            ("Was Otto Prem appointed by Noor Ames?", "No"),
            ("Is Ida Prem married to Otto Prem?", "Yes"),
            ("Is the Red Kite larger than the Eagle Owl?", "No"),
            ("Does Hollis Drury live in Kelm?", "No"),
        ]
    ),
)
async def test_a_claim_is_true_in_its_own_direction_alone(
    court: KnowledgeBase, question: str, right: str
) -> None:
    answer = await court.ask(question, recipe="lego-12")
    assert (answer.candidate, answer.confidence >= 0.5) == (right, True)
    assert answer.citations


@pytest.mark.skipif(not SCORER_FILE.is_file(), reason="the scorer's weights are not installed")
async def test_where_somebody_lives_who_lives_nowhere_is_left_open(court: KnowledgeBase) -> None:
    answer = await court.ask("Does Noor Ames live in Tarrow?", recipe="lego-12")
    assert answer.candidate not in ("Yes", "No") and answer.confidence < 0.5


@pytest.mark.parametrize(
    ("question", "label", "head"),
    [
        ("Is Ash the child of Elm?", "child", "second"),
        ("Is Ash the child of Elm?", "child of", "first"),
        ("Is Ash the child of Elm?", "parent", "first"),
        ("Is Ash Elm's mother?", "parents", "second"),
        ("Is Ash's employer Elm?", "employer", "first"),
        ("Was Ash taught by Elm?", "teacher of", "second"),
        ("Did Ash own Elm?", "owner", "second"),
        ("Does Ash employ Elm?", "employee", "first"),
        ("Did Ash follow Elm?", "preceded by", "first"),
        ("Does Ash rival Elm?", "opponent", "either"),
        ("Is Ash the boss of Elm?", "reports to", ""),
    ],
)
async def test_the_head_of_a_fact_that_says_a_claim(
    base: KnowledgeBase, question: str, label: str, head: Head
) -> None:
    claim = read_claim(parse_question(question, locate_names(question, ["Ash", "Elm"])))
    assert claim is not None
    async with base.store.snapshot() as now:
        ctx = await base.context(now, question)
        assert await find_head(ctx, claim, label) == head
