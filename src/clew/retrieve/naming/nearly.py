"""Names that are nearly right: by their letters, and by their meaning."""

from dataclasses import dataclass

import numpy as np

from clew.context import Context
from clew.graph.letters import Letters, letters_of
from clew.names import tokens
from clew.retrieve.naming.question_words import QUESTION_WORDS
from clew.retrieve.paths.ways import has_vectors
from clew.retrieve.rank import best

# With more names than this, only meaning finds what is not spelt right.
_MOST_NAMES = 500_000
_OFFERED = 5
_RIVALS = 3


@dataclass(frozen=True, slots=True)
class Nearly:
    """Entities that may be meant, how surely, and how they were found."""

    entities: tuple[tuple[int, float], ...] = ()
    how: str = ""
    score: float = 0.0


async def nearly(ctx: Context, text: str, likeness: float, cosine: float) -> Nearly:
    """The entities whose names are spelt like a text, or else mean the same."""
    if not ctx.view.count("entity"):  # vectors of what was removed may still be there
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
    """A few names that look most like what a question says, or else are met most."""
    near = await _by_letters(ctx, text)
    ranked = sorted(near, key=lambda at: (-near[at], at))[:_OFFERED]
    if not ranked:
        met = ctx.view.links("entity_fact").degrees()
        ranked = best(met.astype(np.float32), ctx.view.keys("entity"), _OFFERED).tolist()
    keys = [int(ctx.view.keys("entity")[at]) for at in ranked]
    held = await ctx.snapshot.entities(keys)
    return [held[key].name for key in keys]


async def _by_letters(ctx: Context, text: str) -> dict[int, float]:
    """Entities whose names share letters with parts of a text."""
    index = await _letters(ctx)
    if index is None:
        return {}
    t = tokens(text)
    telling = [key for key in t.keys if key not in QUESTION_WORDS]
    tried = [" ".join(telling[a : a + 3]) for a in range(len(telling))] or [text]
    near: dict[int, float] = {}
    for part in [text, *tried, *telling][:40]:
        for at, share in zip(*index.alike(part, _OFFERED), strict=True):
            near[int(at)] = max(near.get(int(at), 0.0), float(share))
    return near


async def _letters(ctx: Context) -> Letters | None:
    """The index of all names, made when it is first needed; None where there are too many."""
    memo, keys = ctx.view.memo, ctx.view.keys("entity").tolist()
    if len(keys) > _MOST_NAMES:
        return None
    if "letters" not in memo:
        held = await ctx.snapshot.entities(keys)
        memo["letters"] = letters_of([held[key].name for key in keys])
    index: Letters = memo["letters"]
    return index
