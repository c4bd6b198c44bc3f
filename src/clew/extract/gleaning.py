"""Gleaning: repeated extraction of what was missed (ROGRAG's loop NER, Algorithm 3)."""

from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar

from clew.errors import ParseError

ResultT = TypeVar("ResultT")
Item = TypeVar("Item")
Variant = Literal["trial", "base"]


@dataclass(frozen=True)
class Gleaning:
    """The loop variant: `trial` judges, then extracts more; `base` extracts more, then judges."""

    variant: Variant = "trial"
    most: int = 0
    """Maximum number of extra rounds; 0 extracts once only."""

    def __post_init__(self) -> None:
        if self.variant not in ("trial", "base"):
            raise ValueError(f"gleaning has the variants trial and base, not {self.variant!r}")


async def glean(
    gleaning: Gleaning,
    first: ResultT,
    more: Callable[[ResultT], Awaitable[ResultT]],
    lacks: Callable[[ResultT], Awaitable[bool]],
    join: Callable[[ResultT, ResultT], ResultT],
) -> ResultT:
    """Repeat until the judge is satisfied, nothing new is found, or the rounds are used up."""
    found = join(first, first)  # removes its own duplicates, so that equality shows no progress
    try:
        for left in range(gleaning.most, 0, -1):
            if gleaning.variant == "trial" and not await lacks(found):
                break
            merged = join(found, await more(found))
            if merged == found:
                break
            found = merged
            # After the last round the verdict would change nothing.
            if gleaning.variant == "base" and left > 1 and not await lacks(found):
                break
    except ParseError:
        # The results before an unparsable round are kept.
        return found
    return found


def unique_by(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[Item]:
    """The first item of each key, in order."""
    found: dict[Hashable, Item] = {}
    for item in items:
        found.setdefault(key(item), item)
    return list(found.values())
