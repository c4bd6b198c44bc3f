"""Linking: which names a question holds, and which phrases it does not."""

import pytest

from clew.engine import KnowledgeBase
from clew.names import tokens
from clew.retrieve.link import link_names
from clew.view import View
from conftest import document, stream

PAGES = (
    document("birth", "Place of birth is where one is born.", "Place of birth"),
    document("film", "Changed It is a song by Nicki Minaj.", "Changed It"),
    document("singer", "Nicki Minaj was born in Port of Spain.", "Nicki Minaj"),
    document("king", "Lothair II was king of Lotharingia.", "Lothair II"),
    document("movie", "Salt is a film.", "Salt (2010 film)"),
    document("poet", "Ибн Сина был учёным из Бухары.", "Ибн Сина"),
    document("beijing", "北京是中国的首都。", "北京"),
    document("tolkien", "J. R. R. Tolkien wrote books.", "J. R. R. Tolkien"),
)


async def linked(base: KnowledgeBase, question: str) -> set[str]:
    await base.take(stream(PAGES))
    async with base.store.snapshot() as now:
        view = View(now.arrays, {})
        t = tokens(question)
        names = link_names(view, question, t)
        return {question[t.starts[one.first] : t.ends[one.last - 1]] for one in names}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is the place of birth of the performer of song Changed It?", {"Changed It"}),
        ("When did Lothair Ii's mother die?", {"Lothair Ii"}),
        ("who is nicki minaj", {"nicki minaj"}),
        ("Who directed Salt (2010 film)?", {"Salt (2010 film"}),
        ("Who directed Salt?", {"Salt"}),
        ("Где родился Ибн Сина?", {"Ибн Сина"}),
        ("北京在哪里？", {"北京"}),
        ("What did J.R.R. Tolkien write?", {"J.R.R. Tolkien"}),
        ("Is it so?", set()),
    ],
)
async def test_names_in_questions(base: KnowledgeBase, question: str, expected: set[str]) -> None:
    assert await linked(base, question) == expected
