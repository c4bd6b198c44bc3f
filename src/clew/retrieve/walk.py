"""The house walk: from the passages a question names to those its sentences lead to.

A passage hands its weight on through the names its sentences mention, to the passages that are
about those names, and to other sentences that mention them. How much goes where is decided by how
well the sentence that makes the mention fits what the question still asks.
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
_RIVAL = 0.97  # passages this near in weight compete for a name
_MOST_SAID = 2000  # sentences that mention one name and are compared with the question
_FAINT = 0.05  # a passage below this weight hands nothing on


@dataclass(frozen=True)
class Walk:
    """Ranks chunks by the sentence-weighted walk plus a share of plain relevance.

    It begins at `found.chunks` (the passages about the names in the question), at passages that
    mention `found.entities`, and at the most relevant passages.
    """

    hops: int = 3
    sharpness: float = 4.0
    """How strongly a better fitting sentence is preferred."""
    decay: float = 0.7
    fit: float = 2.0
    """How strongly a better fitting destination is preferred."""
    rest: float = 0.7
    """What the question still asks, against the whole question, in how well a sentence fits."""
    back: float = 0.4
    sideways: float = 0.5
    inward: float = 0.5
    """How much a sentence counts that mentions what a passage is about, against a way onward."""
    unsaid: float = 0.45
    """How much a name counts that stands in a passage but in none of its facts."""
    seed: float = 0.3
    seeds: int = 4
    fused: float = 0.3
    relevance: float = 0.5
    sure: float = 4.0
    """How strongly relevance decides between several passages about one name."""
    frontier: int = 20
    common: int = 100
    """A name met in more passages than this leads only to passages about it."""
    top_k: int = 100
    facts: int = 20
    paths: int = 5

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`, best first, and `facts`, the sentences that bear most on the question."""
        view = ctx.view
        if not view.count("chunk"):
            return replace(found, chunks=())
        question, rest = await ctx.vectors([ctx.question, found.rest or ctx.question])
        ground = await self._ground(ctx, question, rest)
        named = [hit.at for hit in found.entities if hit.score >= 1]
        start = self._start(view, found.chunks, named, ground)
        trail = await self._spread(ctx, start, np.unique(view.same[named]), ground)
        reached = np.maximum.reduce([start, *(hop.weight for hop in trail)])
        total = reached + self.fused * ground.fused + self.relevance * ground.best
        chunks = hits(total, view.keys("chunk"), self.top_k, "walk")
        return replace(
            found,
            chunks=chunks,
            facts=hits(ground.fit, view.keys("fact"), self.facts, "sentence"),
            paths=paths(view, trail, [hit.at for hit in chunks[: self.paths]]),
        )

    async def _ground(self, ctx: Context, question: Floats, rest: Floats) -> "_Ground":
        """Scores that do not depend on the walk."""
        view = ctx.view
        # A weighted sum of cosines is the cosine with the weighted sum: one pass over memory.
        wanted = (1 - self.rest) * question + self.rest * rest
        fit = await fact_nearness(ctx, wanted)
        links = view.links("chunk_fact")
        # A passage fits as well as its best sentence, or as a whole: a model's facts have gaps.
        most = view.similar("chunk", wanted)
        filled = np.flatnonzero(links.degrees())
        if len(filled):
            facts = np.maximum.reduceat(fit[links.columns], links.starts[filled])
            most[filled] = np.maximum(most[filled], facts)
        return _Ground(question, fit, np.maximum(most, 0), fused_scores(ctx, question))

    def _start(
        self, view: View, about: tuple[Hit, ...], named: list[int], ground: "_Ground"
    ) -> Floats:
        """Weight for passages about the question's names, mentioning them, or just relevant."""
        start = np.zeros(view.count("chunk"), np.float32)
        for name in dict.fromkeys(hit.by for hit in about):
            group = [hit for hit in about if hit.by == name]
            at = np.array([hit.at for hit in group])
            weight = np.array([hit.score for hit in group], np.float32)
            # A passage gives way to more relevant ones that are about the name as surely.
            rival = np.where(weight[None, :] >= _RIVAL * weight[:, None], ground.fused[at], 0)
            lag = ground.fused[at] - rival.max(axis=1)
            np.maximum.at(start, at, weight * np.exp(self.sure * lag))
        back = np.zeros_like(start)
        for entity in named:
            back += np.sqrt(view.rarity[entity]) * self._mentioning(view, entity, ground)
        start = np.maximum(start, self.back * np.minimum(back, 2))
        top = best(ground.fused, view.keys("chunk"), self.seeds)
        start[top] = np.maximum(start[top], self.seed * ground.fused[top])
        return start

    def _mentioning(self, view: View, entity: int, ground: "_Ground") -> Floats:
        """Passages that mention an entity, the sentence nearest the question counting fully."""
        found = np.zeros(view.count("chunk"), np.float32)
        facts = view.links("entity_fact")
        said = facts.row(entity)[facts.row_weights(entity) > 0]
        if len(said) > _MOST_SAID:
            said = said[best(ground.fit[said], said.astype(np.int64), _MOST_SAID)]
        if len(said):
            at, edge = view.links("fact_chunk").edges_of(said.astype(np.int64))
            near = view.similar("fact", ground.question, said)
            weight = np.exp(self.sharpness * (near - near.max()))
            np.maximum.at(found, view.links("fact_chunk").columns[edge], weight[at])
        return found

    async def _spread(
        self, ctx: Context, start: Floats, known: Ints, ground: "_Ground"
    ) -> list[Hop]:
        """Walk `hops` steps; in each, a passage keeps the best weight that reaches it."""
        trail: list[Hop] = []
        now = start
        for _ in range(self.hops):
            rows = np.flatnonzero(now > _FAINT)
            if len(rows) > self.frontier:
                rows = rows[np.argsort(-now[rows], kind="stable")[: self.frontier]]
            if not len(rows):
                break
            said = mentions(ctx.view, rows, known)
            read = await unsaid(ctx, rows, said, known)
            trail.append(self._step(ctx.view, rows, now, (said, read, known), ground))
            now = trail[-1].weight
        return trail

    def _step(
        self,
        view: View,
        rows: Ints,
        now: Floats,
        seen: tuple[Mentions, Mentions, Ints],
        ground: "_Ground",
    ) -> Hop:
        said, read, known = seen
        inward = mentioned_by(view, rows, known, self.common)
        fit = ground.fit[said.fact]
        fit = self.sharpness * (fit - _highest(fit, said.at, len(rows))[said.at])
        fit = np.concatenate([fit, np.full(len(read), np.log(self.unsaid), np.float32)])
        outward = said + read
        ways = [
            self._to_owners(view, outward.entity, fit, ground),
            self._sideways(view, outward.entity, fit, ground),
            self._inward(view, inward, len(outward), ground),
        ]
        seen_all = outward + inward
        mention = np.concatenate([way[0] for way in ways])
        target = np.concatenate([way[1] for way in ways])
        value = np.concatenate([way[2] for way in ways])
        keep = target != rows[seen_all.at[mention]]
        mention, target, value = mention[keep], target[keep], value[keep]
        source = seen_all.at[mention]
        # The best way out of a passage carries all its weight, the others less: no shares.
        share = np.exp(value - _highest(value, source, len(rows))[source])
        weight = now[rows[source]] * share * self.decay
        # Written in ascending order, the last word on each target is the highest.
        order = np.argsort(weight, kind="stable")
        after, via = np.zeros_like(now), np.full(len(now), -1)
        after[target[order]] = weight[order]
        via[target[order]] = mention[order]
        return Hop(after, via, seen_all.entity, seen_all.fact, rows[seen_all.at])

    def _to_owners(
        self, view: View, entity: Ints, fit: Floats, ground: "_Ground"
    ) -> tuple[Ints, Ints, Floats]:
        owners = view.links("owners")
        mention, edge = owners.edges_of(entity)
        target = owners.columns[edge].astype(np.int64)
        value = fit[mention] + np.log(owners.weights[edge]) + self.fit * ground.best[target]
        return mention, target, value

    def _sideways(
        self, view: View, entity: Ints, fit: Floats, ground: "_Ground"
    ) -> tuple[Ints, Ints, Floats]:
        """To other sentences that mention the entity, unless it is too common to tell anything."""
        met = view.links("entity_chunk").degrees_of(entity)
        some = np.flatnonzero((met > 1) & (met <= self.common))
        facts, chunks = view.links("entity_fact"), view.links("fact_chunk")
        mention, edge = facts.edges_of(entity[some])
        said = facts.columns[edge].astype(np.int64)
        place, where = chunks.edges_of(said)
        mention, said = some[mention[place]], said[place]
        rare = np.log(self.sideways * view.rarity[entity[mention]] ** 2 + 1e-6)
        value = fit[mention] + self.fit * ground.fit[said] + rare
        return mention, chunks.columns[where].astype(np.int64), value

    def _inward(
        self, view: View, inward: Mentions, first: int, ground: "_Ground"
    ) -> tuple[Ints, Ints, Floats]:
        """To the sentences that mention what a passage is about; numbered from `first`."""
        chunks = view.links("fact_chunk")
        mention, where = chunks.edges_of(inward.fact)
        rare = np.log(self.inward * view.rarity[inward.entity[mention]] ** 2 + 1e-6)
        value = self.fit * ground.fit[inward.fact[mention]] + rare
        return first + mention, chunks.columns[where].astype(np.int64), value


@dataclass(frozen=True, slots=True)
class _Ground:
    """The question; how well each fact fits; per chunk its best fit and its own relevance."""

    question: Floats
    fit: Floats
    best: Floats
    fused: Floats


def fused_scores(ctx: Context, question: Floats) -> Floats:
    """Dense and lexical relevance of every chunk, half each, the best chunk scoring 1."""
    dense = ctx.view.similar("chunk", question)
    asked = dict.fromkeys(w for w in words(ctx.question) if w not in QUESTION_WORDS)
    lexical = ctx.view.text.scores(list(asked))
    dense = (dense - dense.min()) / max(_TINY, float(dense.max() - dense.min()))
    mixed = dense / 2 + lexical / max(_TINY, float(lexical.max())) / 2
    fused: Floats = (mixed / max(_TINY, float(mixed.max()))).astype(np.float32)
    return fused


def _highest(values: Floats, groups: Ints, count: int) -> Floats:
    """The highest value of each group."""
    highest = np.full(count, _NOTHING, np.float32)
    np.maximum.at(highest, groups, values)
    return highest
