"""Path retrieval step by step (ISAR): a beam over relation paths, pruned at every hop."""

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

_MOST_DYNAMIC = 64  # trails that dynamic pruning keeps at most


@dataclass(frozen=True)
class BeamPaths:
    """Keeps the `width` best relation paths at each of `max_hop` hops; all that were kept count.

    `scoring="triple"` weighs every step by itself, `pruning="dynamic"` keeps what is above
    the mean instead of a fixed number; `auto` takes the first for questions of several hops and
    the second for those of one. With `by="llm"` a model chooses at each hop, among the
    `prefilter` best (EEMs-PF), and the embedder fills what it leaves open (`supplement`, EEMs-S).
    A model may also thin out the result (`refine`, LLMs-R) or end the search (`early_stop`,
    LLMs-ES).
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
        """Set `paths`, best first; never none where there is one."""
        on = ground(ctx, found)
        beam = await self._settled(ctx, on)
        kept = await tracked(on, self.max_hop, _Beam(ctx, on, beam))
        if self.refine and len(kept.codes):
            kept = await _refined(ctx, on, kept)
        return replace(found, paths=best_paths(on, kept, self.top_k, f"beam by {self.by}"))

    async def _settled(self, ctx: Context, on: Ground) -> "BeamPaths":
        """The same with `auto` decided by how many hops the question seems to need."""
        if "auto" not in (self.scoring, self.pruning):
            return self
        several = await predicted_hops(ctx, on.ways, on.shape) > 1
        scoring: Scoring = "triple" if several else "path"
        pruning: Pruning = "fixed" if several else "dynamic"
        return replace(
            self,
            scoring=scoring if self.scoring == "auto" else self.scoring,
            pruning=pruning if self.pruning == "auto" else self.pruning,
        )


@dataclass(frozen=True)
class _Beam:
    """Prunes one hop after another."""

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
        # Each step by itself: what one adds does not depend on how the others read together.
        fit: Floats = (await self.on.scorer.steps(trails.codes)).mean(axis=1)
        return fit

    def _pruned(self, scores: Floats) -> Ints:
        order = np.arange(len(scores))
        if self.how.pruning == "fixed":
            return best(scores, order, self.how.width)
        above = int((scores >= scores.mean()).sum())
        return best(scores, order, min(above, _MOST_DYNAMIC))

    async def _chosen(self, trails: Trails, scores: Floats, rows: Ints) -> Ints:
        """What the model picks; the embedder's choice fills up, or stands in for nothing."""
        shown = best(scores, np.arange(len(scores)), min(self.how.prefilter, SHOWN))
        some = _as_tracked(trails.some(shown))
        texts = await trail_texts(self.ctx, self.on, some, list(range(len(shown))))
        said = await chosen(self.ctx, "paths", texts, self.how.width)
        if not said:
            return rows
        picked = shown[said]
        if not self.how.supplement:
            return picked
        more = rows[~np.isin(rows, picked)]
        return np.concatenate([picked, more])[: max(self.how.width, len(picked))]


def _as_tracked(trails: Trails) -> Tracked:
    """Trails of one length as if they were all there are."""
    rows = np.arange(len(trails))
    none = np.zeros(len(trails), np.float32)
    return Tracked((trails,), trails.codes, np.zeros(len(trails), np.int64), rows, none)


async def _refined(ctx: Context, on: Ground, found: Tracked) -> Tracked:
    """LLMs-R: a model says which of the paths found are worth keeping."""
    rows = found.order()[:SHOWN].tolist()
    said = await chosen(ctx, "paths", await trail_texts(ctx, on, found, rows), len(rows))
    if not said:
        return found
    return preferred(found, [rows[at] for at in said], rerank=False, only=False)
