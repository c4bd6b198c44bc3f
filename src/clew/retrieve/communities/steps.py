"""Steps over community trees: top-down search, communities of hits, reports, local search."""

from collections import Counter, defaultdict
from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context, TraceStep
from clew.graph.csr import Ints
from clew.retrieve.expand import entity_fact_pairs, entity_facts
from clew.retrieve.facts import score_facts
from clew.retrieve.graph_cache import (
    get_entity_communities,
    get_forest,
    load_summaries,
    rank_communities,
    require_tree,
    summary_source,
)
from clew.retrieve.rank import ANSWER_MARK, hit_positions, top_positions
from clew.tree.outline import NO_TREE, missing_tree_error
from clew.types import Found, Hit

_RELATION_WEIGHT = 1e-3  # among one entity's passages, those with more of its relations come first


@dataclass(frozen=True)
class TopDown:
    """Searches communities level by level, then ranks the facts and members of the lowest."""

    tree: str = "dual"
    beam: int = 30
    """Communities opened on each level; facts and members come from the lowest of them."""
    communities: int = 5
    """How many of them become evidence themselves."""
    entities: int = 20
    facts: int = 20
    belonging: float = 0.1
    """Weight of the community's cosine beside the fact's own."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `communities`, `facts` and `entities`, best first."""
        leaves = await self._descend(ctx)
        similarity = {hit.at: hit.score for hit in leaves}
        facts = await self._rank_facts(ctx, leaves)
        community_of = get_entity_communities(ctx, self.tree)
        members = ctx.view.links("fact_entity")
        score: dict[int, float] = {}
        for hit in facts:
            for entity in members.row(hit.at).tolist():
                if int(community_of[entity]) in similarity:
                    score.setdefault(entity, hit.score)
        entities = tuple(Hit(at, value, "community") for at, value in score.items())
        return replace(
            found,
            communities=leaves[: self.communities],
            facts=facts,
            entities=entities[: self.entities],
        )

    async def _descend(self, ctx: Context) -> tuple[Hit, ...]:
        """Return the lowest communities reached by a beam over their summaries."""
        forest = require_tree(ctx, self.tree)
        communities = forest.communities(self.tree)
        frontier = communities[forest.parent[communities] < 0]
        leaves: list[int] = []
        while len(frontier):
            kept = await rank_communities(ctx, frontier, self.beam, "top-down")
            at = hit_positions(kept)
            is_leaf = forest.below.degrees_of(at) == 0
            leaves += at[is_leaf].tolist()
            _, edges = forest.below.edges_of(at[~is_leaf])
            frontier = np.unique(forest.below.columns[edges].astype(np.int64))
        return await rank_communities(
            ctx, np.unique(leaves).astype(np.int64), self.beam, "top-down"
        )

    async def _rank_facts(self, ctx: Context, leaves: tuple[Hit, ...]) -> tuple[Hit, ...]:
        # These communities are leaves: their members are in no lower one.
        members = require_tree(ctx, self.tree).entities
        which, edge = members.edges_of(hit_positions(leaves))
        owner, stated = entity_fact_pairs(ctx.view, members.columns[edge].astype(np.int64))
        facts, place = np.unique(stated, return_inverse=True)
        leaf_scores = np.array([hit.score for hit in leaves], np.float32)
        community_score = np.full(len(facts), -1, np.float32)
        np.maximum.at(community_score, place, leaf_scores[which[owner]])
        near = await score_facts(ctx, await ctx.vector(), at=facts)
        score = near + np.float32(self.belonging) * community_score
        top = top_positions(score, ctx.view.codes("fact")[facts], self.facts)
        return tuple(Hit(int(facts[at]), float(score[at]), "community") for at in top)


@dataclass(frozen=True)
class BottomUp:
    """Goes from found entities to their communities and the communities' keywords."""

    tree: str = "dual"
    communities: int = 5
    keywords: int = 3
    """Per community; appended to `entities`."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `communities`, those of most found entities first; extend `entities`."""
        community_of = get_entity_communities(ctx, self.tree)
        weight: dict[int, float] = defaultdict(float)
        for rank, hit in enumerate(found.entities, start=1):
            if community_of[hit.at] >= 0:
                weight[int(community_of[hit.at])] += hit.score / rank
        ranked = sorted(weight, key=lambda at: (-weight[at], at))[: self.communities]
        known = {hit.at for hit in found.entities}
        keywords = [
            Hit(entity, weight[at] / (rank + 1), "keyword")
            for at in ranked
            for rank, entity in enumerate(
                summary_source(ctx).keyword_positions(at)[: self.keywords]
            )
            if entity not in known
        ]
        return replace(
            found,
            communities=tuple(Hit(at, weight[at], "bottom-up") for at in ranked),
            entities=found.entities + tuple(keywords),
        )


@dataclass(frozen=True)
class Reports:
    """Ranks the community reports of one tree level by cosine with the question."""

    tree: str = "leiden"
    level: int = 1
    """0 is the coarsest; a branch that ends above it counts with its last level."""
    top_k: int = 20
    least: int = 2
    """Smaller communities are left out."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `communities`, best first."""
        here = require_tree(ctx, self.tree).at_level(self.tree, self.level)
        here = self._drop_small(ctx, here)
        return replace(found, communities=await rank_communities(ctx, here, self.top_k, "report"))

    def _drop_small(self, ctx: Context, communities: Ints) -> Ints:
        large: Ints = communities[summary_source(ctx).sizes[communities] >= self.least]
        return large if len(large) else communities


@dataclass(frozen=True)
class CitedChunks:
    """Takes the passages that the found communities' summaries cite."""

    of_each: int = 3
    top_k: int = 100

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`: the best of every report, ranked by cosine with the question."""
        texts = await load_summaries(ctx, hit_positions(found.communities))
        facts, chunks = ctx.view.keys("fact"), ctx.view.keys("chunk")
        links = ctx.view.links("fact_chunk")
        question = await ctx.vector()
        score: dict[int, float] = {}
        for hit in found.communities:
            cited = [key for point in texts[hit.at].points for key in point.facts]
            where = [c for f in np.searchsorted(facts, cited) for c in links.row(int(f)).tolist()]
            places = [p.chunk for point in texts[hit.at].points for p in point.places]
            where += np.searchsorted(chunks, places).tolist()
            own = np.unique(np.array(where, np.int64))
            near = ctx.view.cosines("chunk", question, own)
            for pick in top_positions(near, ctx.view.codes("chunk")[own], self.of_each).tolist():
                chunk = int(own[pick])
                score[chunk] = max(score.get(chunk, -9.0), float(near[pick]))
        ranked = sorted(score, key=lambda at: (-score[at], at))[: self.top_k]
        return replace(found, chunks=tuple(Hit(c, score[c], "report") for c in ranked))


@dataclass(frozen=True)
class IfGrown:
    """Runs a tree search where the tree exists; finds nothing, and says so, where it does not."""

    route: TopDown

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Run the search, or return an empty result: other branches go on without it."""
        if self.route.tree not in get_forest(ctx).tree_names():
            _note_missing(ctx, self.route.tree)
            return Found()
        return await self.route(ctx, found)


def _note_missing(ctx: Context, tree: str) -> None:
    """Say in the trace, and so in the result's note, that a tree was not searched."""
    ctx.trace.append(TraceStep(NO_TREE, tree, str(missing_tree_error(tree)), 0.0))


@dataclass(frozen=True)
class Around:
    """Takes the found entities' relations, community reports and passages."""

    tree: str = "leiden"
    relations: int = 10
    """For each entity found."""
    reports: int = 5
    top_k: int = 100

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`, `communities` and `chunks`, best first."""
        facts = await self._rank_relations(ctx, found)
        return replace(
            found,
            facts=facts,
            communities=self._rank_reports(ctx, found),
            chunks=self._rank_passages(ctx, found, {hit.at for hit in facts}),
        )

    async def _rank_relations(self, ctx: Context, found: Found) -> tuple[Hit, ...]:
        """Rank relations: those between two found entities first, then by cosine."""
        view = ctx.view
        chosen = hit_positions(found.entities)
        facts = entity_facts(view, chosen)
        members = view.links("fact_entity")
        which, edge = members.edges_of(facts)
        inside = np.isin(members.columns[edge], chosen)
        found_members = np.bincount(which, weights=inside, minlength=len(facts))
        near = await score_facts(ctx, await ctx.vector(), at=facts)
        order = np.lexsort((facts, -near, found_members <= 1))[: self.relations * len(chosen)]
        return tuple(Hit(int(facts[at]), float(near[at]), "relation") for at in order)

    def _rank_reports(self, ctx: Context, found: Found) -> tuple[Hit, ...]:
        """Rank communities by the number of found entities in them, then by size."""
        group_of = get_entity_communities(ctx, self.tree)
        sizes = summary_source(ctx).sizes
        counts = Counter(int(group_of[hit.at]) for hit in found.entities if group_of[hit.at] >= 0)
        ranked = sorted(counts, key=lambda at: (-counts[at], -int(sizes[at]), at))[: self.reports]
        return tuple(Hit(at, float(counts[at]), "report") for at in ranked)

    def _rank_passages(self, ctx: Context, found: Found, facts: set[int]) -> tuple[Hit, ...]:
        """Rank passages entity by entity; within one by the number of relations they state."""
        links, chunk_facts = ctx.view.links("entity_chunk"), ctx.view.links("chunk_fact")
        score: dict[int, float] = {}
        for rank, hit in enumerate(found.entities, start=1):
            for chunk in links.row(hit.at).tolist():
                if chunk not in score:
                    stated = sum(fact in facts for fact in chunk_facts.row(chunk).tolist())
                    score[chunk] = 1 / rank + _RELATION_WEIGHT * stated
        ranked = sorted(score, key=lambda at: (-score[at], at))[: self.top_k]
        return tuple(Hit(at, score[at], "entity") for at in ranked)


@dataclass(frozen=True)
class ReportsOf:
    """Adds the reports on the communities of the question's entities."""

    tree: str = "leiden"
    reports: int = 1

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `communities`; the trace says why there are none: paths stand without reports."""
        if self.tree not in get_forest(ctx).tree_names():
            _note_missing(ctx, self.tree)
            return found
        community_of = get_entity_communities(ctx, self.tree)
        # A path may come back to where it starts, which then is an answer as well.
        starts = {hit.at for hit in found.entities if hit.by != ANSWER_MARK}
        starts |= {path.entities[0] for path in found.paths if path.entities}
        counts = Counter(int(community_of[at]) for at in sorted(starts) if community_of[at] >= 0)
        ranked = sorted(counts, key=lambda at: (-counts[at], at))[: self.reports]
        if not ranked:
            reason = "the question's entities are in no community" if starts else "no entity found"
            ctx.trace.append(TraceStep("no report", self.tree, reason, 0.0))
        return replace(
            found, communities=tuple(Hit(at, float(counts[at]), "report") for at in ranked)
        )
