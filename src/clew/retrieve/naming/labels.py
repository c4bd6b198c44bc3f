"""Reads the names of relations and types; arrays hold only their numbers."""

from collections.abc import Awaitable, Callable
from typing import Literal

from clew.context import Context

_ReadLabels = Callable[[list[int]], Awaitable[list[str]]]


async def relation_names(ctx: Context) -> list[str]:
    """Return the name of each relation, by its number in `view.relations`."""

    async def read(keys: list[int]) -> list[str]:
        facts = await ctx.snapshot.facts(keys)
        return [facts[key].relation for key in keys]

    return await _load_labels(ctx, "relation_fact", "fact", read)


async def type_names(ctx: Context) -> list[str]:
    """Return the name of each type, by its number in `view.types`."""

    async def read(keys: list[int]) -> list[str]:
        entities = await ctx.snapshot.entities(keys)
        return [entities[key].type for key in keys]

    return await _load_labels(ctx, "type_entity", "entity", read)


async def _load_labels(
    ctx: Context, examples: str, kind: Literal["fact", "entity"], read: _ReadLabels
) -> list[str]:
    """Read the names once per generation, each from one element that has it."""
    memo, name = ctx.view.memo, f"wordings of {examples}"
    if name not in memo:
        keys = ctx.view.keys(kind)
        memo[name] = await read([int(keys[at]) for at in ctx.view.arrays.get(examples, ())])
    names: list[str] = memo[name]
    return names
