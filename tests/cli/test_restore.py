"""`clew backup` and `clew restore` with another embedder, and where the disk is full."""

import asyncio
import json
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from in_process import clew

from clew.engine import KnowledgeBase
from clew.errors import StoreError
from clew.store.sqlite.restore import restore_database
from clew.testing.stub_endpoint import StubEndpoint


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Path]:
    """A knowledge base with a backup of an earlier state."""
    async with StubEndpoint() as stub:
        for name in ("one", "other"):
            (tmp_path / f"{name}.toml").write_text(
                f'[embed]\nmodel = "{name}"\nbase_url = "{stub.base_url}"\n', encoding="utf-8"
            )
        use(tmp_path, "one")
        (tmp_path / "x.md").write_text("# X\n\nIlse Brandvik lives in Vessen.", encoding="utf-8")
        (tmp_path / "y.md").write_text("# Y\n\nOda Falk lives in Hallowmere.", encoding="utf-8")
        await call(tmp_path, "add", "x.md", "--extractor", "offline")
        await call(tmp_path, "backup", "b.sqlite")
        await call(tmp_path, "add", "y.md", "--extractor", "offline")
        yield tmp_path


def use(here: Path, embedder: str) -> None:
    (here / "clew.toml").write_bytes((here / f"{embedder}.toml").read_bytes())


async def call(here: Path, *words: str, code: int = 0) -> str:
    return await asyncio.to_thread(partial(clew, *words, cwd=here, code=code))


async def test_a_backup_of_another_embedder_replaces_nothing(here: Path) -> None:
    use(here, "other")
    assert "nothing was restored" in await call(here, "restore", "b.sqlite", code=1)
    use(here, "one")
    assert json.loads(await call(here, "status", "--json"))["documents"] == 2
    assert "OK" in await call(here, "verify")
    await call(here, "restore", "b.sqlite")
    assert json.loads(await call(here, "status", "--json"))["documents"] == 1


async def test_an_unfinished_restore_can_be_embedded_anew(here: Path) -> None:
    restore_database(here / "kb", here / "b.sqlite", 1.0)  # and stopped before its vectors
    use(here, "other")
    assert "not finished" in await call(here, "search", "Vessen", code=1)
    assert "clew reembed" in await call(here, "verify", "--repair", code=1)
    await call(here, "reembed")
    assert "OK" in await call(here, "verify")
    assert "Vessen" in await call(here, "search", "Where is Vessen?")


@contextmanager
def full_disk() -> Iterator[None]:
    """Let files of this process grow to a few kilobytes only."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_backup_that_fails_leaves_no_file(valley: KnowledgeBase, tmp_path: Path) -> None:
    into = tmp_path / "copies"
    into.mkdir()
    with full_disk(), pytest.raises(StoreError, match="is the disk full"):
        await valley.backup(into / "b.sqlite")
    assert list(into.iterdir()) == []
    await valley.backup(into / "b.sqlite")
    assert [file.name for file in into.iterdir()] == ["b.sqlite"]


async def test_a_full_disk_does_not_make_a_backup_look_damaged(
    valley: KnowledgeBase, tmp_path: Path
) -> None:
    await valley.backup(tmp_path / "b.sqlite")
    with full_disk(), pytest.raises(StoreError, match="is the disk full"):
        restore_database(tmp_path / "kb", tmp_path / "b.sqlite", 1.0)
    assert (await valley.store.counts()).documents == 6
