"""Read-only snapshot of the in-memory store."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clew.store.merge import FactMention, Mention
from clew.store.nodes import ChunkMention
from clew.store.protocol import Arrays
from clew.types import Chunk, Document, Entity, Fact, Kind, Support


@dataclass(frozen=True)
class MemorySnapshot:
    """One generation of the in-memory store, in dicts by key."""

    generation: int = 0
    arrays: Arrays = field(default_factory=dict)
    document_by_id: Mapping[str, Document] = field(default_factory=dict)
    chunk_by_key: Mapping[int, Chunk] = field(default_factory=dict)
    entity_by_key: Mapping[int, Entity] = field(default_factory=dict)
    fact_by_key: Mapping[int, Fact] = field(default_factory=dict)
    mentions_by_key: Mapping[int, Mapping[int, Mention]] = field(default_factory=dict)
    fact_mentions_by_key: Mapping[int, Mapping[int, FactMention]] = field(default_factory=dict)
    key_values: Mapping[tuple[str, str], str] = field(default_factory=dict)

    async def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """Documents by content id."""
        return {key: self.document_by_id[key] for key in ids if key in self.document_by_id}

    async def names(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The names of documents."""
        return {key: self.document_by_id[key].names for key in ids if key in self.document_by_id}

    async def chunks(self, keys: Sequence[int]) -> dict[int, Chunk]:
        """Chunks by key."""
        return {key: self.chunk_by_key[key] for key in keys if key in self.chunk_by_key}

    async def entities(self, keys: Sequence[int]) -> dict[int, Entity]:
        """Entities by key."""
        return {key: self.entity_by_key[key] for key in keys if key in self.entity_by_key}

    async def facts(self, keys: Sequence[int]) -> dict[int, Fact]:
        """Facts by key."""
        return {key: self.fact_by_key[key] for key in keys if key in self.fact_by_key}

    async def members(self, keys: Sequence[int]) -> dict[int, list[tuple[int, str]]]:
        """Participants of facts: entity key and role, in order."""
        by_id = {entity.id: key for key, entity in self.entity_by_key.items()}
        return {
            key: [(by_id[p.entity], p.role) for p in self.fact_by_key[key].participants]
            for key in keys
            if key in self.fact_by_key
        }

    async def get(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored values of these keys."""
        return {key: self.key_values[kind, key] for key in keys if (kind, key) in self.key_values}

    async def mentions(self, keys: Sequence[int]) -> dict[int, list[ChunkMention]]:
        """Mentions of each name, with their chunks."""
        return {
            key: [
                (c, self.chunk_by_key[c].id, m)
                for c, m in sorted(self.mentions_by_key[key].items())
            ]
            for key in keys
            if key in self.mentions_by_key
        }

    async def supports(self, kind: Kind, keys: Sequence[int]) -> dict[int, list[Support]]:
        """Spans that mention each entity or state each fact."""
        found: dict[int, list[Support]] = defaultdict(list)
        for key in keys:
            if kind == "fact":
                for chunk, saying in sorted(self.fact_mentions_by_key.get(key, {}).items()):
                    found[key].append(Support(self.chunk_by_key[chunk].id, *saying.span))
            else:
                for chunk, mention in sorted(self.mentions_by_key.get(key, {}).items()):
                    whole = self.chunk_by_key[chunk]
                    for span in mention.spans or ((whole.start, whole.end),):
                        found[key].append(Support(whole.id, *span))
        return dict(found)
