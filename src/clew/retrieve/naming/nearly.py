"""Fuzzy matching of names: by character n-grams, then by vectors."""

from dataclasses import dataclass

import numpy as np

from clew.context import Context
from clew.graph.letters import Letters, letters_of
from clew.names import tokens
from clew.retrieve.naming.question_words import QUESTION_WORDS
from clew.retrieve.paths.ways import has_vectors
from clew.retrieve.rank import best

# With more names than this no n-gram index is built; only vectors find misspelt names.
_MOST_NAMES = 500_000
_OFFERED = 5
_RIVALS = 3


@dataclass(frozen=True, slots=True)
class Nearly:
    """Entities a text may mean, with confidences, and the kind of match."""

    entities: tuple[tuple[int, float], ...] = ()
    how: str = ""
    score: float = 0.0


async def nearly(ctx: Context, text: str, likeness: float, cosine: float) -> Nearly:
    """Return the entities with a similar spelling, or else the one nearest by vector."""
    if not ctx.view.count("entity"):  # vectors of removed entities may still be stored
        return Nearly()
    index = await _letters(ctx)
    if index is not None:
        at, share = index.alike(text, _RIVALS)
        near = [(int(a), float(s)) for a, s in zip(at, share, strict=True) if s >= likeness]
        if near:
            top = [pair for pair in near if pair[1] >= near[0][1] - 0.02]
            return Nearly(tuple(top), "spelt like", near[0][1] * len(text.split()))
    if ctx.embed is None or not has_vectors(ctx.view, "entity"):
        return Nearly()
    scores = ctx.view.similar("entity", await ctx.vector(text))
    top_one = int(best(scores, ctx.view.keys("entity"), 1)[0])
    if scores[top_one] < cosine:
        return Nearly()
    sure = float(scores[top_one])
    return Nearly(((top_one, sure),), "means", sure * 0.5 * len(text.split()))


async def nearest_names(ctx: Context, text: str) -> list[str]:
    """Suggest names similar to a text, or else the most frequent names."""
    similar = await _by_letters(ctx, text)
    ranked = sorted(similar, key=lambda at: (-similar[at], at))[:_OFFERED]
    if not ranked:
        degrees = ctx.view.links("entity_fact").degrees()
        ranked = best(degrees.astype(np.float32), ctx.view.keys("entity"), _OFFERED).tolist()
    keys = [int(ctx.view.keys("entity")[at]) for at in ranked]
    fetched = await ctx.snapshot.entities(keys)
    return [fetched[key].name for key in keys]


async def _by_letters(ctx: Context, text: str) -> dict[int, float]:
    """Return entities whose names share n-grams with parts of a text."""
    index = await _letters(ctx)
    if index is None:
        return {}
    t = tokens(text)
    content_words = [key for key in t.keys if key not in QUESTION_WORDS]
    phrases = [" ".join(content_words[a : a + 3]) for a in range(len(content_words))] or [text]
    similar: dict[int, float] = {}
    for part in [text, *phrases, *content_words][:40]:
        for at, share in zip(*index.alike(part, _OFFERED), strict=True):
            similar[int(at)] = max(similar.get(int(at), 0.0), float(share))
    return similar


async def _letters(ctx: Context) -> Letters | None:
    """Return the n-gram index of all names, built on first use; None with too many names."""
    memo, keys = ctx.view.memo, ctx.view.keys("entity").tolist()
    if len(keys) > _MOST_NAMES:
        return None
    if "letters" not in memo:
        fetched = await ctx.snapshot.entities(keys)
        memo["letters"] = letters_of([fetched[key].name for key in keys])
    index: Letters = memo["letters"]
    return index
