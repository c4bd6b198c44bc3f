"""Rankings: taking the best of an array of scores, and merging rankings."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.types import Found, Hit


def best(scores: NDArray[np.float32], keys: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """The positions of the `k` highest scores; equals go by key, so that runs agree."""
    k = min(k, len(scores))
    if k <= 0:
        return np.zeros(0, np.int64)
    edge = np.partition(scores, len(scores) - k)[len(scores) - k]
    high = np.flatnonzero(scores >= edge)
    order = np.lexsort((keys[high], -scores[high]))
    return high[order][:k].astype(np.int64)


def hits(scores: NDArray[np.float32], keys: NDArray[np.int64], k: int, by: str) -> tuple[Hit, ...]:
    """The same as hits, best first."""
    return tuple(Hit(int(at), float(scores[at]), by) for at in best(scores, keys, k))


def fused(rankings: Sequence[Sequence[Hit]], constant: int = 60) -> tuple[Hit, ...]:
    """Reciprocal rank fusion; an element absent from a ranking gets nothing from it."""
    score: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, hit in enumerate(ranking, start=1):
            score[hit.at] += 1 / (constant + rank)
    order = sorted(score, key=lambda at: (-score[at], at))
    return tuple(Hit(at, score[at], "fused") for at in order)


def fuse_chunks(branches: Sequence[Found]) -> Found:
    """Fuse what the branches say about chunks; of the rest the first branch's word stands."""
    return replace(branches[0], chunks=fused([branch.chunks for branch in branches]))


@dataclass(frozen=True)
class Keep:
    """Keeps the best of each kind."""

    chunks: int = 10
    entities: int = 20
    facts: int = 20
    paths: int = 10

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Cut each ranking."""
        return replace(
            found,
            chunks=found.chunks[: self.chunks],
            entities=found.entities[: self.entities],
            facts=found.facts[: self.facts],
            paths=found.paths[: self.paths],
        )
