"""One-step path retrieval: by structure alone (SBR) or all paths ranked (OSAR), and the ranking of
answer entities by the paths that reach them.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from clew.context import Context
from clew.graph.csr import Doubles, Ints
from clew.graph.paths import EntityPathTable, shortest_paths, simple_paths
from clew.retrieve.model_choice import MAX_CHOICES, ScoringModel, choose_items
from clew.retrieve.paths.relation_paths import (
    KeepAllPaths,
    PathSearchContext,
    ScoredRelationPaths,
    describe_paths,
    prepare_search,
    search_relation_paths,
    select_best_paths,
)
from clew.retrieve.rank import ANSWER_MARK, hit_positions
from clew.retrieve.text_scores import PathScorerName
from clew.types import Found, Hit, Path


@dataclass(frozen=True)
class StructuralPaths:
    """Takes the shortest paths from the linked entities, or all simple ones; no embedder.

    Shorter paths come first, then those through facts that the subgraph ranks higher. A path's
    score is one by its length.
    """

    which: Literal["shortest", "simple"] = "shortest"
    max_hop: int = 4
    top_k: int = 1000

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `paths`."""
        search = prepare_search(ctx, found)
        facts = hit_positions(found.facts)
        scores = np.array([hit.score for hit in found.facts])
        order = np.argsort(facts)
        find = shortest_paths if self.which == "shortest" else simple_paths
        paths: list[Path] = []
        for start in search.starts.tolist():
            for routes in find(search.ways, start, self.max_hop, self.top_k):
                fact_scores = _fact_scores(routes.facts, facts[order], scores[order])
                paths += self._to_paths(routes, fact_scores, self.top_k - len(paths))
        paths.sort(key=lambda path: (len(path.facts), -path.score, path.entities, path.facts))
        kept = (replace(path, score=1 / len(path.facts)) for path in paths[: self.top_k])
        return replace(found, paths=tuple(kept))

    def _to_paths(self, routes: EntityPathTable, value: Doubles, most: int) -> list[Path]:
        """Return the best paths of one length, each with the score of its lowest fact."""
        least = value.min(axis=1)
        best = np.lexsort((np.arange(len(least)), -least))[: max(most, 0)]
        rows = zip(
            routes.entities[best].tolist(),
            routes.facts[best].tolist(),
            least[best].tolist(),
            strict=True,
        )
        return [Path(tuple(e), tuple(f), score, self.which) for e, f, score in rows]


def _fact_scores(wanted: Ints, facts: Ints, scores: Doubles) -> Doubles:
    """Return the subgraph's score of each fact; 0 without a subgraph."""
    if not len(facts):
        return np.zeros(wanted.shape)
    return scores[np.minimum(np.searchsorted(facts, wanted), len(facts) - 1)]


@dataclass(frozen=True)
class RankedPaths:
    """Enumerates every relation path up to `max_hop` steps, then keeps the best fitting.

    `scorer` says how: `cosine`, `cross-encoder` or `llm-embeddings`. With `by="llm"` a model
    chooses among the best relation paths, `rounds` times over (M-LLMs). What it does not choose
    keeps its order behind what it does (EEMs-S); `rerank` puts the model's choice in the scorer's
    order (EEMs-R). If it chooses nothing, the scorer's stands.
    """

    top_k: int = 32
    max_hop: int = 3
    by: ScoringModel = "eem"
    rounds: int = 1
    rerank: bool = False
    scorer: PathScorerName = "cosine"

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `paths`, best first; never empty where there is a path."""
        search = prepare_search(ctx, found, self.scorer)
        keep = KeepAllPaths(search.scorer)
        all_trails = await search_relation_paths(search, self.max_hop, keep)
        if self.by == "llm":
            all_trails = await self._choose_by_model(ctx, search, all_trails)
        return replace(
            found, paths=select_best_paths(search, all_trails, self.top_k, f"ranked by {self.by}")
        )

    async def _choose_by_model(
        self, ctx: Context, search: PathSearchContext, found: ScoredRelationPaths
    ) -> ScoredRelationPaths:
        rows = found.rank()[:MAX_CHOICES].tolist()
        kept = rows
        for _ in range(self.rounds):
            picked = await choose_items(
                ctx, "paths", await describe_paths(ctx, search, found, kept), self.top_k
            )
            if not picked:
                break
            kept = [kept[at] for at in picked]
        if kept is rows or kept == rows:
            return found
        return promote_paths(found, kept, rerank=self.rerank)


def promote_paths(
    found: ScoredRelationPaths, rows: list[int], *, rerank: bool
) -> ScoredRelationPaths:
    """Raise the scores of a model's choice above all others, which keep their order."""
    scores = found.scores.copy()
    gap = float(scores.max() - scores.min()) + 1.0
    if rerank:
        scores[rows] += gap
    else:
        # One nat apart: the first choice leads, the next ones still count.
        scores[rows] = scores.max() + gap + len(rows) - np.arange(len(rows), dtype=np.float32)
    return replace(found, scores=scores)


@dataclass(frozen=True)
class RankAnswers:
    """Keeps the best `top_k` paths, and puts the entities they end at before all others."""

    top_k: int = 32

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `paths`, `facts` to those on them, and `entities` to answers, then seeds."""
        del ctx  # every step is called with it
        score: dict[int, float] = defaultdict(float)
        for path in found.paths:
            score[path.entities[-1]] = max(score[path.entities[-1]], path.score)
        starts = {hit.at for hit in found.entities}
        # Of equals, what the question already names comes last.
        ranked = sorted(score, key=lambda at: (-score[at], at in starts))
        kept = found.paths[: self.top_k]
        facts = dict.fromkeys(fact for path in kept for fact in path.facts)
        value = {fact: path.score for path in reversed(kept) for fact in path.facts}
        answers = tuple(Hit(at, score[at], ANSWER_MARK) for at in ranked[: self.top_k])
        shown = {hit.at for hit in answers}
        return replace(
            found,
            paths=kept,
            entities=(*answers, *(hit for hit in found.entities if hit.at not in shown)),
            facts=tuple(Hit(fact, value[fact], "path") for fact in facts),
        )
