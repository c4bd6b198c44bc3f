"""The parts of a schema that a question involves, and keeping what was found of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.context import Context
from clew.extract.schema import type_key
from clew.retrieve.labels import relation_names, type_names
from clew.retrieve.pack import fetch_entities
from clew.types import Found, Hit


@dataclass(frozen=True)
class SchemaNames:
    """Entity types, relations and attributes: of a knowledge base, or those a question involves."""

    types: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.types or self.relations or self.attributes)

    def select(
        self, types: Sequence[str], relations: Sequence[str], attributes: Sequence[str]
    ) -> "SchemaNames":
        """Return what of these names the schema has; the rest is dropped."""
        return SchemaNames(
            _known(types, self.types),
            _known(relations, self.relations),
            _known(attributes, self.attributes),
        )

    def __str__(self) -> str:
        """Format for a prompt."""
        return (
            f"entity types: {', '.join(self.types) or '(any)'}\n"
            f"relations: {', '.join(self.relations) or '(any)'}\n"
            f"attributes: {', '.join(self.attributes) or '(none)'}"
        )


def _known(named: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    by_key = {type_key(name): name for name in names}
    found = (by_key.get(type_key(name)) for name in named)
    return tuple(dict.fromkeys(name for name in found if name is not None))


@dataclass(frozen=True)
class SchemaFilter:
    """Keeps what was found of the involved types and relations; a kind is never left empty.

    A fact fits by its relation or by the type of a participant, a path by a relation or by the type
    of its end, a passage if it states or mentions something that fits. Entities with an involved
    attribute fit too, and come first.
    """

    involved: SchemaNames

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Filter entities, facts, paths and passages."""
        described = await self._find_described(ctx, found)
        fits = await self._find_typed(ctx, found) | described
        related = await self._find_related(ctx, found)
        members = ctx.view.links("fact_entity")
        entities = tuple(hit for hit in found.entities if hit.at in fits)
        facts = tuple(
            hit
            for hit in found.facts
            if hit.at in related or fits & {int(at) for at in members.row(hit.at)}
        )
        paths = tuple(
            path for path in found.paths if path.entities[-1] in fits or related & {*path.facts}
        )
        kept = replace(
            found,
            entities=tuple(
                sorted(entities or found.entities, key=lambda hit: hit.at not in described)
            ),
            facts=facts or found.facts,
            paths=paths or found.paths,
        )
        return replace(kept, chunks=_find_sources(ctx, kept) or found.chunks)

    async def _find_typed(self, ctx: Context, found: Found) -> set[int]:
        """Return the positions of the entities that have an involved type."""
        names = await type_names(ctx)
        codes = {at for at, name in enumerate(names) if name in self.involved.types}
        members, types = ctx.view.links("fact_entity"), ctx.view.types
        at = {hit.at for hit in found.entities} | {path.entities[-1] for path in found.paths}
        at |= {int(i) for hit in found.facts for i in members.row(hit.at)}
        return {one for one in at if int(types[one]) in codes}

    async def _find_described(self, ctx: Context, found: Found) -> set[int]:
        """Return the positions of the entities that have an involved attribute."""
        wanted = {type_key(name) for name in self.involved.attributes}
        if not wanted:
            return set()
        entities = await fetch_entities(ctx, [hit.at for hit in found.entities])
        return {
            at for at, one in entities.items() if wanted & {type_key(a) for a in one.attributes}
        }

    async def _find_related(self, ctx: Context, found: Found) -> set[int]:
        """Return the positions of the facts that have an involved relation."""
        names = await relation_names(ctx)
        codes = {at for at, name in enumerate(names) if name in self.involved.relations}
        relations = ctx.view.relations
        facts = {hit.at for hit in found.facts} | {at for path in found.paths for at in path.facts}
        return {at for at in facts if int(relations[at]) in codes}


def _find_sources(ctx: Context, kept: Found) -> tuple[Hit, ...]:
    """Return the passages that state a kept fact or mention a kept entity."""
    by_fact, by_entity = ctx.view.links("fact_chunk"), ctx.view.links("entity_chunk")
    facts = {hit.at for hit in kept.facts} | {at for path in kept.paths for at in path.facts}
    where = {int(chunk) for at in facts for chunk in by_fact.row(at)}
    where |= {int(chunk) for hit in kept.entities for chunk in by_entity.row(hit.at)}
    return tuple(hit for hit in kept.chunks if hit.at in where)
