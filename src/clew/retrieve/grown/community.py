"""Along the knowledge tree: from the question down to members, from a hit up to its community."""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context
from clew.retrieve.grown.grove import Ints, fits, forest, grown, homes, nearest, quarry, told
from clew.retrieve.rank import best
from clew.retrieve.region.expand import facts_by
from clew.types import Found, Hit


@dataclass(frozen=True)
class TopDown:
    """Question → communities, level by level → the facts and members that fit it best."""

    tree: str = "dual"
    beam: int = 30
    """Communities opened on each level; facts and members come from the lowest of them."""
    communities: int = 5
    """How many of them are evidence themselves."""
    entities: int = 20
    facts: int = 20
    belonging: float = 0.1
    """How much a fact gains from the cosine of its community, beside its own."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `communities`, `facts` and `entities`, best first."""
        opened = await self._opened(ctx)
        near = {hit.at: hit.score for hit in opened}
        facts = await self._facts(ctx, opened)
        home, members = homes(ctx, self.tree), ctx.view.links("fact_entity")
        score: dict[int, float] = {}
        for hit in facts:
            for entity in members.row(hit.at).tolist():
                if int(home[entity]) in near:
                    score.setdefault(entity, hit.score)
        entities = tuple(Hit(at, value, "community") for at, value in score.items())
        return replace(
            found,
            communities=opened[: self.communities],
            facts=facts,
            entities=entities[: self.entities],
        )

    async def _opened(self, ctx: Context) -> tuple[Hit, ...]:
        """The lowest communities on the way down, by what their texts say."""
        forest = grown(ctx, self.tree)
        here = forest.of(self.tree)
        waiting = here[forest.parent[here] < 0]
        lowest: list[int] = []
        while len(waiting):
            kept = await nearest(ctx, waiting, self.beam, "top-down")
            at = np.array([hit.at for hit in kept], np.int64)
            ends = forest.below.degrees_of(at) == 0
            lowest += at[ends].tolist()
            _, edges = forest.below.edges_of(at[~ends])
            waiting = np.unique(forest.below.columns[edges].astype(np.int64))
        return await nearest(ctx, np.unique(lowest).astype(np.int64), self.beam, "top-down")

    async def _facts(self, ctx: Context, opened: tuple[Hit, ...]) -> tuple[Hit, ...]:
        # The communities are lowest ones: what is in them is not in one below.
        held = grown(ctx, self.tree).entities
        which, edge = held.edges_of(np.array([hit.at for hit in opened], np.int64))
        owner, said = facts_by(ctx.view, held.columns[edge].astype(np.int64))
        facts, place = np.unique(said, return_inverse=True)
        near = np.array([hit.score for hit in opened], np.float32)
        belongs = np.full(len(facts), -1, np.float32)
        np.maximum.at(belongs, place, near[which[owner]])
        score = await fits(ctx, facts) + np.float32(self.belonging) * belongs
        top = best(score, facts, self.facts)
        return tuple(Hit(int(facts[at]), float(score[at]), "community") for at in top)


@dataclass(frozen=True)
class BottomUp:
    """Found entities → the communities they are in, and the keywords of those."""

    tree: str = "dual"
    communities: int = 5
    keywords: int = 3
    """Of each community; they join `entities` behind what is there."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `communities`, those that most of what was found is in first; extend `entities`."""
        home = homes(ctx, self.tree)
        weight: dict[int, float] = defaultdict(float)
        for rank, hit in enumerate(found.entities, start=1):
            if home[hit.at] >= 0:
                weight[int(home[hit.at])] += hit.score / rank
        ranked = sorted(weight, key=lambda at: (-weight[at], at))[: self.communities]
        known = {hit.at for hit in found.entities}
        words = [
            Hit(entity, weight[at] / (rank + 1), "keyword")
            for at in ranked
            for rank, entity in enumerate(quarry(ctx).keywords(at)[: self.keywords])
            if entity not in known
        ]
        return replace(
            found,
            communities=tuple(Hit(at, weight[at], "bottom-up") for at in ranked),
            entities=found.entities + tuple(words),
        )


@dataclass(frozen=True)
class InContext:
    """Raises chunks whose entities are in communities that the question is about."""

    tree: str = "dual"
    weight: float = 0.1
    """Of the communities' mean cosine, beside the chunk's own score."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Rank `chunks` anew."""
        if not found.chunks or not len(grown(ctx, self.tree)):
            return found
        near = ctx.view.similar("community", await ctx.vector())
        home, links = homes(ctx, self.tree), ctx.view.links("chunk_entity")
        which, edge = links.edges_of(np.array([hit.at for hit in found.chunks]))
        at = home[links.columns[edge]]
        which, at = which[at >= 0], at[at >= 0]
        count = np.bincount(which, minlength=len(found.chunks))
        mean = np.bincount(which, weights=near[at], minlength=len(found.chunks))
        mean = np.divide(mean, count, out=np.zeros_like(mean), where=count > 0)
        score = [h.score + self.weight * m for h, m in zip(found.chunks, mean, strict=True)]
        order = sorted(range(len(score)), key=lambda n: (-score[n], n))
        return replace(
            found, chunks=tuple(replace(found.chunks[n], score=float(score[n])) for n in order)
        )


@dataclass(frozen=True)
class Reports:
    """Question → the reports of one level of a tree, nearest first."""

    tree: str = "leiden"
    level: int = 1
    """0 is the coarsest; branches that end above it count where they end."""
    top_k: int = 20
    least: int = 2
    """Communities of fewer members have nothing to report."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `communities`, best first."""
        here = grown(ctx, self.tree).at_level(self.tree, self.level)
        here = self._worth(ctx, here)
        return replace(found, communities=await nearest(ctx, here, self.top_k, "report"))

    def _worth(self, ctx: Context, communities: Ints) -> Ints:
        large: Ints = communities[quarry(ctx).sizes[communities] >= self.least]
        return large if len(large) else communities


@dataclass(frozen=True)
class CitedChunks:
    """The passages that the found communities' summaries rest on."""

    of_each: int = 3
    top_k: int = 100

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`: the best of every report in turn, by what they say to the question."""
        texts = await told(ctx, np.array([hit.at for hit in found.communities], np.int64))
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
            near = ctx.view.similar("chunk", question, own)
            for pick in best(near, own, self.of_each).tolist():
                chunk = int(own[pick])
                score[chunk] = max(score.get(chunk, -9.0), float(near[pick]))
        ranked = sorted(score, key=lambda at: (-score[at], at))[: self.top_k]
        return replace(found, chunks=tuple(Hit(c, score[c], "report") for c in ranked))


@dataclass(frozen=True)
class IfGrown:
    """Takes a route along a tree where the tree is there, and finds nothing where it is not."""

    route: TopDown

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """What the route finds, or nothing: other routes go on without it."""
        if self.route.tree not in forest(ctx).names():
            return Found()
        return await self.route(ctx, found)
