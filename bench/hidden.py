"""Questions whose answer is hidden: near misses, to fit what a confidence must not trust.

Passages that hold the answer are dropped behind the retriever, so that what is left is as near to
the question as a corpus without the answer can be.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from clew.agents.citing.support import contains_answer
from clew.context import Context
from clew.recipes.default import CLEW
from clew.recipes.registry import RECIPES
from clew.retrieve.step import Chain
from clew.types import Found

AGENT = "steps"
"""The default agent."""


@dataclass(frozen=True)
class Without:
    """Drops the passages whose text holds an answer."""

    holds: Callable[[str], bool] = field(repr=False)

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks` to those that do not hold it."""
        keys = [int(ctx.view.keys("chunk")[hit.at]) for hit in found.chunks]
        texts = await ctx.snapshot.chunks(keys)
        pairs = zip(found.chunks, keys, strict=True)
        return replace(
            found, chunks=tuple(h for h, key in pairs if not self.holds(texts[key].text))
        )


def hide(holds: Callable[[str], bool]) -> str:
    """Register the default retriever without the passages that hold an answer; return its name."""
    name = f"hidden-{len(RECIPES)}"
    RECIPES[name] = Chain(name, (*CLEW.steps, Without(holds)), layout=CLEW.layout)
    return f"{AGENT}+{name}"


def hide_answers(golds: Sequence[str]) -> str:
    """Register the default retriever without the passages that have one of these answers."""
    return hide(lambda text: any(contains_answer(gold, text) for gold in golds))
