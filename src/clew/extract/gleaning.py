"""Asking again for what was missed: ROGRAG's loop NER (Algorithm 3), in both its variants."""

from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar

from clew.errors import ParseError

History = TypeVar("History")
Item = TypeVar("Item")
Variant = Literal["trial", "base"]


@dataclass(frozen=True)
class Gleaning:
    """How to ask again: `trial` judges, then extracts more; `base` extracts more, then judges."""

    variant: Variant = "trial"
    most: int = 0
    """Rounds at most; 0 asks once only."""

    def __post_init__(self) -> None:
        if self.variant not in ("trial", "base"):
            raise ValueError(f"gleaning has the variants trial and base, not {self.variant!r}")


async def glean(
    gleaning: Gleaning,
    first: History,
    more: Callable[[History], Awaitable[History]],
    lacks: Callable[[History], Awaitable[bool]],
    join: Callable[[History, History], History],
) -> History:
    """Go on until the judge is content, nothing new comes, or the rounds are over."""
    history = join(first, first)  # without doubles of its own, so that "nothing new" can be seen
    try:
        for left in range(gleaning.most, 0, -1):
            if gleaning.variant == "trial" and not await lacks(history):
                break
            grown = join(history, await more(history))
            if grown == history:
                break
            history = grown
            # After the last round nobody would act on the verdict: it is not asked for.
            if gleaning.variant == "base" and left > 1 and not await lacks(history):
                break
    except ParseError:
        # What was found before a round that made no sense stands by itself.
        return history
    return history


def distinct(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[Item]:
    """The items in order, each key once, the first standing for all."""
    found: dict[Hashable, Item] = {}
    for item in items:
        found.setdefault(key(item), item)
    return list(found.values())
