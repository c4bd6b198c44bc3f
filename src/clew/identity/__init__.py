"""What is one and what is two, for people: to be shown, taken apart and joined by hand."""

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
    """The names of one knowledge base."""

    store: Store

    async def why(self, name: str) -> list[Thing]:
        """The things that go by a name, and how each came about."""
        async with self.store.snapshot() as now:
            return await things_called(name, now)

    async def split(
        self, name: str, *, other: str | None = None, documents: Sequence[str] = ()
    ) -> Counts:
        """Take merged names apart, or set apart what some documents say of one name."""
        things = await self.why(name)
        if documents:
            await self._set_apart(things[0], documents)
        else:
            merged = next((thing for thing in things if len(thing.names) > 1), things[0])
            await self._decide(_apart(merged, other))
        return await self._publish()

    async def join(self, one: str, other: str) -> Counts:
        """Make two names one, whatever rules and vectors say."""
        first, second = (await self.why(one))[0], (await self.why(other))[0]
        if first.key == second.key:
            raise StoreError(f"{one!r} and {other!r} are one already; `clew show {one!r} --why`")
        said = _id_of(one, first), _id_of(other, second)
        await self._decide([Decision(*said, same=True, by="user")])
        return await self._publish()

    async def describe(self, chat: Chat) -> int:
        """Let a model tell long descriptions shorter; return how many it wrote."""
        return await describe_long(self.store, chat)

    async def judge(self, chat: Chat | None, limit: int) -> Judged:
        """Find close names that nothing decided yet; let a model decide, when there is one."""
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
        key = thing.names[0].id.partition("#")[0]  # senses are told apart within a name
        held = (await self.store.recall(SENSES, [key])).get(key, "{}")
        senses: dict[str, int] = json.loads(held)
        number = max([FIRST_SENSE - 1, *senses.values()]) + 1
        senses |= {sources[name].document: number for name in documents}
        await self.store.remember(SENSES, {key: json.dumps(senses)})

    async def _publish(self) -> Counts:
        return await self.store.write(Change(), arrays_of)


def _id_of(said: str, thing: Thing) -> str:
    """The id of the very name that was said: what is joined by it stays when others are split."""
    for alike in (normal_name, name_key):
        for name in thing.names:
            if alike(name.name) == alike(said):
                return name.id
    return thing.entity.id


def _apart(thing: Thing, other: str | None) -> list[Decision]:
    """Decisions that take a thing's names apart again: all, or one from the rest, which stays."""
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
    """Ties for what is left of a thing, where only the names taken out held it together."""
    left = {name.name: name.id for name in thing.names if name.id not in out}
    part = {name: name for name in left}
    for merge in thing.merges:
        if merge.name in part and merge.into in part:
            old, new = part[merge.name], part[merge.into]
            part = {name: new if its == old else its for name, its in part.items()}
    parts = [left[name] for name in dict.fromkeys(part.values())]
    return [Decision(parts[0], other, same=True, by="user") for other in parts[1:]]
