"""RAPTOR's collapsed tree: all nodes of a summary tree and all passages as one ranking."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context
from clew.retrieve.grown.grove import Ints, load_summaries, require_tree
from clew.retrieve.rank import top_hits
from clew.types import Found, Hit

_CHARS_PER_TOKEN = 4  # average characters of a token


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
        chunks = top_hits(
            ctx.view.cosines("chunk", question), ctx.view.keys("chunk"), self.top_k, "passage"
        )
        kept = await self._select_within_budget(ctx, summaries, chunks)
        return replace(
            found, communities=kept, chunks=await self._add_quoted_chunks(ctx, kept, chunks)
        )

    async def _select_within_budget(
        self, ctx: Context, summaries: list[Hit], chunks: tuple[Hit, ...]
    ) -> tuple[Hit, ...]:
        """Return the summaries among the best nodes that fit into the budget together."""
        texts_of = await load_summaries(ctx, _hit_positions(summaries))
        keys = ctx.view.keys("chunk")
        texts = await ctx.snapshot.chunks([int(keys[hit.at]) for hit in chunks])
        room, kept = self.tokens * _CHARS_PER_TOKEN, []
        nodes = [(hit, len(texts_of[hit.at].text)) for hit in summaries]
        nodes += [(hit, len(texts[int(keys[hit.at])].text)) for hit in chunks]
        for hit, length in sorted(nodes, key=lambda one: (-one[0].score, one[0].by, one[0].at)):
            room -= length
            if room < 0:
                break
            if hit.by == "summary":
                kept.append(hit)
        return tuple(kept)

    async def _add_quoted_chunks(
        self, ctx: Context, summaries: tuple[Hit, ...], chunks: tuple[Hit, ...]
    ) -> tuple[Hit, ...]:
        texts_of = await load_summaries(ctx, _hit_positions(summaries))
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


def _hit_positions(hits: Sequence[Hit]) -> Ints:
    return np.array([hit.at for hit in hits], np.int64)
