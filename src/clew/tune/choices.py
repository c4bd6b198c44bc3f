"""What an encoder learns to choose by: the texts that are right, and those that only seem so."""

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from clew.adapt.choice import Choice
from clew.context import Context
from clew.evaluate.datasets import Question
from clew.graph.traverse import Ints
from clew.retrieve.paths.meaning import WEIGHTS
from clew.retrieve.rank import best
from clew.store.merge import embedded_text
from clew.store.protocol import Snapshot
from clew.tune.examples import Learnable

_WRONG = 8  # paths or passages that only seem right, for one question


def path_choice(one: Learnable, words: list[str]) -> Choice:
    """The relations of right paths, and of the wrong ones that score best, whatever their order."""
    said = [tuple(sorted(words[code >> 1] for code in row if code >= 0)) for row in _rows(one)]
    right = dict.fromkeys(said[at] for at in np.flatnonzero(one.path.right).tolist())
    order = np.argsort(-(one.path.seen @ WEIGHTS), kind="stable").tolist()
    wrong = [text for text in dict.fromkeys(said[at] for at in order) if text not in right]
    return Choice(one.rest, tuple(right), tuple(wrong[:_WRONG]))


def _rows(one: Learnable) -> list[list[int]]:
    return cast(list[list[int]], one.path.codes.tolist())


async def passage_choices(
    ctx: Context, now: Snapshot, questions: Sequence[Question], documents: Mapping[str, Ints]
) -> list[Choice]:
    """The gold passages of each question, and the nearest that are not."""
    keys = ctx.view.keys("chunk")
    found = []
    for question in questions:
        gold = np.unique(np.concatenate([documents[d] for d in question.gold if d in documents]))
        asked = await ctx.vector(question.text)
        near = best(ctx.view.similar("chunk", asked), keys, _WRONG + len(gold))
        wrong = near[~np.isin(near, gold)][:_WRONG]
        wanted = keys[np.append(gold, wrong).astype(np.int64)].tolist()
        held = await now.chunks(wanted)
        texts = [(embedded_text(held[key]),) for key in wanted]
        found.append(Choice(question.text, tuple(texts[: len(gold)]), tuple(texts[len(gold) :])))
    return found
