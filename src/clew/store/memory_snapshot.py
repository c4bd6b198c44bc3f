"""Read-only snapshot of the in-memory store."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clew.store.merge import Mention, Saying
from clew.store.nodes import Said
from clew.store.protocol import Arrays
from clew.types import Chunk, Document, Entity, Fact, Kind, Support


@dataclass(frozen=True)
class MemorySnapshot:
    """One generation of the in-memory store, in dicts by key."""

    generation: int = 0
    arrays: Arrays = field(default_factory=dict)
    by_id: Mapping[str, Document] = field(default_factory=dict)
    chunk_of: Mapping[int, Chunk] = field(default_factory=dict)
    entity_of: Mapping[int, Entity] = field(default_factory=dict)
    fact_of: Mapping[int, Fact] = field(default_factory=dict)
    mentions_of: Mapping[int, Mapping[int, Mention]] = field(default_factory=dict)
    sayings: Mapping[int, Mapping[int, Saying]] = field(default_factory=dict)
    memory: Mapping[tuple[str, str], str] = field(default_factory=dict)

    async def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """Documents by content id."""
        return {key: self.by_id[key] for key in ids if key in self.by_id}

    async def names(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The names of documents."""
        return {key: self.by_id[key].names for key in ids if key in self.by_id}

    async def chunks(self, keys: Sequence[int]) -> dict[int, Chunk]:
        """Chunks by key."""
        return {key: self.chunk_of[key] for key in keys if key in self.chunk_of}

    async def entities(self, keys: Sequence[int]) -> dict[int, Entity]:
        """Entities by key."""
        return {key: self.entity_of[key] for key in keys if key in self.entity_of}

    async def facts(self, keys: Sequence[int]) -> dict[int, Fact]:
        """Facts by key."""
        return {key: self.fact_of[key] for key in keys if key in self.fact_of}

    async def members(self, keys: Sequence[int]) -> dict[int, list[tuple[int, str]]]:
        """Participants of facts: entity key and role, in order."""
        by_id = {entity.id: key for key, entity in self.entity_of.items()}
        return {
            key: [(by_id[p.entity], p.role) for p in self.fact_of[key].participants]
            for key in keys
            if key in self.fact_of
        }

    async def recalled(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored values of these keys."""
        return {key: self.memory[kind, key] for key in keys if (kind, key) in self.memory}

    async def mentions(self, keys: Sequence[int]) -> dict[int, list[Said]]:
        """Mentions of each name, with their chunks."""
        return {
            key: [(c, self.chunk_of[c].id, m) for c, m in sorted(self.mentions_of[key].items())]
            for key in keys
            if key in self.mentions_of
        }

    async def supports(self, kind: Kind, keys: Sequence[int]) -> dict[int, list[Support]]:
        """Spans that mention each entity or state each fact."""
        found: dict[int, list[Support]] = defaultdict(list)
        for key in keys:
            if kind == "fact":
                for chunk, saying in sorted(self.sayings.get(key, {}).items()):
                    found[key].append(Support(self.chunk_of[chunk].id, *saying.span))
            else:
                for chunk, mention in sorted(self.mentions_of.get(key, {}).items()):
                    whole = self.chunk_of[chunk]
                    for span in mention.spans or ((whole.start, whole.end),):
                        found[key].append(Support(whole.id, *span))
        return dict(found)
