"""Fuzzy matching of names: by character n-grams, then by vectors."""

from dataclasses import dataclass

import numpy as np

from clew.context import Context
from clew.graph.letters import NgramIndex, build_ngram_index
from clew.names import tokenize
from clew.retrieve.naming.question_words import QUESTION_WORDS
from clew.retrieve.paths.ways import has_vectors
from clew.retrieve.rank import top_positions

# With more names than this no n-gram index is built; only vectors find misspelt names.
_MAX_INDEXED_NAMES = 500_000
_MAX_SUGGESTIONS = 5
_MAX_MATCHES = 3


@dataclass(frozen=True, slots=True)
class FuzzyMatch:
    """Entities a text may mean, with confidences, and the kind of match."""

    entities: tuple[tuple[int, float], ...] = ()
    how: str = ""
    score: float = 0.0


async def match_fuzzily(ctx: Context, text: str, likeness: float, cosine: float) -> FuzzyMatch:
    """Return the entities with a similar spelling, or else the one nearest by vector."""
    if not ctx.view.count("entity"):  # vectors of removed entities may still be stored
        return FuzzyMatch()
    index = await _get_ngram_index(ctx)
    if index is not None:
        at, share = index.find_similar(text, _MAX_MATCHES)
        near = [(int(a), float(s)) for a, s in zip(at, share, strict=True) if s >= likeness]
        if near:
            top = [pair for pair in near if pair[1] >= near[0][1] - 0.02]
            return FuzzyMatch(tuple(top), "spelt like", near[0][1] * len(text.split()))
    if ctx.embed is None or not has_vectors(ctx.view, "entity"):
        return FuzzyMatch()
    scores = ctx.view.cosines("entity", await ctx.vector(text))
    top_one = int(top_positions(scores, ctx.view.keys("entity"), 1)[0])
    if scores[top_one] < cosine:
        return FuzzyMatch()
    sure = float(scores[top_one])
    return FuzzyMatch(((top_one, sure),), "means", sure * 0.5 * len(text.split()))


async def suggest_names(ctx: Context, text: str) -> list[str]:
    """Suggest names similar to a text, or else the most frequent names."""
    similar = await _match_letters(ctx, text)
    ranked = sorted(similar, key=lambda at: (-similar[at], at))[:_MAX_SUGGESTIONS]
    if not ranked:
        degrees = ctx.view.links("entity_fact").degrees()
        ranked = top_positions(
            degrees.astype(np.float32), ctx.view.keys("entity"), _MAX_SUGGESTIONS
        ).tolist()
    keys = [int(ctx.view.keys("entity")[at]) for at in ranked]
    fetched = await ctx.snapshot.entities(keys)
    return [fetched[key].name for key in keys]


async def _match_letters(ctx: Context, text: str) -> dict[int, float]:
    """Return entities whose names share n-grams with parts of a text."""
    index = await _get_ngram_index(ctx)
    if index is None:
        return {}
    t = tokenize(text)
    content_words = [key for key in t.keys if key not in QUESTION_WORDS]
    phrases = [" ".join(content_words[a : a + 3]) for a in range(len(content_words))] or [text]
    similar: dict[int, float] = {}
    for part in [text, *phrases, *content_words][:40]:
        for at, share in zip(*index.find_similar(part, _MAX_SUGGESTIONS), strict=True):
            similar[int(at)] = max(similar.get(int(at), 0.0), float(share))
    return similar


async def _get_ngram_index(ctx: Context) -> NgramIndex | None:
    """Return the n-gram index of all names, built on first use; None with too many names."""
    memo, keys = ctx.view.memo, ctx.view.keys("entity").tolist()
    if len(keys) > _MAX_INDEXED_NAMES:
        return None
    if "letters" not in memo:
        fetched = await ctx.snapshot.entities(keys)
        memo["letters"] = build_ngram_index([fetched[key].name for key in keys])
    index: NgramIndex = memo["letters"]
    return index
