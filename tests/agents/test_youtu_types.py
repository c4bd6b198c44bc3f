"""Schema types of a knowledge base, and filtering by them, for Youtu."""

from collections import Counter
from dataclasses import dataclass, replace

from clew.agents.youtu import TypeFilter, load_schema_types
from clew.context import Context
from clew.engine import KnowledgeBase
from clew.types import Found, Hit


async def test_an_empty_knowledge_base_has_no_types(base: KnowledgeBase) -> None:
    async with base.store.snapshot() as now:
        assert await load_schema_types(await base.context(now, "?")) == ()


async def test_the_most_common_type_comes_first(valley: KnowledgeBase) -> None:
    async with valley.store.snapshot() as now:
        ctx = await valley.context(now, "?")
        found = await load_schema_types(ctx)
        held = await now.entities(ctx.view.keys("entity").tolist())
    counts = Counter(entity.type for entity in held.values() if entity.type)
    assert found
    assert len(set(found)) == len(found)
    assert set(found) <= set(counts)
    assert [counts[kind] for kind in found] == sorted((counts[k] for k in found), reverse=True)


@dataclass(frozen=True)
class Everything:
    """A retriever that finds every entity and every fact."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        entities = tuple(Hit(at, 1.0, "all") for at in range(ctx.view.count("entity")))
        facts = tuple(Hit(at, 1.0, "all") for at in range(ctx.view.count("fact")))
        return replace(found, entities=entities, facts=facts)


async def test_only_entities_of_the_wanted_types_are_kept(valley: KnowledgeBase) -> None:
    async with valley.store.snapshot() as now:
        ctx = await valley.context(now, "?")
        keys = ctx.view.keys("entity").tolist()
        held = await now.entities(keys)
        members = ctx.view.links("fact_entity")
        rarest = (await load_schema_types(ctx))[-1]
        wanted = {at for at, key in enumerate(keys) if held[key].type == rarest}
        kept = await TypeFilter(Everything(), (rarest.upper(),))(ctx, Found())
        assert {hit.at for hit in kept.entities} == wanted
        assert 0 < len(kept.facts) < ctx.view.count("fact")
        assert all(wanted & set(members.row(hit.at).tolist()) for hit in kept.facts)
        # An unknown type, or none at all, filters nothing.
        for types in (("no such type",), ()):
            every = await TypeFilter(Everything(), types)(ctx, Found())
            assert len(every.entities) == len(keys)
            assert len(every.facts) == ctx.view.count("fact")
