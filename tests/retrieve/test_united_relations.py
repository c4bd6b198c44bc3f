"""A relation and its inverse, of which a graph holds parts, are told and counted together."""

from pathlib import Path

import pytest

from clew.engine import KnowledgeBase
from clew.testing.word_scorer import WordScorer

_ROWS = """
Rhea Lund	supervises	Tom Ash
Rhea Lund	supervises	Una Bell
Una Bell	supervisor	Rhea Lund
Vic Orr	supervisor	Rhea Lund
Rhea Lund	supervisor	Max Dahl
Rhea Lund	lives_in	Skive
"""


@pytest.fixture
async def lab(base: KnowledgeBase, tmp_path: Path) -> KnowledgeBase:
    graph = tmp_path / "lab.tsv"
    graph.write_text(_ROWS.lstrip(), "utf-8")
    await base.import_graph(graph)
    return base


@pytest.mark.parametrize(
    ("phrases", "told"),
    [
        (["Rhea Lund supervises ?", "? supervisor Rhea Lund"], "3"),
        (["Rhea Lund supervises ?"], "2"),  # the other is not asked for
        (["Rhea Lund supervises ?", "Rhea Lund supervisor ?"], "2"),  # this is the other side
    ],
)
async def test_what_says_the_same_is_counted_once(
    lab: KnowledgeBase, phrases: list[str], told: str
) -> None:
    asked, opened = "How many people are in the care of Rhea Lund?", "which people are in the care"
    lab.scorer = WordScorer({asked: [], f"{opened} of Rhea Lund?": phrases})
    answer = await lab.ask(asked, recipe="lego-12")
    assert answer.candidate == told
    assert "Max Dahl" not in answer.answer


_FILMS = """
The Salt Stair	directed_by	Pia Merle
Cold Harbour	directed_by	Ugo Stern
Paper Moth	directed_by	Ugo Stern
Pia Merle	film	Nine Doors
Pia Merle	film	Paper Lamp
Ugo Stern	film	Grey Coast
The Salt Stair	year	1999
Nine Doors	year	2004
Paper Lamp	year	2008
Cold Harbour	year	2001
Paper Moth	year	2011
Grey Coast	year	2012
Pia Merle	born_in	Vaduz
"""


@pytest.mark.parametrize(
    ("phrases", "told"),
    [
        (["Pia Merle film ?", "? directed by Pia Merle"], "3"),
        (["Pia Merle film ?", "Pia Merle born in ?"], "2"),  # a town is no film
    ],
)
async def test_relations_without_a_common_word_are_united_if_both_are_surely_asked_for(
    base: KnowledgeBase, tmp_path: Path, phrases: list[str], told: str
) -> None:
    graph = tmp_path / "films.tsv"
    graph.write_text(_FILMS.lstrip(), "utf-8")
    await base.import_graph(graph)
    asked, opened = "How many works are by Pia Merle?", "which works are by"
    base.scorer = WordScorer({asked: [], f"{opened} Pia Merle?": phrases}, right=0.97)
    answer = await base.ask(asked, recipe="lego-12")
    assert answer.candidate == told
