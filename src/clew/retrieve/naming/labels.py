"""The wordings of relations and types: arrays hold them as small numbers only."""

from clew.context import Context


async def relation_names(ctx: Context) -> list[str]:
    """The wording of each relation, by its number in `view.relations`."""
    if "relation_names" not in ctx.view.memo:
        bearers = ctx.view.arrays.get("relation_fact", ())
        keys = [int(ctx.view.keys("fact")[at]) for at in bearers]
        facts = await ctx.snapshot.facts(keys)
        ctx.view.memo["relation_names"] = [facts[key].relation for key in keys]
    names: list[str] = ctx.view.memo["relation_names"]
    return names


async def type_names(ctx: Context) -> list[str]:
    """The wording of each type, by its number in `view.types`."""
    if "type_names" not in ctx.view.memo:
        bearers = ctx.view.arrays.get("type_entity", ())
        keys = [int(ctx.view.keys("entity")[at]) for at in bearers]
        entities = await ctx.snapshot.entities(keys)
        ctx.view.memo["type_names"] = [entities[key].type for key in keys]
    names: list[str] = ctx.view.memo["type_names"]
    return names
