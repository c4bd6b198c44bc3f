"""A schema that grows with what a model proposes, and that people can edit and take back."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clew.config import ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.extract.schema import dump_schema
from clew.ingest.schema_store import SchemaStore
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.testing.stub_endpoint import StubEndpoint
from conftest import VALLEY, stream


def proposing(messages: Sequence[Any]) -> str:
    """A model that finds one person and proposes one new type, surely, in every chunk."""
    return json.dumps(
        {
            "entities": [{"name": "Ilse Brandvik", "type": "person", "description": ""}],
            "attributes": [],
            "triples": [],
            "relations": [],
            "new_types": [
                {
                    "kind": "entity",
                    "name": "lighthouse",
                    "confidence": 0.97,
                    "description": "A light.",
                }
            ],
            "proposals": [],
        }
    )


async def test_growth_is_recorded_and_can_be_taken_back(tmp_path: Path) -> None:
    async with StubEndpoint(reply=proposing) as stub:
        models = ModelSettings(model="m", base_url=stub.base_url)
        settings = Settings(kb=tmp_path / "kb", extractor="schema", models=models)
        base = KnowledgeBase(SqliteStore(settings.kb, create=True), settings, HashEmbed())
        added = await base.take(stream(VALLEY))
        assert (added.added, added.counts.failed) == (len(VALLEY), 0)
        room = SchemaStore(base.store)
        history = await room.load_history()
        assert [one.name for step in history.steps for one in step.added] == ["lighthouse"]
        calls = stub.stats.chat_calls
        assert (await base.take(stream(VALLEY))).unchanged == len(VALLEY)
        assert stub.stats.chat_calls == calls
        back = await room.revert(1)
        assert back.schema.find("entity", "lighthouse") is None
        file = tmp_path / "schema.toml"
        file.write_text(dump_schema(history.schema), encoding="utf-8")
        edited = await room.edit(file)
        assert edited.schema.find("entity", "lighthouse") is not None
        await base.close()
