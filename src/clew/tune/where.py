"""Measures the query adapter recipe by recipe on held-out questions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clew.adapt.values import AdaptedEmbedder, QueryAdapter
from clew.context import Context
from clew.evaluate.datasets import Question
from clew.graph.traverse import Ints
from clew.llm.embed import Embedder
from clew.recipes import get_recipe
from clew.retrieve.step import Chain
from clew.types import Found

_RECALL_AT = 5  # passages among which gold documents are counted
_MAX_QUESTIONS = 100  # questions a recipe is measured on: enough to see one point, in a few seconds


@dataclass(frozen=True, slots=True)
class RecipeTrial:
    """A recipe's recall on held-out questions, without and with the query adapter."""

    recipe: str
    before: float
    """Mean share of the gold documents among the first five passages."""
    after: float
    used: bool
    """Whether the gain is more than its standard error: only then does the recipe use it."""


async def try_recipe(
    ctx: Context,
    recipe: str,
    questions: Sequence[Question],
    learnt: QueryAdapter,
    documents: dict[str, Ints],
) -> RecipeTrial:
    """Run the held-out questions without and with the adapter."""
    chain = get_recipe(recipe)
    assert ctx.embed is not None
    before = await measure_recalls(ctx, chain, questions, ctx.embed, documents)
    after = await measure_recalls(
        ctx, chain, questions, AdaptedEmbedder(ctx.embed, learnt), documents
    )
    gain = after - before
    standard_error = gain.std() / np.sqrt(len(gain))
    used = bool(gain.mean() > standard_error)
    return RecipeTrial(recipe, float(before.mean()), float(after.mean()), used)


async def measure_recalls(
    ctx: Context,
    chain: Chain,
    questions: Sequence[Question],
    embed: Embedder,
    documents: dict[str, Ints],
) -> NDArray[np.float64]:
    """Return for each question the share of its gold documents that a recipe finds first."""
    found = []
    for question in questions[:_MAX_QUESTIONS]:
        asking = replace(
            ctx,
            question=question.text,
            given_entities=question.entities,
            embed=embed,
            trace=[],
            _vectors={},
        )
        chunks = (await chain(asking, Found())).chunks[:_RECALL_AT]
        top = np.array([hit.at for hit in chunks], np.int64)
        gold = [documents[name] for name in question.gold if name in documents]
        found.append(np.mean([bool(np.isin(one, top).any()) for one in gold]))
    return np.array(found, np.float64)
