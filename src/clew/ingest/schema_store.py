"""Stores the extraction schema of a knowledge base and grows it by proposed types."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from clew.extract.response_models import SchemaAnswer
from clew.extract.schema import DEFAULT_SCHEMA, load_schema
from clew.extract.schema_bounded import Bounded, collect_proposals
from clew.extract.schema_growth import (
    Proposal,
    SchemaGrowth,
    SchemaHistory,
    Similarity,
    parse_history,
    record_edit,
    record_growth,
    revert_step,
)
from clew.llm.chat import Chat
from clew.llm.embed import Embedder
from clew.store.protocol import KeyValueStore
from clew.types import Chunk


@dataclass(frozen=True)
class SchemaStore:
    """Loads and saves the schema history."""

    key_values: KeyValueStore
    seed_file: Path | None = None

    async def load_stored(self) -> SchemaHistory | None:
        """Return the stored history, if there is one."""
        stored = (await self.key_values.get("manifest", ["schema"])).get("schema")
        return parse_history(json.loads(stored)) if stored else None

    async def load_history(self) -> SchemaHistory:
        """Return the stored history, or the seed schema's (the settings' file or the default)."""
        stored = await self.load_stored()
        if stored is not None:
            return stored
        return SchemaHistory(load_schema(self.seed_file) if self.seed_file else DEFAULT_SCHEMA)

    async def save(self, history: SchemaHistory) -> None:
        """Store a history."""
        await self.key_values.set("manifest", {"schema": json.dumps(history.to_json())})

    async def edit(self, file: Path) -> SchemaHistory:
        """Make a schema file the schema in force."""
        changed = record_edit(await self.load_history(), load_schema(file))
        await self.save(changed)
        return changed

    async def revert(self, step: int) -> SchemaHistory:
        """Revert one step."""
        changed = revert_step(await self.load_history(), step)
        await self.save(changed)
        return changed


@dataclass
class SchemaGrowthRun:
    """One run of schema-bounded extraction, with the types proposed during it."""

    store: SchemaStore
    history: SchemaHistory
    proposals: list[Proposal] = field(default_factory=list)

    def make_extractor(self, chat: Chat) -> Bounded:
        """Return an extractor bounded by the schema; its stamp uses the seed, which never grows."""
        return Bounded(
            chat,
            self.history.schema,
            seed=self.history.seed.digest(),
            on_answer=self._collect_proposals,
        )

    def _collect_proposals(self, chunk: Chunk, answer: SchemaAnswer) -> None:
        self.proposals += collect_proposals(chunk.id, answer)

    async def apply_proposals(self, embed: Embedder | None) -> SchemaGrowth:
        """Decide which proposals are admitted, and save the grown schema."""
        similar = await _name_similarity(embed, self.history, self.proposals) if embed else None
        history, growth = record_growth(self.history, self.proposals, similar=similar)
        if growth.admitted:
            await self.store.save(history)
        return growth


async def _name_similarity(
    embed: Embedder, history: SchemaHistory, proposals: list[Proposal]
) -> Similarity:
    known = {one.name for one in history.schema.types}
    names = sorted(known | {one.name for one in proposals})
    vectors = dict(zip(names, await embed(names), strict=True)) if names else {}

    def similar(one: str, other: str) -> float:
        if one not in vectors or other not in vectors:
            return 0.0
        return float(vectors[one] @ vectors[other])

    return similar
