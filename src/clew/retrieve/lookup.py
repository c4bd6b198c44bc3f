"""Finds chunks, entities and facts for a question directly, by vectors and by words."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from clew.context import Context
from clew.errors import ConfigError
from clew.graph.csr import Ints
from clew.retrieve.facts import nearest_facts, score_facts
from clew.retrieve.labels import relation_names
from clew.retrieve.question import QUESTION_WORDS
from clew.retrieve.rank import top_hits
from clew.text.names import name_key
from clew.text.unicode import hash64, split_words
from clew.types import Found, Hit

QueryPart = Literal["question", "names", "topics", "rest"]


@dataclass(frozen=True)
class Dense:
    """Ranks chunks by the cosine of their vectors with the question's."""

    top_k: int = 100

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`, best first; those without a vector are left out."""
        near = zip(*ctx.nearest("chunk", await ctx.vector(), self.top_k), strict=True)
        return replace(found, chunks=tuple(Hit(int(at), float(s), "dense") for at, s in near))


@dataclass(frozen=True)
class Lexical:
    """Ranks chunks by BM25 over the question's words."""

    top_k: int = 100
    k1: float = 1.2
    b: float = 0.75
    content_only: bool = False
    """Whether words such as "what" and "is" count only for a question that has no others."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`, best first; chunks without a word of the question are left out."""
        words = split_words(ctx.question)
        if self.content_only:
            words = [word for word in words if word not in QUESTION_WORDS] or words
        scores = ctx.view.bm25.scores(words, k1=self.k1, b=self.b)
        ranked = top_hits(scores, ctx.view.codes("chunk"), self.top_k, "bm25")
        return replace(found, chunks=tuple(hit for hit in ranked if hit.score > 0))


@dataclass(frozen=True)
class NearEntities:
    """Ranks entities by the cosine of name, type and description with parts of the question.

    An entity without a description is compared by its name. All names make one text, or with `each`
    every name contributes its own best `top_k`.
    """

    of: QueryPart = "names"
    top_k: int = 40
    least: float = -1.0
    """No entity below this cosine."""
    each: bool = False

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `entities`, best first."""
        require_elements(ctx, "entity")
        texts = query_texts(ctx, found, self.of)
        if not self.each:
            texts = [", ".join(texts)]
        best: dict[int, float] = {}
        for text in texts:
            for at, score in await self._nearest_entities(ctx, text):
                best[at] = max(score, best.get(at, -1.0))
        codes = ctx.view.codes("entity")
        ranked = sorted(best.items(), key=lambda item: (-item[1], int(codes[item[0]])))
        chosen = tuple(Hit(at, score, "entity") for at, score in ranked if score >= self.least)
        return replace(found, entities=chosen)

    async def _nearest_entities(self, ctx: Context, text: str) -> list[tuple[int, float]]:
        view = ctx.view
        if not view.count("entity"):
            return []
        if self.each and self.top_k == 1:
            # An entity with exactly this name is nearest: no need to compare all others.
            [matches] = view.find_by_own_name([text])
            if len(matches):
                passage_counts = view.links("entity_chunk").degrees_of(matches)
                return [(int(matches[int(passage_counts.argmax())]), 1.0)]
        near, scores = ctx.nearest("description", await ctx.vector(text), self.top_k)
        return list(zip(near.tolist(), scores.tolist(), strict=True))


@dataclass(frozen=True)
class SameName:
    """Takes the entities whose name, or else alias, equals one in the question, in any case."""

    of: QueryPart = "names"

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `entities`, those mentioned in most passages first."""
        require_elements(ctx, "entity")
        passage_counts = ctx.view.links("entity_chunk").degrees()
        matches = map(ctx.view.find_by_name_or_alias, query_texts(ctx, found, self.of))
        positions = {int(at) for entities in matches for at in entities}
        codes = ctx.view.codes("entity")
        ranked = sorted(positions, key=lambda at: (-int(passage_counts[at]), int(codes[at])))
        return replace(found, entities=tuple(Hit(at, 1.0, "same name") for at in ranked))


@dataclass(frozen=True)
class NearAttributes:
    """Takes the entities with an attribute as near to the question as the best facts are.

    An attribute is one more fact about its entity: those that would be among the best `top_k` facts
    are taken. Without attributes nothing is found.
    """

    of: QueryPart = "question"
    top_k: int = 20

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `entities`, best first, each by its nearest attribute."""
        entities, rows = ctx.view.attributes
        matrix = ctx.view.matrices.get("attribute")
        if not len(rows) or matrix is None or not len(matrix):
            return replace(found, entities=())
        vector = await ctx.vector(", ".join(query_texts(ctx, found, self.of)))
        at, facts = await nearest_facts(ctx, vector)
        least = top_hits(facts, ctx.view.codes("fact")[at], self.top_k, "")[self.top_k - 1 :]
        near, scores = ctx.nearest("attribute", vector, self.top_k)
        best: dict[int, Hit] = {}
        for at, score in zip(entities[near].tolist(), scores.tolist(), strict=True):
            if not least or score >= least[0].score:
                best.setdefault(at, Hit(at, score, "attribute"))
        return replace(found, entities=tuple(best.values()))


@dataclass(frozen=True)
class NearFacts:
    """Ranks facts by the cosine of text, keywords and description with parts of the question."""

    of: QueryPart = "question"
    top_k: int = 40
    least: float = -1.0
    """No fact below this cosine."""
    subject: float = 0.5
    """How much the name of its subject counts beside a sentence's text."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`, best first."""
        require_elements(ctx, "fact")
        text = ", ".join(query_texts(ctx, found, self.of))
        at, scores = await nearest_facts(ctx, await ctx.vector(text), self.subject)
        ranked = top_hits(scores, ctx.view.codes("fact")[at], self.top_k, "fact")
        ranked = tuple(replace(hit, at=int(at[hit.at])) for hit in ranked)
        return replace(found, facts=tuple(hit for hit in ranked if hit.score >= self.least))


@dataclass(frozen=True)
class SameWords:
    """Takes the facts whose relation or keyword is one of the question's topics."""

    of: QueryPart = "topics"
    top_k: int = 40

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`, nearest to the question first."""
        require_elements(ctx, "fact")
        topics = query_texts(ctx, found, self.of)
        wanted = {hash64(name_key(text)) for text in topics}
        same = [hash64(name_key(name)) in wanted for name in await relation_names(ctx)]
        relations = ctx.view.relations
        fits = np.zeros(len(relations), np.bool_)
        if any(same):
            fits = (relations >= 0) & np.array([*same, False])[relations]
        fits[ctx.view.find_by_keyword(topics)] = True
        chosen: Ints = np.flatnonzero(fits)
        scores = await score_facts(ctx, await ctx.vector(), at=chosen)
        ranked = top_hits(scores, ctx.view.codes("fact")[chosen], self.top_k, "same relation")
        return replace(found, facts=tuple(replace(h, at=int(chosen[h.at])) for h in ranked))


def require_elements(ctx: Context, kind: Literal["entity", "fact"]) -> None:
    """Raise an error when the knowledge base has passages but none of these graph elements."""
    if ctx.view.count("chunk") and not ctx.view.count(kind):
        things = {"entity": "entities", "fact": "facts"}[kind]
        raise ConfigError(
            f"this recipe needs {things}, and the knowledge base has none; extract them with "
            "`clew add PATH --extractor offline`, or import a graph with `clew import FILE`"
        )


def query_texts(ctx: Context, found: Found, of: QueryPart) -> list[str]:
    """Return the texts to look for; the whole question where the chosen part is empty."""
    parts = {"names": found.names, "topics": found.topics, "rest": (found.rest,)}
    texts = [text for text in parts.get(of, ()) if text.strip()]
    return texts or [ctx.question]
