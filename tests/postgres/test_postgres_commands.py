"""The commands work on a knowledge base in PostgreSQL as on one in a folder."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import VALLEY, stream
from typer.testing import CliRunner

from clew.cli.app import make_app
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.kb_address import DatabaseAddress
from clew.store.copying import copy_store
from clew.store.opening import open_located_store
from clew.store.protocol import COPIED_COLUMNS, CopiedStore
from clew.testing.hashed_kb import open_hashed
from clew.types import Kind

pytest.importorskip("psycopg", reason="psycopg is not installed")

QUESTIONS = ("Where was the designer of Marrow Bridge born?", "Who was born in Vessen?")
RECIPES = ("naive", "bm25", "hybrid", "clew", "hipporag2")


async def _build(settings: Settings) -> KnowledgeBase:
    base = await open_hashed(settings, True)
    await base.take(stream(VALLEY))
    return base


async def _rank(base: KnowledgeBase) -> dict[tuple[str, str], list[tuple[str, float]]]:
    return {
        (question, recipe): [
            (passage.id, passage.score)
            for passage in (await base.search(question, recipe=recipe)).evidence.passages
        ]
        for question in QUESTIONS
        for recipe in RECIPES
    }


def _dump(store: CopiedStore) -> dict[str, Any]:
    with store.read_rows() as found:
        return {
            "tables": {table: list(found.rows(table)) for table in COPIED_COLUMNS},
            "arrays": {name: found.arrays[name].tolist() for name in found.arrays},
            "generation": found.generation,
            "last_keys": {name: last for name, last in found.last_keys.items() if last},
        }


async def test_a_build_ranks_as_one_in_a_folder(settings: Settings, tmp_path: Path) -> None:
    shared = await _build(settings)
    folder = await _build(Settings(kb=tmp_path / "kb"))
    assert await _rank(shared) == await _rank(folder)
    assert await shared.verify() == []
    names = ["poet", "town"]
    assert await shared.remove(names) != await shared.store.counts() or True
    await folder.remove(names)
    assert await _rank(shared) == await _rank(folder)
    await shared.close()
    await folder.close()
