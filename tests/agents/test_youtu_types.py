"""The schema of a knowledge base, and filtering by it, for Youtu."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.agents.youtu import SchemaFilter, SchemaNames, TypedSubQuestion, load_schema
from clew.engine import KnowledgeBase
from clew.types import Chunk, Document, Extraction, Found, Hit, RawEntity
from conftest import document, stream


async def test_an_empty_knowledge_base_has_no_types(base: KnowledgeBase) -> None:
    async with base.store.snapshot() as now:
        assert (await load_schema(await base.context(now, "?"))).types == ()


async def test_the_most_common_type_comes_first(valley: KnowledgeBase) -> None:
    async with valley.store.snapshot() as now:
        ctx = await valley.context(now, "?")
        found = (await load_schema(ctx)).types
        held = await now.entities(ctx.view.keys("entity").tolist())
    counts = Counter(entity.type for entity in held.values() if entity.type)
    assert found
    assert len(set(found)) == len(found)
    assert set(found) <= set(counts)
    assert [counts[kind] for kind in found] == sorted((counts[k] for k in found), reverse=True)


async def test_only_what_fits_the_wanted_types_is_kept(valley: KnowledgeBase) -> None:
    async with valley.store.snapshot() as now:
        ctx = await valley.context(now, "?")
        keys = ctx.view.keys("entity").tolist()
        held = await now.entities(keys)
        members = ctx.view.links("fact_entity")
        everything = Found(
            chunks=tuple(Hit(at, 1.0, "all") for at in range(ctx.view.count("chunk"))),
            entities=tuple(Hit(at, 1.0, "all") for at in range(len(keys))),
            facts=tuple(Hit(at, 1.0, "all") for at in range(ctx.view.count("fact"))),
        )
        rarest = (await load_schema(ctx)).types[-1]
        wanted = {at for at, key in enumerate(keys) if held[key].type == rarest}
        kept = await SchemaFilter(SchemaNames((rarest,)))(ctx, everything)
        assert {hit.at for hit in kept.entities} == wanted
        assert 0 < len(kept.facts) < ctx.view.count("fact")
        assert all(wanted & set(members.row(hit.at).tolist()) for hit in kept.facts)
        assert 0 < len(kept.chunks) < ctx.view.count("chunk")
        # An unknown type, or none at all, filters nothing.
        for types in (("no such type",), ()):
            every = await SchemaFilter(SchemaNames(types))(ctx, everything)
            assert replace(every, chunks=everything.chunks) == everything


def test_a_sub_question_is_bounded_by_the_schema() -> None:
    schema = SchemaNames(("person", "place"), ("born in",), ("occupation",))
    part = TypedSubQuestion(
        question="?", types=["Person", "dragon"], relations=["bornIn"], attributes=["height"]
    )
    assert schema.select(part) == SchemaNames(("person",), ("born in",), ())
    assert "relations: born in" in str(schema)


async def test_the_planner_sees_the_attributes_of_all_entities_of_a_type(
    base: KnowledgeBase,
) -> None:
    towers = [RawEntity(f"Tower {n}", "tower", "", attributes={}) for n in range(3)]
    towers += [RawEntity("Norr", "tower", attributes={"height": "9 m", "painted": "red"})]
    towers += [RawEntity("Sund", "tower", attributes={"height": "7 m"})]
    king = RawEntity("Otto", "king", attributes={"crowned": "1180"})
    await base.take(stream([document("d", "A page.")]), OneExtraction(Extraction((*towers, king))))
    async with base.store.snapshot() as now:
        schema = await load_schema(await base.context(now, "?"))
    assert schema.attributes[0] == "height"
    assert "attributes: tower (height, painted), king (crowned)" in str(schema)


@dataclass(frozen=True)
class OneExtraction:
    """Extracts the same from every chunk."""

    found: Extraction

    async def __call__(self, document: Document, chunks: Sequence[Chunk]) -> list[Extraction]:
        return [self.found for _ in chunks]
