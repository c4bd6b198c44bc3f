"""Resolved entities: stored merge decisions and sense pins, and the snapshot that applies them.

Decisions and pins of users and models are stored by id and read as key columns.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol, TypeVar

import numpy as np

from clew.store.merge import Mention, merge_entity
from clew.store.protocol import SENSE_STRIDE, Array, Arrays, Snapshot
from clew.text.unicode import digest
from clew.types import (
    Chunk,
    Document,
    Entity,
    EntityLabel,
    Fact,
    FactText,
    Kind,
    Participant,
    Support,
)

RESOLUTION_KIND = "resolution"  # key-value kind: two ids → same or not, and who decided
SENSES_KIND = "senses"  # key-value kind: entity id → document id → number of the sense used there
SUMMARY_KIND = "summary"  # key-value kind: digest of a long description → its summary
LONG_DESCRIPTION = 1200  # characters from which a merged description is worth summarising
FIRST_MANUAL_SENSE = 16  # manual senses are numbered from here; lower numbers are entity classes
Element = TypeVar("Element", Entity, Fact, FactText)
ChunkMention = tuple[int, str, Mention]
"""Chunk key, chunk id, and the mention in that chunk."""


@dataclass(frozen=True, slots=True)
class MergeDecision:
    """Whether two entities are the same, and who decided."""

    one: str
    other: str
    same: bool
    by: Literal["user", "model"]

    @property
    def key(self) -> str:
        """Storage key of the unordered pair."""
        return " ".join(sorted((self.one, self.other)))

    def to_json(self) -> str:
        """The stored JSON value."""
        return json.dumps({"same": self.same, "by": self.by})


def parse_decisions(held: Mapping[str, str], entities: Mapping[str, int]) -> Array:
    """Rows of two keys, same (0/1), by model (0/1); pairs with a removed entity are dropped."""
    found = []
    for pair, value in sorted(held.items()):
        keys = [parse_node_id(name, entities) for name in pair.split()]
        decision = json.loads(value)
        if decision is not None and None not in keys:  # None: it was withdrawn
            found.append((*keys, int(decision["same"]), int(decision["by"] == "model")))
    return np.array(found, np.int64).reshape(-1, 4)


def parse_sense_pins(
    held: Mapping[str, str], entities: Mapping[str, int], chunks: Mapping[str, Sequence[int]]
) -> Array:
    """Rows of entity key, chunk key, sense; `chunks` maps a document id to its chunk keys."""
    found = [
        (entities[name], chunk, sense)
        for name, value in sorted(held.items())
        if name in entities
        for document, sense in sorted(json.loads(value).items())
        for chunk in chunks.get(document, ())
    ]
    return np.array(found, np.int64).reshape(-1, 3)


def parse_node_id(name: str, entities: Mapping[str, int]) -> int | None:
    """The key of an entity id or sense id."""
    base, _, sense = name.partition("#")
    key = entities.get(base)
    return None if key is None else key + int(sense or 0) * SENSE_STRIDE


class RawSnapshot(Snapshot, Protocol):
    """The unresolved snapshot that a store must provide: entities are names."""

    async def mentions(self, keys: Sequence[int]) -> dict[int, list[ChunkMention]]:
        """Mentions of each name, with their chunks."""

    async def get(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored values of these keys."""

    async def members(self, keys: Sequence[int]) -> dict[int, list[tuple[int, str]]]:
        """Participants of facts: entity key and role, in order."""


async def load_all_names(snapshot: Snapshot) -> list[Entity]:
    """All names as stored in the tables, those that are merged into others too."""
    none = np.zeros(0, np.int64)
    merged = snapshot.arrays.get("merged", np.zeros((0, 2), np.int64))[:, 0]
    keys = np.concatenate([snapshot.arrays.get("entity_keys", none), merged])
    raw = snapshot.raw if isinstance(snapshot, ResolvedSnapshot) else snapshot
    return list((await raw.entities(np.unique(keys % SENSE_STRIDE).tolist())).values())


@dataclass(frozen=True)
class _NameKeys:
    """Which names are merged and which have senses, by key; shared by all of a generation."""

    merged: Array
    senses: Array

    @cached_property
    def merged_into(self) -> dict[int, int]:
        """Merged key → key of the resolved entity."""
        return dict(self.merged.tolist())

    @cached_property
    def merged_keys(self) -> dict[int, list[int]]:
        """Key of a resolved entity → the keys merged into it."""
        found: dict[int, list[int]] = defaultdict(list)
        for key, into in self.merged.tolist():
            found[into].append(key)
        return dict(found)

    @cached_property
    def sense_keys(self) -> dict[int, dict[int, int]]:
        """Name key → chunk key → key of the sense used there."""
        found: dict[int, dict[int, int]] = defaultdict(dict)
        for name, chunk, key in self.senses.tolist():
            found[name][chunk] = key
        return dict(found)


_NO_NAMES = _NameKeys(np.zeros((0, 2), np.int64), np.zeros((0, 3), np.int64))
_MAX_KEPT = 16  # generations, of several knowledge bases, whose names are kept
_kept_names: dict[int, _NameKeys] = {}


def _load_name_keys(arrays: Arrays) -> _NameKeys:
    """The merged names of a generation; making them for every question would take longer than it.

    They are kept by the array they come from, which stays the same object for a generation.
    """
    merged, senses = arrays.get("merged"), arrays.get("sense_mentions")
    if merged is None or senses is None:
        return _NO_NAMES
    held = _kept_names.get(id(merged))
    if held is None or held.merged is not merged or held.senses is not senses:
        if len(_kept_names) >= _MAX_KEPT:
            _kept_names.clear()
        held = _kept_names[id(merged)] = _NameKeys(merged, senses)
    return held


@dataclass(frozen=True)
class ResolvedSnapshot:
    """A snapshot with resolved entities; everything else comes from the raw snapshot."""

    raw: RawSnapshot

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

    async def stored(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that documents have."""
        return await self.raw.stored(ids)

    async def names(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The names of documents, without their text."""
        return await self.raw.names(ids)

    async def chunks(self, keys: Sequence[int]) -> dict[int, Chunk]:
        """Chunks by key."""
        return await self.raw.chunks(keys)

    async def chunk_documents(self, keys: Sequence[int]) -> dict[int, str]:
        """Ids of the documents of chunks by key."""
        return await self.raw.chunk_documents(keys)

    async def entities(self, keys: Sequence[int]) -> dict[int, Entity]:
        """Entities by key; merged names are one entity."""
        simple = [key for key in keys if not self._is_composite(int(key))]
        found = await self.raw.entities(simple)
        composite = [int(key) for key in keys if self._is_composite(int(key))]
        if composite:
            found |= await self._merge_entities(composite)
        return await self._use_summaries(found)

    async def entity_labels(self, keys: Sequence[int]) -> dict[int, EntityLabel]:
        """Id and name of entities by key: those of the name that others are merged into."""
        heads = await self.raw.entity_labels(sorted({int(key) % SENSE_STRIDE for key in keys}))
        return {
            key: EntityLabel(node_id(head.id, key), head.name)
            for key in map(int, keys)
            if (head := heads.get(key % SENSE_STRIDE)) is not None
        }

    async def entity_names(self, keys: Sequence[int]) -> dict[int, str]:
        """Names of entities by key: those that others are merged into."""
        heads = await self.raw.entity_names(sorted({int(key) % SENSE_STRIDE for key in keys}))
        some = ((key, heads.get(key % SENSE_STRIDE)) for key in map(int, keys))
        return {key: name for key, name in some if name is not None}

    async def fact_texts(self, keys: Sequence[int]) -> dict[int, FactText]:
        """What facts say by key."""
        return await self._use_summaries(await self.raw.fact_texts(keys))

    async def fact_spans(self, keys: Sequence[int]) -> dict[int, list[Support]]:
        """Spans that state each fact, not compared with what was extracted."""
        return await self.raw.fact_spans(keys)

    async def relations(self, keys: Sequence[int]) -> dict[int, str]:
        """Relations of facts by key, as stored: names that are resolved do not change them."""
        return await self.raw.relations(keys)

    async def facts(self, keys: Sequence[int]) -> dict[int, Fact]:
        """Facts by key, with resolved participants."""
        found = await self._use_summaries(await self.raw.facts(keys))
        if not self._names.merged_into and not self._names.sense_keys:
            return found
        members = await self.raw.members(list(found))
        places = self._fact_chunks(found)
        nodes = {
            key: [self._resolve_key(entity, places.get(key, ())) for entity, _ in many]
            for key, many in members.items()
        }
        moved = [key for key, many in members.items() if nodes[key] != [name for name, _ in many]]
        ids = await self._node_ids({node for key in moved for node in nodes[key]})
        for key in moved:
            pairs = zip(nodes[key], members[key], strict=True)
            participants = dict.fromkeys(Participant(ids[node], role) for node, (_, role) in pairs)
            found[key] = replace(found[key], participants=tuple(participants))
        return found

    async def supports(self, kind: Kind, keys: Sequence[int]) -> dict[int, list[Support]]:
        """Spans that mention each entity or state each fact."""
        if kind != "entity":
            return await self.raw.supports(kind, keys)
        simple = [key for key in keys if not self._is_composite(int(key))]
        found = await self.raw.supports(kind, simple)
        for key in (int(key) for key in keys if self._is_composite(int(key))):
            found[key] = await self._entity_supports(key)
        return found

    # -- internal

    async def _use_summaries(self, found: dict[int, Element]) -> dict[int, Element]:
        """Replace long merged descriptions by their stored model summaries."""
        long = {
            key: summary_key(element.description)
            for key, element in found.items()
            if len(element.description) > LONG_DESCRIPTION
        }
        if long:
            summaries = await self.raw.get(SUMMARY_KIND, sorted(set(long.values())))
            for key, summary in long.items():
                if summary in summaries:
                    found[key] = replace(found[key], description=summaries[summary])
        return found

    @cached_property
    def _names(self) -> "_NameKeys":
        return _load_name_keys(self.arrays)

    def _is_composite(self, key: int) -> bool:
        """Whether this entity is merged from several names or is one sense of a name."""
        names = self._names
        return key >= SENSE_STRIDE or key in names.merged_keys or key in names.sense_keys

    def _resolve_key(self, name: int, chunks: Sequence[int]) -> int:
        senses = self._names.sense_keys.get(name)
        if senses and chunks:
            name = majority_sense(senses.get(chunk, name) for chunk in chunks)
        return self._names.merged_into.get(name, name)

    async def _merge_entities(self, keys: Sequence[int]) -> dict[int, Entity]:
        mentions = await self._collect_mentions(keys)
        heads = await self.raw.entities([key % SENSE_STRIDE for key in keys])
        found = {}
        for key in keys:
            head = heads[key % SENSE_STRIDE]
            merged = merge_entity(node_id(head.id, key), [one for _, _, one in mentions[key]])
            others = {*merged.aliases, merged.name} - {head.name}
            found[key] = replace(merged, name=head.name, aliases=tuple(sorted(others)))
        return found

    async def _collect_mentions(self, keys: Sequence[int]) -> dict[int, list[ChunkMention]]:
        """All mentions of each entity, under any of its names."""
        names = {key: [key, *self._names.merged_keys.get(key, ())] for key in keys}
        mentions = await self.raw.mentions(
            sorted({name % SENSE_STRIDE for many in names.values() for name in many})
        )
        found: dict[int, list[ChunkMention]] = {key: [] for key in keys}
        for key, many in names.items():
            for name in many:
                base = name % SENSE_STRIDE
                senses = self._names.sense_keys.get(base, {})
                found[key] += [m for m in mentions.get(base, ()) if senses.get(m[0], base) == name]
        return found

    async def _entity_supports(self, key: int) -> list[Support]:
        mentions = sorted((await self._collect_mentions([key]))[key], key=lambda item: item[0])
        chunks = await self.raw.chunks([chunk for chunk, _, _ in mentions])
        return [
            Support(chunk_id, *span)
            for chunk, chunk_id, mention in mentions
            for span in mention.spans or ((chunks[chunk].start, chunks[chunk].end),)
        ]

    def _fact_chunks(self, facts: Mapping[int, Fact]) -> dict[int, list[int]]:
        """Chunk keys of each fact; only needed if some name has several senses."""
        if not self._names.sense_keys:
            return {}
        at = np.searchsorted(self.arrays["fact_keys"], list(facts))
        starts, columns = self.arrays["fact_chunk_starts"], self.arrays["fact_chunk_columns"]
        chunks = self.arrays["chunk_keys"]
        return {
            key: chunks[columns[starts[place] : starts[place + 1]]].tolist()
            for key, place in zip(facts, at.tolist(), strict=True)
        }

    async def _node_ids(self, keys: set[int]) -> dict[int, str]:
        return {key: one.id for key, one in (await self.entity_labels(sorted(keys))).items()}


def majority_sense(senses: Iterable[int]) -> int:
    """The most frequent sense among a fact's chunks; on a tie the lowest key."""
    counts = Counter(senses)
    return min(counts, key=lambda key: (-counts[key], key))


def summary_key(description: str) -> str:
    """Storage key of a description's summary; depends only on its text."""
    return digest("summary", description)


def node_id(base: str, key: int) -> str:
    """Id of a resolved entity: the name's id, followed by the sense number if any."""
    return f"{base}#{key // SENSE_STRIDE}" if key >= SENSE_STRIDE else base
