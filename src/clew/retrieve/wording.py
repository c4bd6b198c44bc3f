"""Judges a text by its wording: linear models on the vectors of the default embedder.

They know more wordings than a list can hold. Where it matters how a question is built, its shape
counts beside its vector. The weights are fitted on wordings of our own and tested on others
(`bench/wordings.py`), and stored beside this module.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

import numpy as np

from clew.adapters import AdaptedEmbedder
from clew.context import Context
from clew.graph.csr import Floats
from clew.retrieve.question_shape import describe_shape

Task = Literal["breadth", "courtesy", "closing", "command", "steps"]


def can_judge(ctx: Context, text: str = "") -> bool:
    """Whether the models know the embedder in use, and its vectors know the words of a text."""
    embed = ctx.embed
    if embed is None or isinstance(embed, AdaptedEmbedder):
        return False
    return embed.name.startswith(_load_weights()[0]) and ctx.meaning(text) >= 1


async def judge(ctx: Context, task: Task, texts: Sequence[str]) -> list[float]:
    """Return for each text the probability of what is asked; ask `can_judge` first."""
    weights = _load_weights()[1][task]
    logits = np.array(await ctx.vectors(texts), np.float32) @ weights[:-1] + weights[-1]
    logits = logits + [_score_shape(task, text) for text in texts]
    chances: list[float] = (1 / (1 + np.exp(-np.clip(logits, -30, 30)))).tolist()
    return chances


def _score_shape(task: Task, text: str) -> float:
    """Return what the shape of a text adds; nothing for a task that goes by vectors alone."""
    weights = _load_weights()[2].get(task)
    if not weights:
        return 0.0
    return sum(weights.get(name, 0.0) * value for name, value in describe_shape(text).items())


@cache
def _load_weights() -> tuple[str, Mapping[str, Floats], Mapping[str, Mapping[str, float]]]:
    """Return the embedder's name, and by task the weights of vectors and of shapes.

    Those of vectors are one per dimension with the offset last.
    """
    text = files("clew.retrieve").joinpath("wording_weights.json").read_text(encoding="utf-8")
    stored = json.loads(text)
    name: str = stored.pop("embedder")
    shapes: Mapping[str, Mapping[str, float]] = stored.pop("shapes")
    vectors = {task: np.array(weights, np.float32) for task, weights in stored.items()}
    return name, vectors, shapes
