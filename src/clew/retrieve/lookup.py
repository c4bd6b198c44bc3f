"""Question → chunks, directly: by meaning and by words."""

from dataclasses import dataclass, replace

from clew.context import Context
from clew.retrieve.rank import hits
from clew.text import words
from clew.types import Found


@dataclass(frozen=True)
class Dense:
    """Ranks chunks by the cosine of their vectors with the question's."""

    top_k: int = 100

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`, best first."""
        scores = ctx.view.similar("chunk", await ctx.vector())
        chosen = hits(scores, ctx.view.keys("chunk"), self.top_k, "dense")
        return replace(found, chunks=chosen)


@dataclass(frozen=True)
class Lexical:
    """Ranks chunks by BM25 over the question's words."""

    top_k: int = 100
    k1: float = 1.2
    b: float = 0.75

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`, best first; chunks without a word of the question are left out."""
        scores = ctx.view.text.scores(words(ctx.question), k1=self.k1, b=self.b)
        ranked = hits(scores, ctx.view.keys("chunk"), self.top_k, "bm25")
        return replace(found, chunks=tuple(hit for hit in ranked if hit.score > 0))
