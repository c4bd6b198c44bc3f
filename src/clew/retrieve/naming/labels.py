"""The wordings of relations and types: arrays hold them as small numbers only."""

from collections.abc import Awaitable, Callable
from typing import Literal

from clew.context import Context

_Read = Callable[[list[int]], Awaitable[list[str]]]


async def relation_names(ctx: Context) -> list[str]:
    """The wording of each relation, by its number in `view.relations`."""

    async def read(keys: list[int]) -> list[str]:
        facts = await ctx.snapshot.facts(keys)
        return [facts[key].relation for key in keys]

    return await _wordings(ctx, "relation_fact", "fact", read)


async def type_names(ctx: Context) -> list[str]:
    """The wording of each type, by its number in `view.types`."""

    async def read(keys: list[int]) -> list[str]:
        entities = await ctx.snapshot.entities(keys)
        return [entities[key].type for key in keys]

    return await _wordings(ctx, "type_entity", "entity", read)


async def _wordings(
    ctx: Context, bearers: str, kind: Literal["fact", "entity"], read: _Read
) -> list[str]:
    """Read once a generation off the elements that bear them, one for each number."""
    memo, name = ctx.view.memo, f"wordings of {bearers}"
    if name not in memo:
        every = ctx.view.keys(kind)
        memo[name] = await read([int(every[at]) for at in ctx.view.arrays.get(bearers, ())])
    names: list[str] = memo[name]
    return names
