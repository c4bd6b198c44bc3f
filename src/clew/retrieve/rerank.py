"""Reranks the best passages with a cross-encoder."""

from dataclasses import dataclass, replace

from clew.context import Context
from clew.errors import ConfigError
from clew.types import Found, Hit


@dataclass(frozen=True)
class Reranked:
    """Reorders the first `top_k` chunks by a cross-encoder's scores."""

    top_k: int = 30

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`; those after the first `top_k` keep their order behind them."""
        if ctx.rerank is None:
            raise ConfigError(
                "this recipe reranks, and no reranker is configured; set [rerank] model and "
                "base_url, or folder, in clew.toml"
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
