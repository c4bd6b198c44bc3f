"""Answers composed in code: every line has the numbers of its citations."""

from pathlib import Path

import pytest

from clew.agents.answering.extractive import answer_from_paths
from clew.agents.answering.write import compose_answer
from clew.agents.core.scratchpad import Note
from clew.engine import KnowledgeBase
from clew.retrieve.rank import ANSWER_MARK
from clew.types import Citation, Evidence, Found, Hit

FIRST = Citation("bridge", "c1", 0, 5, "It was designed by Ilse Brandvik.")
SECOND = Citation("ilse", "c2", 0, 5, "She was born in Hallowmere")
NOTES = (
    Note("Who designed it?", "Ilse Brandvik", citation=FIRST),
    Note("Where was she born?", "Hallowmere", citation=SECOND, name="Hallowmere town"),
    Note("When?"),
)


@pytest.mark.parametrize(
    ("short", "first"),
    [
        ("Hallowmere", "Hallowmere [2]"),
        ("Hallowmere town", "Hallowmere town [2]"),
        ("Ilse Brandvik", "Ilse Brandvik [1]"),
        ("the same", "the same [1][2]"),
    ],
)
async def test_the_answer_is_cited_by_the_note_that_contains_it(
    valley: KnowledgeBase, short: str, first: str
) -> None:
    async with valley.store.snapshot() as now:
        ctx = await valley.context(now, "Where was the designer born?")
        answer = compose_answer(ctx, Evidence(), NOTES, short)
    assert answer.answer.splitlines() == [
        first,
        "- Who designed it? Ilse Brandvik [1]",
        "- Where was she born? Hallowmere [2]",
    ]
    assert answer.citations == (FIRST, SECOND)
    assert answer.candidate == short


async def test_an_unsupported_answer_is_marked(valley: KnowledgeBase) -> None:
    async with valley.store.snapshot() as now:
        ctx = await valley.context(now, "Where was the designer born?")
        answer = compose_answer(ctx, Evidence(), [Note("Where?", "Vessen")], "Vessen")
    assert answer.answer.startswith("Vessen ")
    assert "not supported" in answer.answer and "[" not in answer.answer.replace("[not", "")
    assert answer.citations == ()


async def test_a_candidate_without_a_path_is_named_without_a_citation(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    file = tmp_path / "g.tsv"
    file.write_text("Ada\tknows\tBob\nBob\tborn_in\tParis\n", encoding="utf-8")
    await base.import_graph(file)
    async with base.store.snapshot() as now:
        ctx = await base.context(now, "Whom does Ada know?")
        [named] = ctx.view.find_by_own_name(["Bob"])
        found = Found(entities=(Hit(int(named[0]), 1.0, ANSWER_MARK),))
        answer = await answer_from_paths(ctx, Evidence(), found)
    assert (answer.answer, answer.candidate, answer.citations) == ("Bob", "Bob", ())
