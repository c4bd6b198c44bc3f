"""Semantic-augmented extraction (SAE): prunes a subgraph to what fits the question."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from clew.context import Context
from clew.graph.csr import distinct
from clew.graph.traverse import Ints
from clew.retrieve.choose import Kind, chosen
from clew.retrieve.naming.question_shape import shape_of, spans_of
from clew.retrieve.paths.trail_scores import TrailScorer
from clew.retrieve.paths.ways import Floats, has_vectors, kept_vectors, label_words, ways_of
from clew.retrieve.rank import best
from clew.retrieve.region.subgraph import Near, facts_among
from clew.retrieve.texts import entities_at, facts_at
from clew.types import Found, Hit

Model = Literal["eem", "llm"]
Part = Literal["nodes", "edges", "triples"]
_KINDS: dict[Part, Kind] = {"nodes": "entities", "edges": "relations", "triples": "facts"}
_COMPARED = 2048  # elements without a stored vector that are embedded for one question


@dataclass(frozen=True)
class Prune:
    """Keeps the entities, relations or facts of the subgraph that fit the question best.

    The embedder ranks them; a model chooses among the best, and where it chooses nothing the
    embedder's ranking stands. Facts without a relation count as relations of their own.
    """

    what: Part = "edges"
    keep: int = 64
    by: Model = "eem"

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts` to the remaining ones, with the score of their group."""
        if not found.facts:
            return found
        facts = np.array([hit.at for hit in found.facts], np.int64)
        groups, fit = await self._parts(ctx, found, facts)
        ranked = best(fit, np.arange(len(fit)), max(self.keep, 1) * 2)
        picked = ranked[: self.keep]
        if self.by == "llm":
            texts = await self._texts(ctx, groups[ranked])
            picks = await chosen(ctx, _KINDS[self.what], texts, self.keep)
            picked = ranked[picks] if picks else picked
        if self.what == "nodes":
            starts = [hit.at for hit in found.entities]
            kept = np.unique(np.append(groups[picked], np.array(starts, np.int64)))
            near = Near(kept, np.ones(len(kept)))
            allowed = {hit.at for hit in facts_among(ctx.view, near, "nodes")}
            remaining = tuple(hit for hit in found.facts if hit.at in allowed)
        else:
            value = dict(zip(groups[picked].tolist(), fit[picked].tolist(), strict=True))
            own = self._groups(ctx, facts)
            remaining = tuple(
                Hit(hit.at, value[group], f"{self.what} by {self.by}")
                for hit, group in zip(found.facts, own.tolist(), strict=True)
                if group in value
            )
        return replace(found, facts=remaining or found.facts)

    def _groups(self, ctx: Context, facts: Ints) -> Ints:
        """Return the group each fact is kept or dropped with: its relation, or itself."""
        ways = ways_of(ctx.view)
        label = ways.labels[facts].astype(np.int64)
        if self.what == "triples":
            return ways.names + facts
        return np.where(label < 0, ways.names + facts, label)

    async def _parts(self, ctx: Context, found: Found, facts: Ints) -> tuple[Ints, Floats]:
        """Return the elements to choose from, and the fit of each."""
        if self.what == "nodes":
            members = ctx.view.links("fact_entity")
            entities = distinct(members.columns[members.edges_of(facts)[1]])
            return entities, await self._fit(ctx, "entity", entities)
        groups = distinct(self._groups(ctx, facts))
        ways = ways_of(ctx.view)
        shape = shape_of(ctx.question, spans_of(ctx.question, found.names))
        named = groups < ways.names
        fit = np.zeros(len(groups), np.float32)
        if named.any():
            scorer = TrailScorer(ctx, ways, shape)
            fit[named] = (await scorer.steps(groups[named][:, None] * 2))[:, 0]
        if not named.all():
            fit[~named] = await self._fit(ctx, "fact", groups[~named] - ways.names)
        return groups, fit

    async def _fit(self, ctx: Context, kind: Literal["entity", "fact"], at: Ints) -> Floats:
        """Cosines with the question; texts are embedded only where there are no vectors."""
        if has_vectors(ctx.view, kind):
            return ctx.view.similar(kind, await ctx.vector(), at)
        read = _entity_texts if kind == "entity" else _fact_texts
        return await _likeness(ctx, await read(ctx, at))

    async def _texts(self, ctx: Context, groups: Ints) -> list[str]:
        """Return elements as text for a model."""
        if self.what == "nodes":
            return await _entity_texts(ctx, groups)
        names = ways_of(ctx.view).names
        own = groups[groups >= names]
        texts = dict(zip(own.tolist(), await _fact_texts(ctx, own - names), strict=True))
        words = await label_words(ctx)
        return [texts[group] if group in texts else words[group] for group in groups.tolist()]


async def _fact_texts(ctx: Context, facts: Ints) -> list[str]:
    fetched = await facts_at(ctx, facts.tolist())
    return [fetched[at].text for at in facts.tolist()]


async def _entity_texts(ctx: Context, entities: Ints) -> list[str]:
    fetched = await entities_at(ctx, entities.tolist())
    return [fetched[at].name for at in entities.tolist()]


async def _likeness(ctx: Context, texts: list[str]) -> Floats:
    """Cosines of texts without stored vectors; of very many only the first are compared."""
    near = np.full(len(texts), -1, np.float32)
    near[:_COMPARED] = await kept_vectors(ctx, texts[:_COMPARED]) @ await ctx.vector()
    return near


@dataclass(frozen=True)
class IndexSubgraph:
    """Takes the facts and entities nearest by vector, and their direct neighbourhood.

    No walk comes before it: the vector index is queried directly.
    """

    top_k: int = 64
    max_facts: int = 2000

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`, those nearest by vector first."""
        view = ctx.view
        vector = await ctx.vector()
        links = view.links("entity_fact")
        if has_vectors(view, "fact"):
            scores = view.similar("fact", vector)
            facts = best(scores, view.keys("fact"), self.top_k)
            members = view.links("fact_entity")
            near = distinct(members.columns[members.edges_of(facts)[1]])
        elif has_vectors(view, "entity"):
            scores = view.similar("entity", vector)
            near, facts = best(scores, view.keys("entity"), self.top_k), np.zeros(0, np.int64)
        else:
            return found
        near = np.unique(np.append(near, [hit.at for hit in found.entities])).astype(np.int64)
        degree = links.degrees_of(near)
        near = near[np.argsort(degree, kind="stable")]
        nearby = links.columns[links.edges_of(near)[1][: self.max_facts]].astype(np.int64)
        kept = list(dict.fromkeys([*facts.tolist(), *nearby.tolist()]))[: self.max_facts]
        score = view.similar("fact", vector, np.array(kept, np.int64)).tolist()
        hits = (Hit(at, value, "index") for at, value in zip(kept, score, strict=True))
        return replace(found, facts=tuple(hits))
