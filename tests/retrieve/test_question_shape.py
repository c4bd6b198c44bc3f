"""The shape of a question says how it asks, whatever it asks about."""

import json
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

from clew.engine import KnowledgeBase
from clew.llm.embed import EmbedRole, Vectors
from clew.retrieve.breadth import judge_breadth
from clew.retrieve.question_shape import describe_shape, is_plural

STORED = json.loads(files("clew.retrieve").joinpath("wording_weights.json").read_text("utf-8"))


class Indifferent:
    """An encoder with the default one's name whose vectors say nothing either way."""

    name = "all-MiniLM-L6-v2/int8"

    def __init__(self) -> None:
        self.weights = np.array(STORED["breadth"], np.float32)
        self.dim = len(self.weights) - 1

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        direction = -self.weights[-1] * self.weights[:-1] / (self.weights[:-1] ** 2).sum()
        return np.array([direction for _ in texts], np.float32)


def test_questions_that_differ_in_their_matter_only_have_one_shape() -> None:
    assert describe_shape("How do bees sing?") == describe_shape("How do tariffs rise?")
    assert describe_shape("How do bees sing?") != describe_shape("How do I sing?")


def test_names_and_numbers_are_kinds_of_words() -> None:
    named = describe_shape("When did Anna Maria Berg leave Oslo in 1921?")
    assert {"has <name>", "has <number>", "when did <name>"} <= named.keys()
    assert "has <plural>" not in named
    assert "asks late" in describe_shape("The river that passes the mill rises where?")
    assert "asks twice" in describe_shape("How did it start, and who paid?")


@pytest.mark.parametrize(
    ("word", "plural"), [("mills", True), ("glass", False), ("physics", False), ("is", False)]
)
def test_plurals_are_told_by_their_end(word: str, plural: bool) -> None:
    assert is_plural(word) == plural


@pytest.mark.parametrize(
    ("question", "broad"),
    [
        ("How do beavers change the streams they live in?", True),
        ("What are the duties of stewards?", True),
        ("How did Anna Berg cross the Rhine in 1921?", False),
        ("Which year did the ferry sink?", False),
        ("The ferry was sold to whom?", False),
    ],
)
async def test_where_vectors_say_nothing_the_shape_decides(
    base: KnowledgeBase, question: str, broad: bool
) -> None:
    async with base.store.snapshot() as now:
        ctx = replace(await base.context(now, question), embed=Indifferent())
        assert await judge_breadth(ctx) == broad
