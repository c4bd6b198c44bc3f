"""The knowledge base as steps that can be taken, and what their labels say."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.graph.traverse import Ints, Ways
from clew.names import relation_words
from clew.retrieve.naming.labels import relation_names
from clew.types import Kind
from clew.view import View

Floats = NDArray[np.float32]

# With more relations than this, and sentences that have vectors, the sentence says more.
MANY_RELATIONS = 512
_MOST_KEPT = 100_000  # texts whose vectors are kept with a generation


def ways_of(view: View, within: Ints | None = None) -> Ways:
    """The whole graph, or the part of it that holds the facts `within` (ascending)."""
    names = len(view.arrays.get("relation_fact", ()))
    labels = view.relations
    if names > MANY_RELATIONS and has_vectors(view, "fact"):
        labels = np.full(len(labels), -1, np.int32)
    facts, members = view.links("entity_fact"), view.links("fact_entity")
    return Ways(facts, members, labels, names, within)


def has_vectors(view: View, kind: Kind) -> bool:
    """Whether elements of this kind were embedded."""
    matrix = view.matrices.get(kind)
    return matrix is not None and len(matrix) > 0


async def label_words(ctx: Context) -> list[str]:
    """The wording of every relation, as people would write it."""
    if "label words" not in ctx.view.memo:
        names = await relation_names(ctx)
        ctx.view.memo["label words"] = [relation_words(name).lower() for name in names]
    words: list[str] = ctx.view.memo["label words"]
    return words


async def kept_vectors(ctx: Context, texts: Sequence[str]) -> Floats:
    """Vectors of texts that many questions need (words, labels, names), kept with a generation."""
    kept: dict[str, Floats] = ctx.view.memo.setdefault("kept vectors", {})
    lacking = [text for text in dict.fromkeys(texts) if text not in kept]
    if lacking:
        if len(kept) > _MOST_KEPT:
            kept.clear()
            lacking = list(dict.fromkeys(texts))
        if ctx.embed is None:
            await ctx.vectors(lacking)  # says what to do about it
        else:
            # As passages: what was learnt about questions does not apply to them.
            made = await ctx.embed(lacking, role="passage")
            kept.update(zip(lacking, made, strict=True))
    if not texts:
        return np.zeros((0, 1), np.float32)
    return np.array([kept[text] for text in texts], np.float32)


def direction(vectors: Floats) -> Floats:
    """Where some vectors point together, at length 1."""
    total = vectors.sum(axis=0)
    unit: Floats = (total / max(float(np.linalg.norm(total)), 1e-9)).astype(np.float32)
    return unit
