"""`clew serve` serves a knowledge base in PostgreSQL, also to readers who may not see all of it."""

from pathlib import Path

import pytest

from clew.config import Settings
from clew.kb_address import DatabaseAddress
from clew.labels import save_labels
from clew.serve.core.folders import Folders
from clew.serve.core.workspaces import WorkspacePool
from clew.testing.hashed_kb import open_hashed
from conftest import VALLEY, stream

pytest.importorskip("psycopg", reason="psycopg is not installed")


async def test_a_reader_sees_what_its_labels_allow(
    shared: Settings, address: DatabaseAddress, tmp_path: Path
) -> None:
    base = await open_hashed(shared, True)
    await base.take(stream(VALLEY))
    await save_labels(base.store, {"poet": ["team=legal"]})
    folders = Folders(shared.folder, single=True, database=address)
    pool = WorkspacePool(shared, folders, open_hashed)
    assert folders.exists("default")
    question = "Where was Anton Reeve born?"
    async with pool.use("default") as whole:
        seen = await whole.search(question, recipe="hybrid")
        assert "poet" in {one.doc for one in seen.evidence.chunks}
    async with pool.use("default", frozenset({"team=law"})) as restricted:
        seen = await restricted.search(question, recipe="hybrid")
        assert seen.evidence.chunks
        assert "poet" not in {one.doc for one in seen.evidence.chunks}
    async with pool.use("default", frozenset({"team=legal"})) as allowed:
        assert (await allowed.store.counts()).documents == len(VALLEY)
    await pool.close()
    await base.close()


async def test_copies_with_a_document_that_was_removed_go(
    shared: Settings, address: DatabaseAddress
) -> None:
    base = await open_hashed(shared, True)
    await base.take(stream(VALLEY))
    await save_labels(base.store, {"poet": ["team=legal"]})
    pool = WorkspacePool(shared, Folders(shared.folder, single=True, database=address), open_hashed)
    async with pool.use("default", frozenset()) as restricted:
        seen = sorted(await restricted.store.sources())
    views = shared.folder / ".server" / "views" / "default"
    [copy] = views.glob("*-*/")
    await base.remove([seen[0]])  # as by another machine: this server is not told
    await pool.remove_outdated_copies()
    assert not copy.exists()
    async with pool.use("default", frozenset()) as restricted:
        assert seen[0] not in await restricted.store.sources()
    await pool.close()
    await base.close()
