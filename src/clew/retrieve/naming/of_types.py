"""Filters what was found by entity types and relations."""

from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context
from clew.names import name_key
from clew.retrieve.naming.labels import relation_names, type_names
from clew.types import Found


@dataclass(frozen=True)
class TypeAndRelationFilter:
    """Keeps entities of some types and facts with some relations; names are matched loosely.

    A kind stays whole where no filter is set for it, or where the filter would leave nothing: then
    the schema does not describe this graph.
    """

    entities: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Cut `entities`, `facts` and `paths`."""
        view = ctx.view
        types = _matching_ids(await type_names(ctx), self.entities) if self.entities else set()
        relations = (
            _matching_ids(await relation_names(ctx), self.relations) if self.relations else set()
        )
        members = view.links("fact_entity")

        def fits(fact: int) -> bool:
            if int(view.relations[fact]) in relations:
                return True  # the relation matches, whatever its members are
            if relations and not types:
                return False
            return not types or bool(np.isin(view.types[members.row(fact)], list(types)).any())

        entities = tuple(h for h in found.entities if not types or int(view.types[h.at]) in types)
        facts = tuple(hit for hit in found.facts if fits(hit.at))
        paths = tuple(path for path in found.paths if any(fits(fact) for fact in path.facts))
        return replace(
            found,
            entities=entities or found.entities,
            facts=facts or found.facts,
            paths=paths or found.paths,
        )


def _matching_ids(names: list[str], wanted: tuple[str, ...]) -> set[int]:
    keys = {name_key(name) for name in wanted}
    return {number for number, name in enumerate(names) if name_key(name) in keys}
