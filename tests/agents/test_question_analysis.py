"""A name in a question takes along the bracket it opens, and no other."""

import pytest

from clew.agents.rules.question_analysis import find_names
from clew.engine import KnowledgeBase
from clew.index.view import View
from conftest import document, stream


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who made Salt (2010 film)?", ["Salt (2010 film)"]),
        ("Who made it (as in Salt)?", ["Salt"]),
        ("Who made Salt?", ["Salt"]),
    ],
)
async def test_brackets(base: KnowledgeBase, question: str, names: list[str]) -> None:
    await base.take(stream([document("movie", "Salt is a film.", "Salt (2010 film)")]))
    async with base.store.snapshot() as now:
        assert find_names(View(now.arrays, {}), question) == names
