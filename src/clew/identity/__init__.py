"""Explain, split and merge entities on behalf of the user."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from clew.arrays import arrays_of
from clew.errors import StoreError
from clew.identity.describe import describe_long
from clew.identity.judge import Judged, judged
from clew.identity.things import Thing, things_called
from clew.llm.chat import Chat
from clew.names import name_key
from clew.store.decisions import FIRST_SENSE, RESOLUTION, SENSES, Decision
from clew.store.protocol import Change, Counts, Store
from clew.text import normal_name

__all__ = ["Identity", "Thing"]


@dataclass(frozen=True)
class Identity:
    """Explains, splits and merges the entities of one knowledge base."""

    store: Store

    async def why(self, name: str) -> list[Thing]:
        """Return the entities with a name, and how each was resolved."""
        async with self.store.snapshot() as now:
            return await things_called(name, now)

    async def split(
        self, name: str, *, other: str | None = None, documents: Sequence[str] = ()
    ) -> Counts:
        """Split merged names, or split off the mentions of one name in some documents."""
        things = await self.why(name)
        if documents:
            await self._set_apart(things[0], documents)
        else:
            merged = next((thing for thing in things if len(thing.names) > 1), things[0])
            await self._decide(_apart(merged, other))
        return await self._publish()

    async def join(self, one: str, other: str) -> Counts:
        """Merge two names into one entity, whatever rules and vectors say."""
        first, second = (await self.why(one))[0], (await self.why(other))[0]
        if first.key == second.key:
            raise StoreError(f"{one!r} and {other!r} are one already; `clew show {one!r} --why`")
        ids = _id_of(one, first), _id_of(other, second)
        await self._decide([Decision(*ids, same=True, by="user")])
        return await self._publish()

    async def describe(self, chat: Chat) -> int:
        """Let a model summarise long descriptions; return how many it wrote."""
        return await describe_long(self.store, chat)

    async def judge(self, chat: Chat | None, limit: int) -> Judged:
        """Find close names without a decision; let a model decide, if there is one."""
        found = await judged(self.store, chat, limit)
        if found.decisions:
            await self._decide(found.decisions)
            await self._publish()
        return found

    async def _decide(self, decisions: Sequence[Decision]) -> None:
        await self.store.remember(RESOLUTION, {one.key: one.value() for one in decisions})

    async def _set_apart(self, thing: Thing, documents: Sequence[str]) -> None:
        sources = await self.store.sources()
        unknown = [name for name in documents if name not in sources]
        if unknown:
            raise StoreError(
                f"no document named {unknown[0]!r}; `clew status --documents` lists them"
            )
        key = thing.names[0].id.partition("#")[0]  # senses are numbered within a name
        stored = (await self.store.recall(SENSES, [key])).get(key, "{}")
        senses: dict[str, int] = json.loads(stored)
        number = max([FIRST_SENSE - 1, *senses.values()]) + 1
        senses |= {sources[name].document: number for name in documents}
        await self.store.remember(SENSES, {key: json.dumps(senses)})

    async def _publish(self) -> Counts:
        return await self.store.write(Change(), arrays_of)


def _id_of(typed: str, thing: Thing) -> str:
    """Return the id of the name as typed, so that a merge survives splits of other names."""
    for normalise in (normal_name, name_key):
        for name in thing.names:
            if normalise(name.name) == normalise(typed):
                return name.id
    return thing.entity.id


def _apart(thing: Thing, other: str | None) -> list[Decision]:
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
        Decision(one, rest, same=False, by="user") for one in out for rest in ids if rest != one
    ]
    return [*apart, *_still_one(thing, out)]


def _still_one(thing: Thing, out: Sequence[str]) -> list[Decision]:
    """Return decisions that keep the rest merged, where removed names linked its parts."""
    left = {name.name: name.id for name in thing.names if name.id not in out}
    group_of = {name: name for name in left}
    for merge in thing.merges:
        if merge.name in group_of and merge.into in group_of:
            old, new = group_of[merge.name], group_of[merge.into]
            group_of = {name: new if group == old else group for name, group in group_of.items()}
    parts = [left[name] for name in dict.fromkeys(group_of.values())]
    return [Decision(parts[0], other, same=True, by="user") for other in parts[1:]]
