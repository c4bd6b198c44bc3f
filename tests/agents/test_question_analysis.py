"""Names in a question: with the parenthesis that belongs to them, and no pronouns."""

import pytest

from clew.agents.rules.question_analysis import find_names
from clew.engine import KnowledgeBase
from clew.index.view import View
from conftest import document, stream


async def test_a_longer_name_beside_a_shorter_one_is_another(base: KnowledgeBase) -> None:
    await base.take(stream([document("mixer", "The Norrid 4 mixes dough.", "Norrid 4")]))
    async with base.store.snapshot() as now:
        view = View(now.arrays, {})
        both = find_names(view, "Which is heavier, the Norrid 4 or the Norrid 4 Pro?")
        assert [name.removeprefix("the ") for name in both] == ["Norrid 4", "Norrid 4 Pro"]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who made Salt (2010 film)?", ["Salt (2010 film)"]),
        ("Who made it (as in Salt)?", ["Salt"]),
        ("Who made Salt?", ["Salt"]),
        ("Salt is over. Am I allowed to leave?", ["Salt"]),
        ("Should I see Salt?", ["Salt"]),
    ],
)
async def test_names_of_a_question(base: KnowledgeBase, question: str, names: list[str]) -> None:
    await base.take(stream([document("movie", "Salt is a film.", "Salt (2010 film)")]))
    async with base.store.snapshot() as now:
        assert find_names(View(now.arrays, {}), question) == names
