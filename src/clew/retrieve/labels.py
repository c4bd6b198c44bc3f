"""Names of relations and types (arrays hold only their numbers), and cached text vectors."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from clew.context import Context
from clew.errors import VectorsDeferred
from clew.graph.csr import Floats
from clew.index.view import View
from clew.store.vector_records import STORED
from clew.text.names import relation_segments, relations_to_words
from clew.types import Kind

_ReadLabels = Callable[[list[int]], Awaitable[list[str]]]
_MAX_CACHED_VECTORS = 100_000  # texts whose vectors are cached per generation


async def relation_names(ctx: Context) -> list[str]:
    """Return the name of each relation, by its number in `view.relations`."""

    async def read(keys: list[int]) -> list[str]:
        relations = await ctx.snapshot.relations(keys)
        return [relations[key] for key in keys]

    return await _load_labels(ctx, "relation_fact", "fact", read)


async def type_names(ctx: Context) -> list[str]:
    """Return the name of each type, by its number in `view.types`."""

    async def read(keys: list[int]) -> list[str]:
        entities = await ctx.snapshot.entities(keys)
        return [entities[key].type for key in keys]

    return await _load_labels(ctx, "type_entity", "entity", read)


async def _load_labels(
    ctx: Context, examples: str, kind: Literal["fact", "entity"], read: _ReadLabels
) -> list[str]:
    """Read the names once per generation, each from one element that has it."""
    memo, name = ctx.view.memo, f"wordings of {examples}"
    if name not in memo:
        keys = ctx.view.keys(kind)
        memo[name] = await read([int(keys[at]) for at in ctx.view.arrays.get(examples, ())])
    names: list[str] = memo[name]
    return names


def has_vectors(view: View, kind: Kind) -> bool:
    """Tell whether elements of this kind were embedded."""
    matrix = view.matrices.get(kind)
    return matrix is not None and len(matrix) > 0


async def load_relation_texts(ctx: Context) -> list[str]:
    """Return every relation's label in plain words."""
    if "label words" not in ctx.view.memo:
        ctx.view.memo["label words"] = relations_to_words(await relation_names(ctx))
    words: list[str] = ctx.view.memo["label words"]
    return words


async def load_short_texts(ctx: Context) -> list[str]:
    """Return the last segment of every relation's label in plain words."""
    if "short labels" not in ctx.view.memo:
        last = [relation_segments(name)[-1] for name in await relation_names(ctx)]
        ctx.view.memo["short labels"] = relations_to_words(last)
    texts: list[str] = ctx.view.memo["short labels"]
    return texts


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


async def name_vectors(ctx: Context, names: Mapping[int, str]) -> dict[int, Floats]:
    """Return the vectors of some entities' names; made here if those of all are not made yet."""
    at = np.array(list(names), np.int64)
    try:
        found = ctx.view.vectors("entity", at)
    except VectorsDeferred:
        # Rounded as those that are stored, so that it does not matter whether they are.
        exact = await embed_cached(ctx, list(names.values()))
        found = exact.astype(STORED).astype(np.float32)
        found[ctx.view.arrays["entity_literal"][at]] = 0  # numbers and dates have none
    return dict(zip(names, found, strict=True))
