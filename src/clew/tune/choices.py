"""Builds contrastive examples for the encoder from paths and passages."""

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from clew.adapt.choice import ContrastiveExample
from clew.context import Context
from clew.evaluate.datasets import Question
from clew.graph.traverse import Ints
from clew.retrieve.paths.meaning import FEATURE_WEIGHTS
from clew.retrieve.rank import top_positions
from clew.store.merge import embedded_text
from clew.store.protocol import Snapshot
from clew.tune.examples import PathTrainingQuestion

_MAX_NEGATIVES = 8  # hard negatives of one question


def make_contrastive_path(example: PathTrainingQuestion, words: list[str]) -> ContrastiveExample:
    """Return the relations of right paths, and of the best-scored wrong ones, in any order."""
    texts = [
        tuple(sorted(words[code >> 1] for code in row if code >= 0)) for row in _code_rows(example)
    ]
    right = dict.fromkeys(texts[at] for at in np.flatnonzero(example.path.is_right).tolist())
    order = np.argsort(-(example.path.features @ FEATURE_WEIGHTS), kind="stable").tolist()
    wrong = [text for text in dict.fromkeys(texts[at] for at in order) if text not in right]
    return ContrastiveExample(example.rest, tuple(right), tuple(wrong[:_MAX_NEGATIVES]))


def _code_rows(example: PathTrainingQuestion) -> list[list[int]]:
    return cast(list[list[int]], example.path.codes.tolist())


async def make_contrastive_passages(
    ctx: Context, now: Snapshot, questions: Sequence[Question], documents: Mapping[str, Ints]
) -> list[ContrastiveExample]:
    """Return the gold passages of each question, and the nearest others as negatives."""
    keys = ctx.view.keys("chunk")
    found = []
    for question in questions:
        gold = np.unique(np.concatenate([documents[d] for d in question.gold if d in documents]))
        asked = await ctx.vector(question.text)
        near = top_positions(ctx.view.cosines("chunk", asked), keys, _MAX_NEGATIVES + len(gold))
        wrong = near[~np.isin(near, gold)][:_MAX_NEGATIVES]
        wanted = keys[np.append(gold, wrong).astype(np.int64)].tolist()
        fetched = await now.chunks(wanted)
        texts = [(embedded_text(fetched[key]),) for key in wanted]
        found.append(
            ContrastiveExample(question.text, tuple(texts[: len(gold)]), tuple(texts[len(gold) :]))
        )
    return found
