"""Rankings: top-k selection, fusion, cutting, and reranking with a cross-encoder."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from clew import kernels
from clew.context import Context
from clew.errors import ConfigError
from clew.graph.csr import Floats, Ints
from clew.index.estimates import Estimates
from clew.types import Found, Hit

_BLOCK_SIZE = 64  # scores reduced to their maximum at a time
ANSWER_MARK = "answer"
"""Value of `by` for entities that are ranked as answers."""


def top_positions(scores: Floats, keys: Ints, k: int, among: Ints | None = None) -> Ints:
    """Return the positions of the `k` highest scores; ties go by key, so that runs agree.

    `among` are positions, ascending, that are known to include them: only these are looked at.
    """
    if among is not None:
        return among[top_positions(scores[among], keys[among], k)]
    k = min(k, len(scores))
    if k <= 0:
        return np.zeros(0, np.int64)
    compiled = kernels.COMPILED
    if compiled is not None and compiled.can_rank(scores, keys):
        return compiled.find_top(scores, keys, k)
    high = np.flatnonzero(scores >= _threshold(scores, k))
    order = np.lexsort((keys[high], -scores[high]))
    return high[order][:k].astype(np.int64)


def _threshold(scores: Floats, k: int) -> np.float32:
    """Return a score that at least `k` scores reach, and of many scores few more than `k`."""
    blocks = len(scores) // _BLOCK_SIZE
    if blocks < 2 * k:
        return np.float32(np.partition(scores, len(scores) - k)[len(scores) - k])
    # The highest of k blocks are k scores: the k-th best of all is no lower than theirs.
    tops = scores[: blocks * _BLOCK_SIZE].reshape(_BLOCK_SIZE, blocks).max(axis=0)
    return np.float32(np.partition(tops, blocks - k)[blocks - k])


def top_hits(
    scores: Floats, keys: Ints, k: int, by: str, among: Ints | None = None
) -> tuple[Hit, ...]:
    """Return the `k` highest scores as hits, best first; `among` as for `top_positions`."""
    at = top_positions(scores, keys, k, among)
    return tuple(map(Hit, at.tolist(), scores[at].tolist(), repeat(by)))


def top_known_hits(scores: Estimates, keys: Ints, k: int, by: str) -> tuple[Hit, ...]:
    """Return the `k` highest scores as hits; of very many only known ones are looked at."""
    if scores.known is None:
        return top_hits(scores.values, keys, k, by)
    return top_hits(scores.values, keys, k, by, scores.find_known())


def hit_positions(hits: Sequence[Hit]) -> Ints:
    """Return the positions of hits."""
    return np.array([hit.at for hit in hits], np.int64)


def fuse_rankings(rankings: Sequence[Sequence[Hit]], constant: int = 60) -> tuple[Hit, ...]:
    """Reciprocal rank fusion; an element absent from a ranking gets nothing from it."""
    score: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        rank, last = 1, None
        for place, hit in enumerate(ranking, start=1):
            # Equals share a rank, or the order in which they were added would count.
            rank = rank if hit.score == last else place
            last = hit.score
            score[hit.at] += 1 / (constant + rank)
    # Ties go to the earlier ranking's order.
    order = sorted(score, key=lambda at: -score[at])
    return tuple(Hit(at, score[at], "fused") for at in order)


def interleave(rankings: Sequence[Sequence[Hit]]) -> tuple[Hit, ...]:
    """Interleave rankings; of duplicates the first stays."""
    longest = max(map(len, rankings), default=0)
    merged = [ranking[at] for at in range(longest) for ranking in rankings if at < len(ranking)]
    first: dict[int, Hit] = {}
    for hit in merged:
        first.setdefault(hit.at, hit)
    return tuple(first.values())


def in_turns(branches: Sequence[Found]) -> Found:
    """Join branches by interleaving their chunks, entities, facts and communities."""
    return replace(
        branches[0],
        chunks=interleave([branch.chunks for branch in branches]),
        entities=interleave([branch.entities for branch in branches]),
        facts=interleave([branch.facts for branch in branches]),
        communities=interleave([branch.communities for branch in branches]),
        paths=tuple(dict.fromkeys(path for branch in branches for path in branch.paths)),
    )


def reciprocal_facts(branches: Sequence[Found]) -> Found:
    """Score facts by the sum of 1/rank over the branches, 0 where absent; interleave the rest."""
    facts = fuse_rankings([branch.facts for branch in branches], constant=0)
    return replace(in_turns(branches), facts=facts)


def fuse_chunks(branches: Sequence[Found]) -> Found:
    """Fuse the branches' chunks by reciprocal rank; take the rest from the first branch."""
    return replace(branches[0], chunks=fuse_rankings([branch.chunks for branch in branches]))


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


@dataclass(frozen=True)
class Reranked:
    """Reorders the first `top_k` chunks by a cross-encoder's scores."""

    top_k: int = 30

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`; those after the first `top_k` keep their order behind them."""
        if ctx.rerank is None:
            raise ConfigError(
                "this recipe needs a reranker, and none is configured; set `model` and `base_url`, "
                "or `folder`, under [rerank] in clew.toml"
            )
        first, rest = found.chunks[: self.top_k], found.chunks[self.top_k :]
        keys = ctx.view.keys("chunk")
        held = await ctx.snapshot.chunks([int(keys[hit.at]) for hit in first])
        # Pairs, because a chunk may be missing from the store.
        pairs = [(hit, held[int(keys[hit.at])]) for hit in first if int(keys[hit.at]) in held]
        texts = [
            f"{chunk.title}\n{chunk.text}" if chunk.title else chunk.text for _, chunk in pairs
        ]
        scores = await ctx.rerank(ctx.question, texts)
        ranked = [
            Hit(hit.at, float(score), f"{hit.by}, reranked")
            for (hit, _), score in zip(pairs, scores, strict=True)
        ]
        ranked.sort(key=lambda hit: (-hit.score, hit.at))
        return replace(found, chunks=(*ranked, *rest))
