"""Ranks answer entities by the paths that reach them; no model needed."""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context
from clew.graph.csr import Floats, Ints
from clew.graph.traverse import FactGraph
from clew.retrieve.paths.relation_paths import prepare_search
from clew.retrieve.rank import ANSWER_MARK
from clew.types import Found, Hit, Path

_TAIL_ROLE = 3  # role code
_RESCORE_FACTOR = 4  # paths rescored per path kept: several may end at one entity


@dataclass(frozen=True)
class RankAnswers:
    """Keeps the best `top_k` paths, and puts the entities they end at before all others.

    With `read`, paths found by structure alone are first scored by their relations.
    """

    top_k: int = 32
    read: bool = False

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `paths`, `facts` to those on them, and `entities` to answers, then seeds."""
        paths = list(found.paths)
        if self.read and paths:
            paths = await self._score_paths(ctx, found)
        starts = {hit.at for hit in found.entities}
        score: dict[int, float] = defaultdict(float)
        for path in paths:
            end = path.entities[-1]
            if end not in starts:
                score[end] = max(score[end], path.score)
        ranked = sorted(score, key=lambda at: -score[at])
        kept = paths[: self.top_k]
        facts = dict.fromkeys(fact for path in kept for fact in path.facts)
        value = {fact: path.score for path in reversed(kept) for fact in path.facts}
        answers = (Hit(at, score[at], ANSWER_MARK) for at in ranked[: self.top_k])
        return replace(
            found,
            paths=tuple(kept),
            entities=(*answers, *found.entities),
            facts=tuple(Hit(fact, value[fact], "path") for fact in facts),
        )

    async def _score_paths(self, ctx: Context, found: Found) -> list[Path]:
        search = prepare_search(ctx, replace(found, facts=()))
        codes, which = np.unique(path_codes(search.ways, found.paths), axis=0, return_inverse=True)
        chance = softmax((await search.scorer.score_paths(codes))[which.reshape(-1)])
        order = np.lexsort((np.arange(len(chance)), -chance))[: _RESCORE_FACTOR * self.top_k]
        return [replace(found.paths[at], score=float(chance[at])) for at in order.tolist()]


def softmax(scores: Floats) -> Floats:
    """Return the scores as probabilities that sum to 1."""
    chance = np.exp(scores - scores.max(initial=-np.inf))
    found: Floats = (chance / max(float(chance.sum()), 1e-9)).astype(np.float32)
    return found


def path_codes(ways: FactGraph, paths: tuple[Path, ...]) -> Ints:
    """Return the step codes of paths, padded with -1."""
    width = max((len(path.facts) for path in paths), default=0)
    fact = np.full((len(paths), width), -1, np.int64)
    near = fact.copy()
    for row, path in enumerate(paths):
        fact[row, : len(path.facts)] = path.facts
        near[row, : len(path.facts)] = path.entities[:-1]
    rows, columns = np.nonzero(fact >= 0)
    facts, source = fact[rows, columns], near[rows, columns]
    at, edge = ways.members.edges_of(facts)
    source_edges = np.flatnonzero(ways.members.columns[edge] == source[at])
    tail = np.zeros(len(facts), np.bool_)
    tail[at[source_edges]] = ways.members.weights[edge[source_edges]] == _TAIL_ROLE
    label = ways.labels[facts].astype(np.int64)
    codes: Ints = np.full(fact.shape, -1, np.int64)
    codes[rows, columns] = np.where(label < 0, (ways.relation_count + facts) * 2, label * 2 + tail)
    return codes
