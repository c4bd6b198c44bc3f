"""Fetches entities and facts by position, cached per generation."""

from collections.abc import Sequence

from clew.context import Context
from clew.types import Entity, Fact

_MAX_CACHED = 20_000  # cached elements of each kind


async def fetch_entities(ctx: Context, positions: Sequence[int]) -> dict[int, Entity]:
    """Fetch entities by position; unknown positions are left out."""
    cache: dict[int, Entity] = ctx.view.memo.setdefault("entities read", {})
    missing = [at for at in dict.fromkeys(positions) if at not in cache]
    if missing:
        _evict_if_full(cache, len(missing))
        missing = [at for at in dict.fromkeys(positions) if at not in cache]
        keys = ctx.view.keys("entity")
        fetched = await ctx.snapshot.entities([int(keys[at]) for at in missing])
        cache.update({at: fetched[int(keys[at])] for at in missing if int(keys[at]) in fetched})
    return {at: cache[at] for at in positions if at in cache}


async def fetch_facts(ctx: Context, positions: Sequence[int]) -> dict[int, Fact]:
    """Fetch facts by position; unknown positions are left out."""
    cache: dict[int, Fact] = ctx.view.memo.setdefault("facts read", {})
    missing = [at for at in dict.fromkeys(positions) if at not in cache]
    if missing:
        _evict_if_full(cache, len(missing))
        missing = [at for at in dict.fromkeys(positions) if at not in cache]
        keys = ctx.view.keys("fact")
        fetched = await ctx.snapshot.facts([int(keys[at]) for at in missing])
        cache.update({at: fetched[int(keys[at])] for at in missing if int(keys[at]) in fetched})
    return {at: cache[at] for at in positions if at in cache}


def _evict_if_full(cache: dict[int, Entity] | dict[int, Fact], more: int) -> None:
    """Clear the cache when it would grow beyond its limit."""
    if len(cache) + more > _MAX_CACHED:
        cache.clear()
