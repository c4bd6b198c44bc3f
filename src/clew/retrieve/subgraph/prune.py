"""Semantic-augmented extraction (SAE): prunes a subgraph to what fits the question."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from clew.context import Context
from clew.graph.csr import Floats, Ints, sorted_unique
from clew.retrieve.graph_cache import build_traversal
from clew.retrieve.labels import embed_cached, has_vectors, load_relation_texts
from clew.retrieve.model_choice import ChoiceKind, ScoringModel, choose_items
from clew.retrieve.pack import fetch_entities, fetch_fact_texts
from clew.retrieve.rank import hit_positions, top_positions
from clew.retrieve.subgraph.extract import SubgraphEntities, induced_facts
from clew.retrieve.text_scores import PathScorerName, create_scorer
from clew.types import Found, Hit

SubgraphPart = Literal["nodes", "edges", "triples"]
_CHOICE_KINDS: dict[SubgraphPart, ChoiceKind] = {
    "nodes": "entities",
    "edges": "relations",
    "triples": "facts",
}
_MAX_EMBEDDED = 2048  # elements without a stored vector that are embedded for one question


@dataclass(frozen=True)
class Prune:
    """Keeps the entities, relations or facts of the subgraph that fit the question best.

    The embedder ranks them; a model chooses among the best, and where it chooses nothing the
    embedder's ranking stands. Facts without a relation count as relations of their own.
    """

    what: SubgraphPart = "edges"
    keep: int = 64
    by: ScoringModel = "eem"
    scorer: PathScorerName = "cosine"

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts` to the remaining ones, with the score of their group."""
        if not found.facts:
            return found
        facts = hit_positions(found.facts)
        groups, fit = await self._score_parts(ctx, found, facts)
        ranked = top_positions(fit, np.arange(len(fit)), max(self.keep, 1) * 2)
        picked = ranked[: self.keep]
        if self.by == "llm":
            texts = await self._describe_groups(ctx, groups[ranked])
            picks = await choose_items(ctx, _CHOICE_KINDS[self.what], texts, self.keep)
            picked = ranked[picks] if picks else picked
        if self.what == "nodes":
            starts = [hit.at for hit in found.entities]
            kept = np.unique(np.append(groups[picked], np.array(starts, np.int64)))
            near = SubgraphEntities(kept, np.ones(len(kept)))
            allowed = {hit.at for hit in induced_facts(ctx.view, near, "nodes")}
            remaining = tuple(hit for hit in found.facts if hit.at in allowed)
        else:
            value = dict(zip(groups[picked].tolist(), fit[picked].tolist(), strict=True))
            own = self._group_facts(ctx, facts)
            remaining = tuple(
                Hit(hit.at, value[group], f"{self.what} by {self.by}")
                for hit, group in zip(found.facts, own.tolist(), strict=True)
                if group in value
            )
        return replace(found, facts=remaining or found.facts)

    def _group_facts(self, ctx: Context, facts: Ints) -> Ints:
        """Return the group each fact is kept or dropped with: its relation, or itself."""
        ways = build_traversal(ctx.view)
        label = ways.labels[facts].astype(np.int64)
        if self.what == "triples":
            return ways.relation_count + facts
        return np.where(label < 0, ways.relation_count + facts, label)

    async def _score_parts(self, ctx: Context, found: Found, facts: Ints) -> tuple[Ints, Floats]:
        """Return the elements to choose from, and the fit of each."""
        if self.what == "nodes":
            members = ctx.view.links("fact_entity")
            entities = sorted_unique(members.columns[members.edges_of(facts)[1]])
            return entities, await self._score_by_question(ctx, "entity", entities)
        groups = sorted_unique(self._group_facts(ctx, facts))
        ways = build_traversal(ctx.view)
        named = groups < ways.relation_count
        fit = np.zeros(len(groups), np.float32)
        if named.any():
            scorer = create_scorer(ctx, ways, found.rest, self.scorer)
            fit[named] = (await scorer.score_steps(groups[named][:, None] * 2))[:, 0]
        if not named.all():
            fit[~named] = await self._score_by_question(
                ctx, "fact", groups[~named] - ways.relation_count
            )
        return groups, fit

    async def _score_by_question(
        self, ctx: Context, kind: Literal["entity", "fact"], at: Ints
    ) -> Floats:
        """Cosines with the question; texts are embedded only where there are no vectors."""
        if has_vectors(ctx.view, kind):
            return ctx.view.cosines(kind, await ctx.vector(), at)
        read = _entity_texts if kind == "entity" else _fact_texts
        return await _score_texts(ctx, await read(ctx, at))

    async def _describe_groups(self, ctx: Context, groups: Ints) -> list[str]:
        if self.what == "nodes":
            return await _entity_texts(ctx, groups)
        names = build_traversal(ctx.view).relation_count
        own = groups[groups >= names]
        texts = dict(zip(own.tolist(), await _fact_texts(ctx, own - names), strict=True))
        words = await load_relation_texts(ctx)
        return [texts[group] if group in texts else words[group] for group in groups.tolist()]


async def _fact_texts(ctx: Context, facts: Ints) -> list[str]:
    fetched = await fetch_fact_texts(ctx, facts.tolist())
    return [fetched[at].text for at in facts.tolist()]


async def _entity_texts(ctx: Context, entities: Ints) -> list[str]:
    fetched = await fetch_entities(ctx, entities.tolist())
    return [fetched[at].name for at in entities.tolist()]


async def _score_texts(ctx: Context, texts: list[str]) -> Floats:
    """Cosines of texts without stored vectors; of very many only the first are compared."""
    near = np.full(len(texts), -1, np.float32)
    near[:_MAX_EMBEDDED] = await embed_cached(ctx, texts[:_MAX_EMBEDDED]) @ await ctx.vector()
    return near
