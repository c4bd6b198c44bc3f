"""Linking: which names a question holds, and which phrases it does not."""

import pytest

from clew.engine import KnowledgeBase
from clew.index.view import View
from clew.retrieve.linking.link_names import LinkNames, link_names
from clew.retrieve.question import remove_names
from clew.text.names import tokenize
from clew.types import Found
from conftest import VALLEY, document, stream

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
        t = tokenize(question)
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


@pytest.mark.parametrize(
    ("question", "name", "rest"),
    [
        ("Who made Salt (2010 film)?", "Salt (2010 film", "Who made ?"),
        ("Who (if any) made Salt?", "Salt", "Who (if any) made ?"),
        ("Who made it (as Salt)?", "Salt", "Who made it (as )?"),
    ],
)
def test_a_name_takes_its_closing_bracket_along(question: str, name: str, rest: str) -> None:
    t = tokenize(question)
    begin = question.index(name)
    first, last = t.starts.index(begin), t.ends.index(begin + len(name)) + 1
    assert remove_names(question, t, [(first, last)]) == rest


async def about(base: KnowledgeBase, question: str, step: LinkNames) -> dict[str, float]:
    """How surely each document is about what the question names."""
    async with base.store.snapshot() as now:
        ctx = await base.context(now, question)
        hits = (await step(ctx, Found())).chunks
        keys = ctx.view.keys("chunk")
        chunks = await now.chunks(keys.tolist())
        names = await now.names([chunk.document for chunk in chunks.values()])
        return {names[chunks[int(keys[hit.at])].document][0]: hit.score for hit in hits}


async def test_a_name_that_one_page_bears_means_that_page(base: KnowledgeBase) -> None:
    pages = (
        document("salt", "Salt is a mineral of the sea.", "Salt"),
        document("song", "Salt is a tune of the north.", "Salt (song)"),
    )
    await base.take(stream((*pages, *VALLEY)))
    plain = await about(base, "Who made Salt?", LinkNames(namesake=1.0))
    assert plain["song"] < plain["salt"]
    now = await about(base, "Who made Salt?", LinkNames(namesake=0.6))
    assert now == pytest.approx({"salt": plain["salt"], "song": 0.6 * plain["song"]})


async def test_where_names_are_merely_alike_none_is_the_one(base: KnowledgeBase) -> None:
    pages = (
        document("holly", "Holly Audrey Williams is a singer.", "Holly Audrey Williams"),
        document(
            "audrey", "Audrey Mae Sheppard Williams sang too.", "Audrey Mae Sheppard Williams"
        ),
    )
    await base.take(stream(pages))
    question = "Who was Audrey Williams?"
    plain = await about(base, question, LinkNames(namesake=1.0))
    assert plain and await about(base, question, LinkNames(namesake=0.1)) == plain
