"""Stores the extraction schema of a knowledge base and grows it by proposed types."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from clew.extract.answers import Bound
from clew.extract.growth import (
    Growth,
    History,
    Proposal,
    Similar,
    edited,
    grown,
    history_from,
    revert,
)
from clew.extract.schema import Bounded, proposals_of
from clew.extract.schema_file import DEFAULT_SCHEMA, load_schema
from clew.llm.chat import Chat
from clew.llm.embed import Embed
from clew.store.protocol import Memory
from clew.types import Chunk


@dataclass(frozen=True)
class SchemaRoom:
    """Loads and saves the schema history."""

    memory: Memory
    seed_file: Path | None = None

    async def history(self) -> History:
        """Return the stored history, or the seed schema's (the settings' file or the default)."""
        stored = (await self.memory.recall("manifest", ["schema"])).get("schema")
        if stored:
            return history_from(json.loads(stored))
        return History(load_schema(self.seed_file) if self.seed_file else DEFAULT_SCHEMA)

    async def keep(self, history: History) -> None:
        """Store a history."""
        await self.memory.remember("manifest", {"schema": json.dumps(history.as_json())})

    async def edit(self, file: Path) -> History:
        """Make a schema file the schema in force."""
        changed = edited(await self.history(), load_schema(file))
        await self.keep(changed)
        return changed

    async def revert(self, step: int) -> History:
        """Revert one step."""
        changed = revert(await self.history(), step)
        await self.keep(changed)
        return changed


@dataclass
class Growing:
    """One run of schema-bounded extraction, with the types proposed during it."""

    room: SchemaRoom
    history: History
    proposals: list[Proposal] = field(default_factory=list)

    def extractor(self, chat: Chat) -> Bounded:
        """Return an extractor bounded by the schema; its stamp uses the seed, which never grows."""
        return Bounded(chat, self.history.schema, seed=self.history.seed.digest(), hear=self._hear)

    def _hear(self, chunk: Chunk, answer: Bound) -> None:
        self.proposals += proposals_of(chunk.id, answer)

    async def settle(self, embed: Embed | None) -> Growth:
        """Decide which proposals are admitted, and save the grown schema."""
        similar = await _cosines(embed, self.history, self.proposals) if embed else None
        history, growth = grown(self.history, self.proposals, similar=similar)
        if growth.admitted:
            await self.room.keep(history)
        return growth


async def _cosines(embed: Embed, history: History, proposals: list[Proposal]) -> Similar:
    known = {one.name for one in history.schema.types}
    names = sorted(known | {one.name for one in proposals})
    vectors = dict(zip(names, await embed(names), strict=True)) if names else {}

    def similar(one: str, other: str) -> float:
        if one not in vectors or other not in vectors:
            return 0.0
        return float(vectors[one] @ vectors[other])

    return similar
