"""Steps over summary trees: RAPTOR's collapsed tree, and E²GraphRAG's choice by distance."""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from clew.context import Context
from clew.graph.csr import Ints, sorted_unique
from clew.index.view import View
from clew.retrieve.graph_cache import load_summaries, require_tree
from clew.retrieve.rank import hit_positions, top_hits
from clew.types import Found, Hit

_CHARS_PER_TOKEN = 4  # average characters of a token
_MAX_REACHED = 20_000  # reached entities at which a search stops: hubs join everything


@dataclass(frozen=True)
class Collapsed:
    """Ranks passages and summaries together by cosine within a token budget.

    A summary brings in the passages it quotes, with its own score.
    """

    tree: str = "raptor"
    tokens: int = 2000
    top_k: int = 100

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `communities` and `chunks`, best first."""
        forest = require_tree(ctx, self.tree)
        question = await ctx.vector()
        nodes = forest.communities(self.tree)
        near = ctx.view.cosines("community", question, nodes)
        summaries = [
            Hit(int(nodes[h.at]), h.score, "summary") for h in top_hits(near, nodes, self.top_k, "")
        ]
        nearest = zip(*ctx.nearest("chunk", question, self.top_k), strict=True)
        chunks = tuple(Hit(int(at), float(score), "passage") for at, score in nearest)
        kept = await self._select_within_budget(ctx, summaries, chunks)
        return replace(
            found, communities=kept, chunks=await self._add_quoted_chunks(ctx, kept, chunks)
        )

    async def _select_within_budget(
        self, ctx: Context, summaries: list[Hit], chunks: tuple[Hit, ...]
    ) -> tuple[Hit, ...]:
        """Return the summaries among the best nodes that fit into the budget together."""
        texts_of = await load_summaries(ctx, hit_positions(summaries))
        keys = ctx.view.keys("chunk")
        texts = await ctx.snapshot.chunks([int(keys[hit.at]) for hit in chunks])
        left, kept = self.tokens * _CHARS_PER_TOKEN, []
        nodes = [(hit, len(texts_of[hit.at].text)) for hit in summaries]
        nodes += [(hit, len(texts[int(keys[hit.at])].text)) for hit in chunks]
        for hit, length in sorted(nodes, key=lambda one: (-one[0].score, one[0].by, one[0].at)):
            left -= length
            if left < 0:
                break
            if hit.by == "summary":
                kept.append(hit)
        return tuple(kept)

    async def _add_quoted_chunks(
        self, ctx: Context, summaries: tuple[Hit, ...], chunks: tuple[Hit, ...]
    ) -> tuple[Hit, ...]:
        texts_of = await load_summaries(ctx, hit_positions(summaries))
        keys = ctx.view.keys("chunk")
        score = {hit.at: hit for hit in chunks}
        for hit in summaries:
            places = [place.chunk for point in texts_of[hit.at].points for place in point.places]
            for chunk in np.searchsorted(keys, places).tolist():
                if chunk not in score or score[chunk].score < hit.score:
                    # A quoted passage ranks with the summary that quotes it.
                    score[chunk] = Hit(chunk, hit.score, "summary")
        ranked = sorted(score.values(), key=lambda hit: (-hit.score, hit.by, hit.at))
        return tuple(ranked[: self.top_k])


@dataclass(frozen=True)
class EntityPairs:
    """Takes passages with pairs of entities within `hops`; without any, the summary tree."""

    hops: int = 4
    most: int = 25
    """Passages; if more contain some pair, pairs must be nearer."""
    otherwise: Collapsed = Collapsed(tree="e2")
    top_k: int = 100

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`, and `communities` where the question is global."""
        named = _group_by_name(ctx.view, found)
        if not named:
            return await self.otherwise(ctx, found)
        near = _pair_distances(ctx.view, named, self.hops)
        chunks: set[int] = set()
        for hops in range(self.hops, 0, -1):
            pairs = [pair for pair, apart in near.items() if apart <= hops]
            chunks = _chunks_with_both(ctx.view, pairs)
            if len(chunks) <= self.most:
                break
        entities = tuple(
            Hit(at, 1.0, "named") for at in dict.fromkeys(at for group in named for at in group)
        )
        if not chunks:
            return replace(await self._search_tree(ctx, found, named), entities=entities)
        ranked = await _rank_by_occurrence(ctx, np.array(sorted(chunks)), named)
        rest = (await self._search_tree(ctx, found, named)).chunks
        more = [hit for hit in rest if hit.at not in chunks]
        return replace(found, chunks=(*ranked, *more)[: self.top_k], entities=entities)

    async def _search_tree(self, ctx: Context, found: Found, named: list[list[int]]) -> Found:
        """Search the summary tree; passages that mention an entity of the question come first."""
        tree_found = await self.otherwise(ctx, found)
        links = ctx.view.links("entity_chunk")
        mention = {int(c) for group in named for at in group for c in links.row(at)}
        ranked = sorted(tree_found.chunks, key=lambda hit: (hit.at not in mention, -hit.score))
        return replace(tree_found, chunks=tuple(ranked))


def _group_by_name(view: View, found: Found) -> list[list[int]]:
    groups: dict[int, list[int]] = {}
    for hit in found.entities:
        groups.setdefault(int(view.first_namesake[hit.at]), []).append(hit.at)
    return list(groups.values())


def _pair_distances(view: View, named: list[list[int]], hops: int) -> dict[tuple[int, int], int]:
    """Return the distance in facts of each pair of groups, up to `hops`."""
    found = {}
    for one, other in combinations(named, 2):
        apart = _hop_distance(view, np.array(one), np.array(other), hops)
        if apart is not None:
            found[one[0], other[0]] = apart
    return found


def _hop_distance(view: View, one: Ints, other: Ints, hops: int) -> int | None:
    """Return the number of hops between two groups by breadth-first search; None if too far."""
    reached = now = sorted_unique(one)
    for hop in range(1, hops + 1):
        now = np.setdiff1d(_neighbours(view, now), reached, assume_unique=True)
        if np.isin(other, now).any():
            return hop
        reached = sorted_unique(np.concatenate([reached, now]))
        if not len(now) or len(reached) > _MAX_REACHED:
            return None
    return None


def _neighbours(view: View, entities: Ints) -> Ints:
    facts, members = view.links("entity_fact"), view.links("fact_entity")
    _, edge = facts.edges_of(entities)
    _, ends = members.edges_of(sorted_unique(facts.columns[edge]))
    return sorted_unique(members.columns[ends])


def _chunks_with_both(view: View, pairs: list[tuple[int, int]]) -> set[int]:
    links = view.links("entity_chunk")
    both = [np.intersect1d(links.row(a), links.row(b)) for a, b in pairs]
    return {int(chunk) for some in both for chunk in some}


async def _rank_by_occurrence(
    ctx: Context, chunks: Ints, named: list[list[int]]
) -> tuple[Hit, ...]:
    """Rank chunks by the number of entities they mention, then by cosine."""
    links = ctx.view.links("entity_chunk")
    mentioned = np.zeros(len(chunks), np.float32)
    for group in named:
        rows = np.concatenate([links.row(at) for at in group])
        mentioned += np.isin(chunks, rows)
    near = ctx.view.cosines("chunk", await ctx.vector(), chunks)
    scores = (mentioned + near / 10).astype(np.float32)
    ranked = top_hits(scores, ctx.view.codes("chunk")[chunks], len(chunks), "both named")
    return tuple(replace(hit, at=int(chunks[hit.at])) for hit in ranked)
