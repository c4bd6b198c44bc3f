"""The walk of the default recipe: from passages about the question's names to linked passages.

A passage passes its weight on through the entities its sentences mention: to the passages about
those entities, and to other sentences that mention them. The share of each edge depends on how
well the mentioning sentence fits what the question still asks.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.retrieve.facts import fact_nearness
from clew.retrieve.naming.mentions import Mentions, mentioned_by, mentions, unsaid
from clew.retrieve.naming.question_words import QUESTION_WORDS
from clew.retrieve.paths.trail import Hop, paths
from clew.retrieve.rank import best, hits
from clew.text import words
from clew.types import Found, Hit
from clew.view import View

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

_TINY = 1e-9
_NOTHING = np.float32(-99.0)
_RIVAL = 0.97  # passages whose weights are this near compete for a name
_MOST_SAID = 2000  # sentences mentioning one name that are compared with the question
_FAINT = 0.05  # a passage below this weight passes nothing on


@dataclass(frozen=True)
class Walk:
    """Ranks chunks by the sentence-weighted walk plus a share of plain relevance.

    It starts at `found.chunks` (the passages about the names in the question), at passages that
    mention `found.entities`, and at the most relevant passages.
    """

    hops: int = 3
    sharpness: float = 4.0
    """How strongly a better fitting sentence is preferred."""
    decay: float = 0.7
    fit: float = 2.0
    """How strongly a better fitting destination is preferred."""
    rest: float = 0.7
    """Weight of the question without names against the whole, in how well a sentence fits."""
    back: float = 0.4
    sideways: float = 0.5
    inward: float = 0.5
    """Weight of sentences that mention what a passage is about, against outgoing mentions."""
    unsaid: float = 0.45
    """Weight of a name that occurs in a passage but in none of its facts."""
    seed: float = 0.3
    seeds: int = 4
    fused: float = 0.3
    relevance: float = 0.5
    sure: float = 4.0
    """How strongly relevance decides between several passages about one name."""
    frontier: int = 20
    common: int = 100
    """A name that occurs in more passages than this leads only to passages about it."""
    top_k: int = 100
    facts: int = 20
    paths: int = 5

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks` and `facts` (the best fitting sentences), best first, and `paths`."""
        view = ctx.view
        if not view.count("chunk"):
            return replace(found, chunks=())
        question, rest = await ctx.vectors([ctx.question, found.rest or ctx.question])
        scores = await self._ground(ctx, question, rest)
        named = [hit.at for hit in found.entities if hit.score >= 1]
        start = self._start(view, found.chunks, named, scores)
        walk_hops = await self._spread(ctx, start, np.unique(view.same[named]), scores)
        reached = np.maximum.reduce([start, *(hop.weight for hop in walk_hops)])
        total = reached + self.fused * scores.fused + self.relevance * scores.best
        chunks = hits(total, view.keys("chunk"), self.top_k, "walk")
        return replace(
            found,
            chunks=chunks,
            facts=hits(scores.fit, view.keys("fact"), self.facts, "sentence"),
            paths=paths(view, walk_hops, [hit.at for hit in chunks[: self.paths]]),
        )

    async def _ground(self, ctx: Context, question: Floats, rest: Floats) -> "_Ground":
        """Compute the scores that do not depend on the walk."""
        view = ctx.view
        # A weighted sum of cosines is the cosine with the weighted sum: one pass over memory.
        target = (1 - self.rest) * question + self.rest * rest
        fit = await fact_nearness(ctx, target)
        links = view.links("chunk_fact")
        # A passage fits as well as its best sentence, or as a whole: a model's facts have gaps.
        chunk_fit = view.similar("chunk", target)
        with_facts = np.flatnonzero(links.degrees())
        if len(with_facts):
            facts = np.maximum.reduceat(fit[links.columns], links.starts[with_facts])
            chunk_fit[with_facts] = np.maximum(chunk_fit[with_facts], facts)
        return _Ground(question, fit, np.maximum(chunk_fit, 0), fused_scores(ctx, question))

    def _start(
        self, view: View, about: tuple[Hit, ...], named: list[int], scores: "_Ground"
    ) -> Floats:
        """Return start weights: passages about the names, mentioning them, or just relevant."""
        start = np.zeros(view.count("chunk"), np.float32)
        for name in dict.fromkeys(hit.by for hit in about):
            group = [hit for hit in about if hit.by == name]
            at = np.array([hit.at for hit in group])
            weight = np.array([hit.score for hit in group], np.float32)
            # A passage yields to more relevant ones that are about the name as surely.
            rival = np.where(weight[None, :] >= _RIVAL * weight[:, None], scores.fused[at], 0)
            lag = scores.fused[at] - rival.max(axis=1)
            np.maximum.at(start, at, weight * np.exp(self.sure * lag))
        back = np.zeros_like(start)
        for entity in named:
            back += np.sqrt(view.rarity[entity]) * self._mentioning(view, entity, scores)
        start = np.maximum(start, self.back * np.minimum(back, 2))
        top = best(scores.fused, view.keys("chunk"), self.seeds)
        start[top] = np.maximum(start[top], self.seed * scores.fused[top])
        return start

    def _mentioning(self, view: View, entity: int, scores: "_Ground") -> Floats:
        """Score passages that mention an entity; the sentence nearest the question counts fully."""
        found = np.zeros(view.count("chunk"), np.float32)
        facts = view.links("entity_fact")
        stating = facts.row(entity)[facts.row_weights(entity) > 0]
        if len(stating) > _MOST_SAID:
            stating = stating[best(scores.fit[stating], stating.astype(np.int64), _MOST_SAID)]
        if len(stating):
            at, edge = view.links("fact_chunk").edges_of(stating.astype(np.int64))
            similarity = view.similar("fact", scores.question, stating)
            weight = np.exp(self.sharpness * (similarity - similarity.max()))
            np.maximum.at(found, view.links("fact_chunk").columns[edge], weight[at])
        return found

    async def _spread(
        self, ctx: Context, start: Floats, known: Ints, scores: "_Ground"
    ) -> list[Hop]:
        """Walk `hops` hops; in each, a passage keeps the highest weight that reaches it."""
        walk_hops: list[Hop] = []
        weights = start
        for _ in range(self.hops):
            rows = np.flatnonzero(weights > _FAINT)
            if len(rows) > self.frontier:
                rows = rows[np.argsort(-weights[rows], kind="stable")[: self.frontier]]
            if not len(rows):
                break
            stated = mentions(ctx.view, rows, known)
            unstated = await unsaid(ctx, rows, stated, known)
            walk_hops.append(self._step(ctx.view, rows, weights, (stated, unstated, known), scores))
            weights = walk_hops[-1].weight
        return walk_hops

    def _step(
        self,
        view: View,
        rows: Ints,
        weights: Floats,
        found_mentions: tuple[Mentions, Mentions, Ints],
        scores: "_Ground",
    ) -> Hop:
        stated, unstated, known = found_mentions
        inward = mentioned_by(view, rows, known, self.common)
        fit = scores.fit[stated.fact]
        fit = self.sharpness * (fit - _highest(fit, stated.at, len(rows))[stated.at])
        fit = np.concatenate([fit, np.full(len(unstated), np.log(self.unsaid), np.float32)])
        outward = stated + unstated
        edges = [
            self._to_owners(view, outward.entity, fit, scores),
            self._sideways(view, outward.entity, fit, scores),
            self._inward(view, inward, len(outward), scores),
        ]
        all_mentions = outward + inward
        mention = np.concatenate([way[0] for way in edges])
        target = np.concatenate([way[1] for way in edges])
        value = np.concatenate([way[2] for way in edges])
        keep = target != rows[all_mentions.at[mention]]
        mention, target, value = mention[keep], target[keep], value[keep]
        source = all_mentions.at[mention]
        # The best edge out of a passage carries all its weight, the others less: no normalisation.
        share = np.exp(value - _highest(value, source, len(rows))[source])
        weight = weights[rows[source]] * share * self.decay
        # Assigned in ascending order, so that each target keeps its highest weight.
        order = np.argsort(weight, kind="stable")
        reached, via = np.zeros_like(weights), np.full(len(weights), -1)
        reached[target[order]] = weight[order]
        via[target[order]] = mention[order]
        return Hop(reached, via, all_mentions.entity, all_mentions.fact, rows[all_mentions.at])

    def _to_owners(
        self, view: View, entity: Ints, fit: Floats, scores: "_Ground"
    ) -> tuple[Ints, Ints, Floats]:
        owners = view.links("owners")
        mention, edge = owners.edges_of(entity)
        target = owners.columns[edge].astype(np.int64)
        value = fit[mention] + np.log(owners.weights[edge]) + self.fit * scores.best[target]
        return mention, target, value

    def _sideways(
        self, view: View, entity: Ints, fit: Floats, scores: "_Ground"
    ) -> tuple[Ints, Ints, Floats]:
        """Edges to other sentences that mention the entity, unless it is too common."""
        passage_counts = view.links("entity_chunk").degrees_of(entity)
        rare_enough = np.flatnonzero((passage_counts > 1) & (passage_counts <= self.common))
        facts, chunks = view.links("entity_fact"), view.links("fact_chunk")
        mention, edge = facts.edges_of(entity[rare_enough])
        stating = facts.columns[edge].astype(np.int64)
        place, where = chunks.edges_of(stating)
        mention, stating = rare_enough[mention[place]], stating[place]
        rarity = np.log(self.sideways * view.rarity[entity[mention]] ** 2 + 1e-6)
        value = fit[mention] + self.fit * scores.fit[stating] + rarity
        return mention, chunks.columns[where].astype(np.int64), value

    def _inward(
        self, view: View, inward: Mentions, first: int, scores: "_Ground"
    ) -> tuple[Ints, Ints, Floats]:
        """Edges to the sentences that mention what a passage is about; numbered from `first`."""
        chunks = view.links("fact_chunk")
        mention, where = chunks.edges_of(inward.fact)
        rarity = np.log(self.inward * view.rarity[inward.entity[mention]] ** 2 + 1e-6)
        value = self.fit * scores.fit[inward.fact[mention]] + rarity
        return first + mention, chunks.columns[where].astype(np.int64), value


@dataclass(frozen=True, slots=True)
class _Ground:
    """The question's vector, each fact's fit, each chunk's best fit and its hybrid relevance."""

    question: Floats
    fit: Floats
    best: Floats
    fused: Floats


def fused_scores(ctx: Context, question: Floats) -> Floats:
    """Mean of dense and lexical relevance of every chunk, scaled so that the best scores 1."""
    dense = ctx.view.similar("chunk", question)
    query_words = dict.fromkeys(w for w in words(ctx.question) if w not in QUESTION_WORDS)
    lexical = ctx.view.text.scores(list(query_words))
    dense = (dense - dense.min()) / max(_TINY, float(dense.max() - dense.min()))
    mixed = dense / 2 + lexical / max(_TINY, float(lexical.max())) / 2
    fused: Floats = (mixed / max(_TINY, float(mixed.max()))).astype(np.float32)
    return fused


def _highest(values: Floats, groups: Ints, count: int) -> Floats:
    """Return the highest value of each group."""
    highest = np.full(count, _NOTHING, np.float32)
    np.maximum.at(highest, groups, values)
    return highest
