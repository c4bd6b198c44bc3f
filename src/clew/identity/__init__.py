"""Explain, split and merge entities on behalf of the user."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from clew.arrays import derive_arrays
from clew.errors import StoreError
from clew.identity.describe import summarize_long_descriptions
from clew.identity.judge import PairReview, review_pairs
from clew.identity.things import EntityExplanation, explain_entities
from clew.llm.chat import Chat
from clew.names import name_key
from clew.store.decisions import FIRST_MANUAL_SENSE, RESOLUTION_KIND, SENSES_KIND, MergeDecision
from clew.store.protocol import Change, Counts, Store
from clew.text import normalize_name

__all__ = ["EntityEditor", "EntityExplanation"]


@dataclass(frozen=True)
class EntityEditor:
    """Explains, splits and merges the entities of one knowledge base."""

    store: Store

    async def explain(self, name: str) -> list[EntityExplanation]:
        """Return the entities with a name, and how each was resolved."""
        async with self.store.snapshot() as now:
            return await explain_entities(name, now)

    async def split(
        self, name: str, *, other: str | None = None, documents: Sequence[str] = ()
    ) -> Counts:
        """Split merged names, or split off the mentions of one name in some documents."""
        things = await self.explain(name)
        if documents:
            await self._split_by_document(things[0], documents)
        else:
            merged = next((thing for thing in things if len(thing.names) > 1), things[0])
            await self._save_decisions(_decide_split(merged, other))
        return await self._derive()

    async def merge(self, one: str, other: str) -> Counts:
        """Merge two names into one entity, whatever rules and vectors say."""
        first, second = (await self.explain(one))[0], (await self.explain(other))[0]
        if first.key == second.key:
            raise StoreError(f"{one!r} and {other!r} are one already; `clew show {one!r} --why`")
        ids = _find_name_id(one, first), _find_name_id(other, second)
        await self._save_decisions([MergeDecision(*ids, same=True, by="user")])
        return await self._derive()

    async def summarize_descriptions(self, chat: Chat) -> int:
        """Let a model summarise long descriptions; return how many it wrote."""
        return await summarize_long_descriptions(self.store, chat)

    async def review_close_names(self, chat: Chat | None, limit: int) -> PairReview:
        """Find close names without a decision; let a model decide, if there is one."""
        found = await review_pairs(self.store, chat, limit)
        if found.decisions:
            await self._save_decisions(found.decisions)
            await self._derive()
        return found

    async def _save_decisions(self, decisions: Sequence[MergeDecision]) -> None:
        await self.store.set(RESOLUTION_KIND, {one.key: one.to_json() for one in decisions})

    async def _split_by_document(self, thing: EntityExplanation, documents: Sequence[str]) -> None:
        sources = await self.store.sources()
        unknown = [name for name in documents if name not in sources]
        if unknown:
            raise StoreError(
                f"no document named {unknown[0]!r}; `clew status --documents` lists them"
            )
        key = thing.names[0].id.partition("#")[0]  # senses are numbered within a name
        stored = (await self.store.get(SENSES_KIND, [key])).get(key, "{}")
        senses: dict[str, int] = json.loads(stored)
        number = max([FIRST_MANUAL_SENSE - 1, *senses.values()]) + 1
        senses |= {sources[name].document: number for name in documents}
        await self.store.set(SENSES_KIND, {key: json.dumps(senses)})

    async def _derive(self) -> Counts:
        return await self.store.write(Change(), derive_arrays)


def _find_name_id(typed: str, thing: EntityExplanation) -> str:
    """Return the id of the name as typed, so that a merge survives splits of other names."""
    for normalise in (normalize_name, name_key):
        for name in thing.names:
            if normalise(name.name) == normalise(typed):
                return name.id
    return thing.entity.id


def _decide_split(thing: EntityExplanation, other: str | None) -> list[MergeDecision]:
    """Return decisions that split an entity's names: all, or one from the rest."""
    ids = {entity.id: entity.name for entity in thing.names}
    if len(ids) < 2:
        raise StoreError(
            f"{thing.entity.name!r} is one name; `clew split {thing.entity.name!r} --document "
            "DOC` sets apart what a document says of it"
        )
    out = [one for one in ids if other is None or ids[one] == other]
    if not out:
        raise StoreError(
            f"{other!r} is not among the names of {thing.entity.name!r}: "
            f"{', '.join(sorted(ids.values()))}"
        )
    apart = [
        MergeDecision(one, rest, same=False, by="user")
        for one in out
        for rest in ids
        if rest != one
    ]
    return [*apart, *_keep_rest_together(thing, out)]


def _keep_rest_together(thing: EntityExplanation, out: Sequence[str]) -> list[MergeDecision]:
    """Return decisions that keep the rest merged, where removed names linked its parts."""
    left = {name.name: name.id for name in thing.names if name.id not in out}
    group_of = {name: name for name in left}
    for merge in thing.merges:
        if merge.name in group_of and merge.into in group_of:
            old, new = group_of[merge.name], group_of[merge.into]
            group_of = {name: new if group == old else group for name, group in group_of.items()}
    parts = [left[name] for name in dict.fromkeys(group_of.values())]
    return [MergeDecision(parts[0], other, same=True, by="user") for other in parts[1:]]
