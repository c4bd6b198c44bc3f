"""Iterative path retrieval (ISAR): a beam search over relation paths, pruned at every hop."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from clew.context import Context
from clew.graph.csr import Floats, Ints
from clew.graph.traverse import RelationPathTable
from clew.retrieve.model_choice import MAX_CHOICES, ScoringModel, are_paths_sufficient, choose_items
from clew.retrieve.paths.ranked import promote_paths
from clew.retrieve.paths.relation_paths import (
    PathSearchContext,
    ScoredRelationPaths,
    describe_paths,
    prepare_search,
    search_relation_paths,
    select_best_paths,
)
from clew.retrieve.rank import top_positions
from clew.retrieve.text_scores import PathScorerName
from clew.types import Found

Scoring = Literal["path", "triple", "steps"]
Pruning = Literal["fixed", "dynamic"]

_MAX_DYNAMIC_BEAM = 64  # relation paths that dynamic pruning keeps at most


@dataclass(frozen=True)
class BeamPaths:
    """Keeps the `width` best relation paths at each of `max_hop` hops; all that were kept count.

    `scoring="triple"` scores only the newest step, `"steps"` every step by itself;
    `pruning="dynamic"` keeps what is above the mean instead of a fixed number. With `by="llm"` a
    model chooses at each hop, among the `prefilter` best if that is set (EEMs-PF), and the scorer
    fills the remaining places (`supplement`, EEMs-S). A model may also refine the result (`refine`,
    LLMs-R) or end the search (`early_stop`, LLMs-ES).
    """

    width: int = 8
    max_hop: int = 4
    by: ScoringModel = "eem"
    scoring: Scoring = "path"
    pruning: Pruning = "fixed"
    prefilter: int = 0
    supplement: bool = False
    refine: bool = False
    early_stop: bool = False
    top_k: int = 32
    scorer: PathScorerName = "cosine"

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `paths`, best first; never empty where there is a path."""
        search = prepare_search(ctx, found, self.scorer)
        kept = await search_relation_paths(search, self.max_hop, _BeamPruner(ctx, search, self))
        if self.refine and len(kept.codes):
            kept = await _refine_by_model(ctx, search, kept)
        return replace(
            found, paths=select_best_paths(search, kept, self.top_k, f"beam by {self.by}")
        )


@dataclass(frozen=True)
class _BeamPruner:
    """Prunes the beam after each hop."""

    ctx: Context
    search: PathSearchContext
    options: BeamPaths

    async def __call__(self, trails: RelationPathTable, /) -> tuple[Ints, bool]:
        scores = await self._score(trails)
        rows = self._prune(scores)
        if self.options.by == "llm" and self.ctx.chat("plan") is not None:
            rows = await self._choose_by_model(trails, scores, rows)
        if self.options.early_stop:
            shown = _to_scored_paths(trails.select(rows))
            texts = await describe_paths(self.ctx, self.search, shown, list(range(len(rows))))
            return rows, not await are_paths_sufficient(self.ctx, texts)
        return rows, True

    async def _score(self, trails: RelationPathTable) -> Floats:
        if self.options.scoring == "path":
            return await self.search.scorer.score_paths(trails.codes, whole=False)
        # Each step by itself: its score does not depend on the other steps.
        codes = trails.codes[:, -1:] if self.options.scoring == "triple" else trails.codes
        fit: Floats = (await self.search.scorer.score_steps(codes)).mean(axis=1)
        return fit

    def _prune(self, scores: Floats) -> Ints:
        order = np.arange(len(scores))
        if self.options.pruning == "fixed":
            return top_positions(scores, order, self.options.width)
        above = int((scores >= scores.mean()).sum())
        return top_positions(scores, order, min(above, _MAX_DYNAMIC_BEAM))

    async def _choose_by_model(self, trails: RelationPathTable, scores: Floats, rows: Ints) -> Ints:
        """Return the model's choice, filled up by score; the rows by score if it chooses none."""
        most = min(self.options.prefilter or MAX_CHOICES, MAX_CHOICES)
        shown = np.arange(len(scores))
        if self.options.prefilter or len(shown) > most:
            shown = top_positions(scores, shown, most)
        some = _to_scored_paths(trails.select(shown))
        texts = await describe_paths(self.ctx, self.search, some, list(range(len(shown))))
        indices = await choose_items(self.ctx, "paths", texts, self.options.width)
        if not indices:
            return rows
        picked = shown[indices]
        if not self.options.supplement:
            return picked
        more = rows[~np.isin(rows, picked)]
        return np.concatenate([picked, more])[: max(self.options.width, len(picked))]


def _to_scored_paths(trails: RelationPathTable) -> ScoredRelationPaths:
    rows = np.arange(len(trails))
    none = np.zeros(len(trails), np.float32)
    return ScoredRelationPaths((trails,), trails.codes, np.zeros(len(trails), np.int64), rows, none)


async def _refine_by_model(
    ctx: Context, search: PathSearchContext, found: ScoredRelationPaths
) -> ScoredRelationPaths:
    """LLMs-R: let a model choose which of the paths found to keep."""
    rows = found.rank()[:MAX_CHOICES].tolist()
    picked = await choose_items(
        ctx, "paths", await describe_paths(ctx, search, found, rows), len(rows)
    )
    if not picked:
        return found
    return promote_paths(found, [rows[at] for at in picked], rerank=False)
