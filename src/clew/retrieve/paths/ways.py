"""Relation labels and cached text vectors, and the graph as steps along relations."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.graph.traverse import FactGraph, Ints
from clew.names import relation_to_words
from clew.retrieve.naming.labels import relation_names
from clew.types import Kind
from clew.view import View

Floats = NDArray[np.float32]

# With more relations than this, and embedded sentences, steps are scored by their sentences.
MAX_RELATION_LABELS = 512
_MAX_CACHED_VECTORS = 100_000  # texts whose vectors are cached per generation


def build_traversal(view: View, within: Ints | None = None) -> FactGraph:
    """Return the whole graph, or the part with the facts `within` (ascending), as steps."""
    names = len(view.arrays.get("relation_fact", ()))
    labels = view.relations
    if names > MAX_RELATION_LABELS and has_vectors(view, "fact"):
        labels = np.full(len(labels), -1, np.int32)
    facts, members = view.links("entity_fact"), view.links("fact_entity")
    return FactGraph(facts, members, labels, names, within)


def has_vectors(view: View, kind: Kind) -> bool:
    """Tell whether elements of this kind were embedded."""
    matrix = view.matrices.get(kind)
    return matrix is not None and len(matrix) > 0


async def load_relation_texts(ctx: Context) -> list[str]:
    """Return every relation's label in plain words."""
    if "label words" not in ctx.view.memo:
        names = await relation_names(ctx)
        ctx.view.memo["label words"] = [relation_to_words(name).lower() for name in names]
    words: list[str] = ctx.view.memo["label words"]
    return words


async def embed_cached(ctx: Context, texts: Sequence[str]) -> Floats:
    """Embed texts that many questions share (words, labels, names); cached per generation."""
    cache: dict[str, Floats] = ctx.view.memo.setdefault("kept vectors", {})
    missing = [text for text in dict.fromkeys(texts) if text not in cache]
    if missing:
        if len(cache) > _MAX_CACHED_VECTORS:
            cache.clear()
            missing = list(dict.fromkeys(texts))
        if ctx.embed is None:
            await ctx.vectors(missing)  # raises an error that says what to do
        else:
            # As passages: the query adapter does not apply to them.
            embedded = await ctx.embed(missing, role="passage")
            cache.update(zip(missing, embedded, strict=True))
    if not texts:
        return np.zeros((0, 1), np.float32)
    return np.array([cache[text] for text in texts], np.float32)


def mean_direction(vectors: Floats) -> Floats:
    """Return the normalised sum of vectors."""
    total = vectors.sum(axis=0)
    unit: Floats = (total / max(float(np.linalg.norm(total)), 1e-9)).astype(np.float32)
    return unit
