"""Iterative path retrieval (ISAR): a beam search over relation paths, pruned at every hop."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from clew.context import Context
from clew.graph.trails import Trails
from clew.graph.traverse import Ints
from clew.retrieve.choose import SHOWN, chosen, enough
from clew.retrieve.paths.hops import predicted_hops
from clew.retrieve.paths.ranked import preferred
from clew.retrieve.paths.trail_search import Ground, Tracked, best_paths, ground, tracked
from clew.retrieve.paths.verbalise import trail_texts
from clew.retrieve.paths.ways import Floats
from clew.retrieve.rank import best
from clew.retrieve.region.prune import Model
from clew.types import Found

Scoring = Literal["path", "triple", "auto"]
Pruning = Literal["fixed", "dynamic", "auto"]

_MOST_DYNAMIC = 64  # relation paths that dynamic pruning keeps at most


@dataclass(frozen=True)
class BeamPaths:
    """Keeps the `width` best relation paths at each of `max_hop` hops; all that were kept count.

    `scoring="triple"` scores every step by itself, `pruning="dynamic"` keeps what is above the mean
    instead of a fixed number; `auto` takes the first for questions of several hops and the second
    for those of one. With `by="llm"` a model chooses at each hop among the `prefilter` best
    (EEMs-PF), and the embedder fills the remaining places (`supplement`, EEMs-S). A model may also
    filter the result (`refine`, LLMs-R) or end the search (`early_stop`, LLMs-ES).
    """

    width: int = 8
    max_hop: int = 4
    by: Model = "eem"
    scoring: Scoring = "path"
    pruning: Pruning = "fixed"
    prefilter: int = SHOWN
    supplement: bool = True
    refine: bool = False
    early_stop: bool = False
    top_k: int = 32

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `paths`, best first; never empty where there is a path."""
        search = ground(ctx, found)
        beam = await self._settled(ctx, search)
        kept = await tracked(search, self.max_hop, _Beam(ctx, search, beam))
        if self.refine and len(kept.codes):
            kept = await _refined(ctx, search, kept)
        return replace(found, paths=best_paths(search, kept, self.top_k, f"beam by {self.by}"))

    async def _settled(self, ctx: Context, search: Ground) -> "BeamPaths":
        """Return the options with `auto` resolved by the predicted number of hops."""
        if "auto" not in (self.scoring, self.pruning):
            return self
        several = await predicted_hops(ctx, search.ways, search.shape) > 1
        scoring: Scoring = "triple" if several else "path"
        pruning: Pruning = "fixed" if several else "dynamic"
        return replace(
            self,
            scoring=scoring if self.scoring == "auto" else self.scoring,
            pruning=pruning if self.pruning == "auto" else self.pruning,
        )


@dataclass(frozen=True)
class _Beam:
    """Prunes the beam after each hop."""

    ctx: Context
    on: Ground
    how: BeamPaths

    async def __call__(self, trails: Trails, /) -> tuple[Ints, bool]:
        scores = await self._scores(trails)
        rows = self._pruned(scores)
        if self.how.by == "llm" and self.ctx.chat("plan") is not None:
            rows = await self._chosen(trails, scores, rows)
        if self.how.early_stop:
            shown = _as_tracked(trails.some(rows))
            texts = await trail_texts(self.ctx, self.on, shown, list(range(len(rows))))
            return rows, not await enough(self.ctx, texts)
        return rows, True

    async def _scores(self, trails: Trails) -> Floats:
        if self.how.scoring == "path":
            return await self.on.scorer.paths(trails.codes, whole=False)
        # Each step by itself: its score does not depend on the other steps.
        fit: Floats = (await self.on.scorer.steps(trails.codes)).mean(axis=1)
        return fit

    def _pruned(self, scores: Floats) -> Ints:
        order = np.arange(len(scores))
        if self.how.pruning == "fixed":
            return best(scores, order, self.how.width)
        above = int((scores >= scores.mean()).sum())
        return best(scores, order, min(above, _MOST_DYNAMIC))

    async def _chosen(self, trails: Trails, scores: Floats, rows: Ints) -> Ints:
        """Return the model's choice, filled up by score; the rows by score if it chooses none."""
        shown = best(scores, np.arange(len(scores)), min(self.how.prefilter, SHOWN))
        some = _as_tracked(trails.some(shown))
        texts = await trail_texts(self.ctx, self.on, some, list(range(len(shown))))
        indices = await chosen(self.ctx, "paths", texts, self.how.width)
        if not indices:
            return rows
        picked = shown[indices]
        if not self.how.supplement:
            return picked
        more = rows[~np.isin(rows, picked)]
        return np.concatenate([picked, more])[: max(self.how.width, len(picked))]


def _as_tracked(trails: Trails) -> Tracked:
    """Wrap relation paths of one length as scored ones."""
    rows = np.arange(len(trails))
    none = np.zeros(len(trails), np.float32)
    return Tracked((trails,), trails.codes, np.zeros(len(trails), np.int64), rows, none)


async def _refined(ctx: Context, search: Ground, found: Tracked) -> Tracked:
    """LLMs-R: let a model choose which of the paths found to keep."""
    rows = found.order()[:SHOWN].tolist()
    picked = await chosen(ctx, "paths", await trail_texts(ctx, search, found, rows), len(rows))
    if not picked:
        return found
    return preferred(found, [rows[at] for at in picked], rerank=False, only=False)
