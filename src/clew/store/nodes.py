"""Snapshot with resolved entities: merged names and split senses are applied on reading.

The tables hold names as extracted. The generation's arrays record which names are one entity
(`merged`) and which name is several (`sense_mentions`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np

from clew.store.merge import Mention, merge_entity
from clew.store.protocol import SENSE, Arrays, Snapshot
from clew.text import digest
from clew.types import Chunk, Document, Entity, Fact, Kind, Participant, Support

Told = TypeVar("Told", Entity, Fact)
SUMMARY = "summary"  # key-value kind: digest of a long description → its summary
LONG = 1200  # characters from which a merged description is worth summarising

Said = tuple[int, str, Mention]
"""Chunk key, chunk id, and the mention in that chunk."""


class Names(Snapshot, Protocol):
    """The unresolved snapshot that a store must provide: entities are names."""

    async def mentions(self, keys: Sequence[int]) -> dict[int, list[Said]]:
        """Mentions of each name, with their chunks."""
        ...

    async def recalled(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored values of these keys."""
        ...

    async def members(self, keys: Sequence[int]) -> dict[int, list[tuple[int, str]]]:
        """Participants of facts: entity key and role, in order."""
        ...


@dataclass(frozen=True)
class Things:
    """A snapshot with resolved entities; everything else comes from the raw snapshot."""

    raw: Names

    @property
    def generation(self) -> int:
        """Number of this generation."""
        return self.raw.generation

    @property
    def arrays(self) -> Arrays:
        """The derived arrays of this generation."""
        return self.raw.arrays

    async def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """Documents by content id."""
        return await self.raw.documents(ids)

    async def names(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The names of documents, without their text."""
        return await self.raw.names(ids)

    async def chunks(self, keys: Sequence[int]) -> dict[int, Chunk]:
        """Chunks by key."""
        return await self.raw.chunks(keys)

    async def entities(self, keys: Sequence[int]) -> dict[int, Entity]:
        """Entities by key; merged names are one entity."""
        simple = [key for key in keys if not self._made(int(key))]
        found = await self.raw.entities(simple)
        composite = [int(key) for key in keys if self._made(int(key))]
        if composite:
            found |= await self._gathered(composite)
        return await self._told_shorter(found)

    async def facts(self, keys: Sequence[int]) -> dict[int, Fact]:
        """Facts by key, with resolved participants."""
        found = await self._told_shorter(await self.raw.facts(keys))
        if not self._into and not self._senses:
            return found
        members = await self.raw.members(list(found))
        places = self._chunks_of(found)
        nodes = {
            key: [self._node(entity, places.get(key, ())) for entity, _ in many]
            for key, many in members.items()
        }
        ids = await self._ids({node for many in nodes.values() for node in many})
        return {
            key: replace(
                fact,
                participants=tuple(
                    dict.fromkeys(
                        Participant(ids[node], role)
                        for node, (_, role) in zip(nodes[key], members[key], strict=True)
                    )
                ),
            )
            for key, fact in found.items()
        }

    async def supports(self, kind: Kind, keys: Sequence[int]) -> dict[int, list[Support]]:
        """Spans that mention each entity or state each fact."""
        if kind != "entity":
            return await self.raw.supports(kind, keys)
        simple = [key for key in keys if not self._made(int(key))]
        found = await self.raw.supports(kind, simple)
        for key in (int(key) for key in keys if self._made(int(key))):
            found[key] = await self._places(key)
        return found

    # -- internal

    async def _told_shorter(self, found: dict[int, Told]) -> dict[int, Told]:
        """Replace long merged descriptions by their stored model summaries."""
        long = {
            key: summary_key(element.description)
            for key, element in found.items()
            if len(element.description) > LONG
        }
        if long:
            summaries = await self.raw.recalled(SUMMARY, sorted(set(long.values())))
            for key, summary in long.items():
                if summary in summaries:
                    found[key] = replace(found[key], description=summaries[summary])
        return found

    @cached_property
    def _into(self) -> dict[int, int]:
        """Merged key → key of the resolved entity."""
        rows = self.arrays.get("merged", np.zeros((0, 2), np.int64))
        return {int(key): int(into) for key, into in rows.tolist()}

    @cached_property
    def _members(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for key, into in self._into.items():
            found[into].append(key)
        return found

    @cached_property
    def _senses(self) -> dict[int, dict[int, int]]:
        """Name key → chunk key → key of the sense used there."""
        found: dict[int, dict[int, int]] = defaultdict(dict)
        for name, chunk, key in self.arrays.get("sense_mentions", np.zeros((0, 3))).tolist():
            found[int(name)][int(chunk)] = int(key)
        return found

    def _made(self, key: int) -> bool:
        """Whether this entity is merged from several names or is one sense of a name."""
        return key in self._members or key >= SENSE or key in self._senses

    def _node(self, name: int, chunks: Sequence[int]) -> int:
        senses = self._senses.get(name)
        key = agreed(senses.get(chunk, name) for chunk in chunks) if senses and chunks else name
        return self._into.get(key, key)

    async def _gathered(self, keys: Sequence[int]) -> dict[int, Entity]:
        mentions = await self._said(keys)
        heads = await self.raw.entities([key % SENSE for key in keys])
        found = {}
        for key in keys:
            head = heads[key % SENSE]
            merged = merge_entity(node_id(head.id, key), [one for _, _, one in mentions[key]])
            others = {*merged.aliases, merged.name} - {head.name}
            found[key] = replace(merged, name=head.name, aliases=tuple(sorted(others)))
        return found

    async def _said(self, keys: Sequence[int]) -> dict[int, list[Said]]:
        """All mentions of each entity, under any of its names."""
        names = {key: [key, *self._members.get(key, ())] for key in keys}
        mentions = await self.raw.mentions(
            sorted({name % SENSE for many in names.values() for name in many})
        )
        return {
            key: [
                mention
                for name in many
                for mention in mentions.get(name % SENSE, ())
                if self._senses.get(name % SENSE, {}).get(mention[0], name % SENSE) == name
            ]
            for key, many in names.items()
        }

    async def _places(self, key: int) -> list[Support]:
        mentions = sorted((await self._said([key]))[key], key=lambda item: item[0])
        chunks = await self.raw.chunks([chunk for chunk, _, _ in mentions])
        return [
            Support(chunk_id, *span)
            for chunk, chunk_id, mention in mentions
            for span in mention.spans or ((chunks[chunk].start, chunks[chunk].end),)
        ]

    def _chunks_of(self, facts: Mapping[int, Fact]) -> dict[int, list[int]]:
        """Chunk keys of each fact; only needed if some name has several senses."""
        if not self._senses:
            return {}
        at = np.searchsorted(self.arrays["fact_keys"], list(facts))
        starts, columns = self.arrays["fact_chunk_starts"], self.arrays["fact_chunk_columns"]
        chunks = self.arrays["chunk_keys"]
        return {
            key: chunks[columns[starts[place] : starts[place + 1]]].tolist()
            for key, place in zip(facts, at.tolist(), strict=True)
        }

    async def _ids(self, keys: set[int]) -> dict[int, str]:
        heads = await self.raw.entities(sorted({key % SENSE for key in keys}))
        return {key: node_id(heads[key % SENSE].id, key) for key in keys}


def agreed(senses: Iterable[int]) -> int:
    """The most frequent sense among a fact's chunks; on a tie the lowest key."""
    counts = Counter(senses)
    return min(counts, key=lambda key: (-counts[key], key))


def summary_key(description: str) -> str:
    """Storage key of a description's summary; depends only on its text."""
    return digest("summary", description)


def node_id(base: str, key: int) -> str:
    """Id of a resolved entity: the name's id, followed by the sense number if any."""
    return f"{base}#{key // SENSE}" if key >= SENSE else base
