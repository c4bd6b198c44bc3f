"""Semantics-based extraction (SAE): what of a subgraph bears on the question."""

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

    An embedder says which; a model chooses among the best fitting ones, and where it chooses
    nothing the embedder's word stands. Facts without a relation are relations of their own.
    """

    what: Part = "edges"
    keep: int = 64
    by: Model = "eem"

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts` to those that are left, in the order of their fit."""
        if not found.facts:
            return found
        facts = np.array([hit.at for hit in found.facts], np.int64)
        groups, fit = await self._parts(ctx, found, facts)
        ranked = best(fit, np.arange(len(fit)), max(self.keep, 1) * 2)
        picked = ranked[: self.keep]
        if self.by == "llm":
            texts = await self._texts(ctx, groups[ranked])
            said = await chosen(ctx, _KINDS[self.what], texts, self.keep)
            picked = ranked[said] if said else picked
        if self.what == "nodes":
            starts = [hit.at for hit in found.entities]
            kept = np.unique(np.append(groups[picked], np.array(starts, np.int64)))
            near = Near(kept, np.ones(len(kept)))
            allowed = {hit.at for hit in facts_among(ctx.view, near, "nodes")}
            left = tuple(hit for hit in found.facts if hit.at in allowed)
        else:
            value = dict(zip(groups[picked].tolist(), fit[picked].tolist(), strict=True))
            own = self._groups(ctx, facts)
            left = tuple(
                Hit(hit.at, value[group], f"{self.what} by {self.by}")
                for hit, group in zip(found.facts, own.tolist(), strict=True)
                if group in value
            )
        return replace(found, facts=left or found.facts)

    def _groups(self, ctx: Context, facts: Ints) -> Ints:
        """What each fact is kept or lost with: its relation, or itself."""
        ways = ways_of(ctx.view)
        label = ways.labels[facts].astype(np.int64)
        if self.what == "triples":
            return ways.names + facts
        return np.where(label < 0, ways.names + facts, label)

    async def _parts(self, ctx: Context, found: Found, facts: Ints) -> tuple[Ints, Floats]:
        """The elements to choose from, and how well each fits."""
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
        """Cosines with the question; texts are read only where there are no vectors."""
        if has_vectors(ctx.view, kind):
            return ctx.view.similar(kind, await ctx.vector(), at)
        read = _entity_texts if kind == "entity" else _fact_texts
        return await _likeness(ctx, await read(ctx, at))

    async def _texts(self, ctx: Context, groups: Ints) -> list[str]:
        """Elements in words."""
        if self.what == "nodes":
            return await _entity_texts(ctx, groups)
        names = ways_of(ctx.view).names
        own = groups[groups >= names]
        said = dict(zip(own.tolist(), await _fact_texts(ctx, own - names), strict=True))
        words = await label_words(ctx)
        return [said[group] if group in said else words[group] for group in groups.tolist()]


async def _fact_texts(ctx: Context, facts: Ints) -> list[str]:
    held = await facts_at(ctx, facts.tolist())
    return [held[at].text for at in facts.tolist()]


async def _entity_texts(ctx: Context, entities: Ints) -> list[str]:
    held = await entities_at(ctx, entities.tolist())
    return [held[at].name for at in entities.tolist()]


async def _likeness(ctx: Context, texts: list[str]) -> Floats:
    """Cosines of texts that have no stored vector; of very many, the first are compared."""
    near = np.full(len(texts), -1, np.float32)
    near[:_COMPARED] = await kept_vectors(ctx, texts[:_COMPARED]) @ await ctx.vector()
    return near


@dataclass(frozen=True)
class IndexSubgraph:
    """Takes the facts and entities nearest by vector, and what is one step around them.

    No walk comes before it: the vector index is asked directly.
    """

    top_k: int = 64
    max_facts: int = 2000

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`, those found by themselves first."""
        view = ctx.view
        asked = await ctx.vector()
        links = view.links("entity_fact")
        if has_vectors(view, "fact"):
            scores = view.similar("fact", asked)
            facts = best(scores, view.keys("fact"), self.top_k)
            members = view.links("fact_entity")
            near = distinct(members.columns[members.edges_of(facts)[1]])
        elif has_vectors(view, "entity"):
            scores = view.similar("entity", asked)
            near, facts = best(scores, view.keys("entity"), self.top_k), np.zeros(0, np.int64)
        else:
            return found
        near = np.unique(np.append(near, [hit.at for hit in found.entities])).astype(np.int64)
        degree = links.degrees_of(near)
        near = near[np.argsort(degree, kind="stable")]
        around = links.columns[links.edges_of(near)[1][: self.max_facts]].astype(np.int64)
        kept = list(dict.fromkeys([*facts.tolist(), *around.tolist()]))[: self.max_facts]
        score = view.similar("fact", asked, np.array(kept, np.int64)).tolist()
        hits = (Hit(at, value, "index") for at, value in zip(kept, score, strict=True))
        return replace(found, facts=tuple(hits))
