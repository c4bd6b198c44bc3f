"""Finds chunks, entities and facts for a question directly, by vectors and by words."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.errors import ConfigError
from clew.names import name_key
from clew.retrieve.facts import fact_nearness
from clew.retrieve.naming.labels import relation_names
from clew.retrieve.rank import hits
from clew.text import hash64, words
from clew.types import Found, Hit

Asked = Literal["question", "names", "topics", "rest"]


@dataclass(frozen=True)
class Dense:
    """Ranks chunks by the cosine of their vectors with the question's."""

    top_k: int = 100

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`, best first; those without a vector are left out."""
        scores = ctx.similar("chunk", await ctx.vector())
        chosen = hits(scores, ctx.view.keys("chunk"), self.top_k, "dense")
        return replace(found, chunks=tuple(hit for hit in chosen if hit.score > -1))


@dataclass(frozen=True)
class Lexical:
    """Ranks chunks by BM25 over the question's words."""

    top_k: int = 100
    k1: float = 1.2
    b: float = 0.75

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`, best first; chunks without a word of the question are left out."""
        scores = ctx.view.text.scores(words(ctx.question), k1=self.k1, b=self.b)
        ranked = hits(scores, ctx.view.keys("chunk"), self.top_k, "bm25")
        return replace(found, chunks=tuple(hit for hit in ranked if hit.score > 0))


@dataclass(frozen=True)
class NearEntities:
    """Ranks entities by the cosine of their names with parts of the question.

    All names make one text, or with `each` every name contributes its own best `top_k`.
    """

    of: Asked = "names"
    top_k: int = 40
    least: float = -1.0
    """No entity below this cosine."""
    each: bool = False

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `entities`, best first."""
        must_hold(ctx, "entity")
        texts = asked(ctx, found, self.of)
        if not self.each:
            texts = [", ".join(texts)]
        best: dict[int, float] = {}
        for text in texts:
            for at, score in await self._near(ctx, text):
                best[at] = max(score, best.get(at, -1.0))
        ranked = sorted(best.items(), key=lambda item: (-item[1], item[0]))
        chosen = tuple(Hit(at, score, "entity") for at, score in ranked if score >= self.least)
        return replace(found, entities=chosen)

    async def _near(self, ctx: Context, text: str) -> list[tuple[int, float]]:
        """Return the entities nearest to a text, with their cosines."""
        view = ctx.view
        if not view.count("entity"):
            return []
        if self.each and self.top_k == 1:
            # An entity with exactly this name is nearest: no need to compare all others.
            [bearers] = view.named([text])
            if len(bearers):
                met = view.links("entity_chunk").degrees_of(bearers)
                return [(int(bearers[int(met.argmax())]), 1.0)]
        scores = ctx.similar("entity", await ctx.vector(text))
        near = hits(scores, view.keys("entity"), self.top_k, "")
        return [(hit.at, hit.score) for hit in near]


@dataclass(frozen=True)
class SameName:
    """Takes the entities whose names equal a name in the question, ignoring letter case."""

    of: Asked = "names"

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `entities`, those mentioned in most passages first."""
        must_hold(ctx, "entity")
        met = ctx.view.links("entity_chunk").degrees()
        bearers = ctx.view.named(asked(ctx, found, self.of))
        positions = {int(at) for entities in bearers for at in entities}
        ranked = sorted(positions, key=lambda at: (-int(met[at]), at))
        return replace(found, entities=tuple(Hit(at, 1.0, "same name") for at in ranked))


@dataclass(frozen=True)
class NearFacts:
    """Ranks facts by the cosine of their texts with parts of the question."""

    of: Asked = "question"
    top_k: int = 40
    least: float = -1.0
    """No fact below this cosine."""
    subject: float = 0.5
    """How much the name of its subject counts beside a sentence's text."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`, best first."""
        must_hold(ctx, "fact")
        text = ", ".join(asked(ctx, found, self.of))
        scores = await fact_nearness(ctx, await ctx.vector(text), self.subject)
        ranked = hits(scores, ctx.view.keys("fact"), self.top_k, "fact")
        return replace(found, facts=tuple(hit for hit in ranked if hit.score >= self.least))


@dataclass(frozen=True)
class SameWords:
    """Takes the facts whose relation is named as one of the question's topics."""

    of: Asked = "topics"
    top_k: int = 40

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`, nearest to the question first."""
        must_hold(ctx, "fact")
        wanted = {hash64(name_key(text)) for text in asked(ctx, found, self.of)}
        same = [hash64(name_key(name)) in wanted for name in await relation_names(ctx)]
        relations = ctx.view.relations
        fits = np.zeros(len(relations), np.bool_)
        if any(same):
            fits = (relations >= 0) & np.array([*same, False])[relations]
        chosen: NDArray[np.int64] = np.flatnonzero(fits)
        scores = await fact_nearness(ctx, await ctx.vector(), at=chosen)
        ranked = hits(scores, ctx.view.keys("fact")[chosen], self.top_k, "same relation")
        return replace(found, facts=tuple(replace(h, at=int(chosen[h.at])) for h in ranked))


def must_hold(ctx: Context, kind: Literal["entity", "fact"]) -> None:
    """Raise an error when the knowledge base has passages but none of these graph elements."""
    if ctx.view.count("chunk") and not ctx.view.count(kind):
        things = {"entity": "entities", "fact": "facts"}[kind]
        raise ConfigError(
            f"this recipe walks on {things}, and this knowledge base holds none; `clew add PATH "
            "--extractor offline` finds them in your documents, `clew import FILE` takes a graph"
        )


def asked(ctx: Context, found: Found, of: Asked) -> list[str]:
    """Return the texts to look for; the whole question where the chosen part is empty."""
    parts = {"names": found.names, "topics": found.topics, "rest": (found.rest,)}
    texts = [text for text in parts.get(of, ()) if text.strip()]
    return texts or [ctx.question]
