"""Entities and facts in words, kept with a generation: the same ones are found again and again."""

from collections.abc import Sequence

from clew.context import Context
from clew.types import Entity, Fact

_MOST = 20_000  # of each kind that are kept


async def entities_at(ctx: Context, positions: Sequence[int]) -> dict[int, Entity]:
    """Entities by position."""
    kept: dict[int, Entity] = ctx.view.memo.setdefault("entities read", {})
    lacking = [at for at in dict.fromkeys(positions) if at not in kept]
    if lacking:
        _make_room(kept, len(lacking))
        lacking = [at for at in dict.fromkeys(positions) if at not in kept]
        keys = ctx.view.keys("entity")
        held = await ctx.snapshot.entities([int(keys[at]) for at in lacking])
        kept.update({at: held[int(keys[at])] for at in lacking if int(keys[at]) in held})
    return {at: kept[at] for at in positions if at in kept}


async def facts_at(ctx: Context, positions: Sequence[int]) -> dict[int, Fact]:
    """Facts by position."""
    kept: dict[int, Fact] = ctx.view.memo.setdefault("facts read", {})
    lacking = [at for at in dict.fromkeys(positions) if at not in kept]
    if lacking:
        _make_room(kept, len(lacking))
        lacking = [at for at in dict.fromkeys(positions) if at not in kept]
        keys = ctx.view.keys("fact")
        held = await ctx.snapshot.facts([int(keys[at]) for at in lacking])
        kept.update({at: held[int(keys[at])] for at in lacking if int(keys[at]) in held})
    return {at: kept[at] for at in positions if at in kept}


def _make_room(kept: dict[int, Entity] | dict[int, Fact], more: int) -> None:
    """Begin anew rather than grow without end."""
    if len(kept) + more > _MOST:
        kept.clear()
