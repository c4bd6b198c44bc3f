"""A fact about one thing is not told as one about another that its page only mentions."""

import pytest

from clew.agents.base import Answer
from clew.engine import KnowledgeBase
from conftest import OpenFilled, document, stream

PAGES = {
    "Orle Canal": "The Orle Canal joins the river Tamsk with the sea. It is 47 kilometres long.",
    "Hume": "Hume is an old town. Hume is twinned with Brask. Its mayor is Pavel Lind.",
    "Brask": "Brask is a port. The customs hall was built in 1871. Ships are built there.",
    "Mill Works": "Mill Works makes paper. It belongs to Storm Group. It employed 340 people.",
    "Storm Group": "Storm Group is a holding. Its chief executive is Tom Reyl.",
    "Edda Moe": "Edda Moe ran a workshop. She trained 11 pupils, among them Ole Falk.",
    "Rast Foundry": "Rast Foundry casts bells in Hume. The firm was founded in 1902 by Jon Weil.",
    "Ole Falk": "Ole Falk took photographs. He died in Hume.",
    "Low Water": "Low Water is a film. The score was written by Ada Quade.",
    "Ada Quade": "Ada Quade was a composer, born on 5 May 1919 in Brask.",
    "Vinter": "Vinter makes tools. Its first plane, the Sparrow, came out in 1931. It sold well. "
    "The plane was drawn by Liv Aas. She also drew a chisel. Her workshop is in Tolne.",
}


async def fill_towns(base: KnowledgeBase) -> None:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in PAGES.items()]))


@pytest.fixture
async def towns(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_filled(fill_towns)


async def ask(towns: KnowledgeBase, question: str) -> Answer:
    return await towns.ask(question, mode="open", k=8)


@pytest.mark.parametrize(
    ("question", "wrong"),
    [
        ("How long is the river Tamsk?", "47 kilometres"),
        ("Who is the mayor of Brask?", "Pavel Lind"),
        ("How many people has Storm Group employed?", "340 people"),
        ("How many pupils did Ole Falk train?", "11 pupils"),
        ("When was the customs hall of Hume built?", "1871"),
        ("When was the town of Hume founded?", "1902"),
    ],
)
async def test_what_is_said_of_another_thing_is_unsure(
    towns: KnowledgeBase, question: str, wrong: str
) -> None:
    answer = await ask(towns, question)
    assert answer.candidate == wrong
    assert answer.signals["other subject"] == 1
    assert answer.confidence < 0.5


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("How long is the Orle Canal?", "47 kilometres"),
        ("Who is the mayor of Hume?", "Pavel Lind"),
        ("When was Rast Foundry founded?", "1902"),
        ("Who is the chief executive of the owner of Mill Works?", "Tom Reyl"),
        ("How many pupils did Edda Moe train?", "11 pupils"),
        ("When was the composer of Low Water born?", "5 May 1919"),
        ("Who drew the Sparrow?", "Liv Aas"),
        ("Where is the workshop of Liv Aas?", "Tolne"),
    ],
)
async def test_what_is_said_of_it_or_reached_by_a_relation_is_not(
    towns: KnowledgeBase, question: str, right: str
) -> None:
    answer = await ask(towns, question)
    assert (answer.candidate, answer.signals["other subject"]) == (right, 0)
