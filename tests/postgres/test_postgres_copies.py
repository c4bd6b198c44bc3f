"""A knowledge base in PostgreSQL answers as one in a folder, and copies of both are equal."""

from pathlib import Path
from typing import Any

import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.kb_address import DatabaseAddress
from clew.store.protocol import COPIED_COLUMNS, CopiedStore
from clew.stores.copying import copy_store
from clew.stores.opening import open_located_store, restore_backup
from clew.testing.hashed_kb import open_hashed
from conftest import VALLEY, stream

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
            for passage in (await base.search(question, recipe=recipe)).evidence.chunks
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


@pytest.mark.slow  # the arrays of both: test_it_gives_the_same_arrays_as_a_folder
async def test_a_build_ranks_as_one_in_a_folder(shared: Settings, tmp_path: Path) -> None:
    base, folder = await _build(shared), await _build(Settings(kb=tmp_path / "kb"))
    assert await _rank(base) == await _rank(folder)
    assert await base.verify() == []
    await base.remove(["poet", "town"])
    await folder.remove(["poet", "town"])
    assert await _rank(base) == await _rank(folder)
    await base.close()
    await folder.close()


async def test_copies_both_ways_are_equal(
    shared: Settings, address: DatabaseAddress, tmp_path: Path
) -> None:
    folder = await _build(Settings(kb=tmp_path / "kb"))
    await folder.remove(["town"])
    there = open_located_store(shared, create=True)
    await copy_store(folder.store, there)
    back_settings = Settings(kb=tmp_path / "back")
    back = open_located_store(back_settings, create=True)
    await copy_store(there, back)
    truth = _dump(folder.store)
    assert _dump(there) == truth
    assert _dump(back) == truth
    assert await there.find_problems() == []
    assert await back.find_problems() == []
    copies = [KnowledgeBase(s, shared, folder.embed) for s in (there, back)]
    for copy in copies:
        assert await _rank(copy) == await _rank(folder)
        await copy.take(stream(VALLEY))  # the town comes back, with the next key
    assert _dump(there)["tables"]["documents"] == _dump(back)["tables"]["documents"]
    for one in (folder, *copies):
        await one.close()


async def test_a_backup_of_a_database_is_that_of_a_folder(shared: Settings, tmp_path: Path) -> None:
    base = await _build(shared)
    before = await _rank(base)
    assert await base.backup(tmp_path / "saved.sqlite") > 0
    await base.remove(["bridge"])
    await base.close()
    restored = await open_hashed(shared, False)
    await restore_backup(shared, tmp_path / "saved.sqlite")
    await restored.repair()
    assert await _rank(restored) == before
    assert await restored.verify() == []
    await restored.close()
