"""The commands work on a knowledge base in PostgreSQL as on one in a folder."""

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE
from functools import partial
from pathlib import Path

import pytest
from in_process import clew

from clew.config import Settings
from clew.errors import StoreError
from clew.kb_address import DatabaseAddress
from clew.stores.copying import copy_store
from clew.stores.opening import open_located_store
from clew.testing.fakes import HashEmbed
from clew.testing.hashed_kb import open_hashed
from clew.testing.stub_endpoint import StubEndpoint
from conftest import VALLEY, stream

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")


def test_the_commands(
    address: DatabaseAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.llm.factory.create_embedder", lambda *_: HashEmbed())
    (tmp_path / "clew.toml").write_text('cache = "cache"')
    (tmp_path / "bridge.txt").write_text("Marrow Bridge was designed by Ilse Brandvik in 1904.")
    kb = ("--kb", address.full_url, "--json")
    added = json.loads(clew("add", "bridge.txt", *kb, cwd=tmp_path))
    assert added["added"] == 1
    found = json.loads(clew("search", "Who designed Marrow Bridge?", *kb, cwd=tmp_path))
    assert "Ilse" in found["chunks"][0]["text"]
    assert json.loads(clew("status", *kb, cwd=tmp_path))["documents"] == 1
    assert json.loads(clew("verify", *kb, cwd=tmp_path))["problems"] == []
    copied = json.loads(clew("copy", address.full_url, "mine", "--json", cwd=tmp_path))
    assert copied["counts"]["documents"] == 1
    assert json.loads(clew("verify", "--kb", "mine", "--json", cwd=tmp_path))["problems"] == []
    said = clew("copy", "mine", address.full_url, cwd=tmp_path, code=1)
    assert "holds a knowledge base already" in said
    shown = clew("doctor", "--kb", address.full_url, cwd=tmp_path)
    assert "1 documents in postgresql://" in shown


@pytest.mark.slow
async def test_an_add_by_workers(address: DatabaseAddress, tmp_path: Path) -> None:
    (tmp_path / "towns").mkdir()
    for number in range(6):
        file = tmp_path / "towns" / f"{number}.txt"
        file.write_text(f"Town Number{number} lies on the river Sarn.")
    async with StubEndpoint() as stub:
        (tmp_path / "clew.toml").write_text(
            f'kb = "{address.full_url}"\ncache = "cache"\n[models]\nmodel = "stub"\n'
            f'base_url = "{stub.base_url}"\n[embed]\nmodel = "e"\nbase_url = "{stub.base_url}"\n'
        )
        words = (sys.executable, "-m", "clew", "worker")
        worker = await asyncio.create_subprocess_exec(*words, cwd=tmp_path, stdout=DEVNULL)
        try:
            adding = await asyncio.create_subprocess_exec(
                *(*words[:3], "add", "towns", "--on", "workers", "--json"),
                cwd=tmp_path,
                stdout=PIPE,
            )
            said, _ = await adding.communicate()
        finally:
            worker.terminate()
            assert await worker.wait() == 0  # it gives back what it holds
        added = json.loads(said)
        assert (added["added"], added["usage"]["calls"]) == (6, 6)
        assert stub.stats.chat_calls == 6


def test_wrong_ways_to_share_work_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Pellworth is a market town.")
    said = clew("add", "a.txt", "--on", "workers", cwd=tmp_path, code=1)
    assert "workers share a database" in said
    assert "is unknown; use workers" in clew("add", "a.txt", "--on", "x", cwd=tmp_path, code=1)
    assert "with --on workers" in clew("add", "a.txt", "--budget", "1", cwd=tmp_path, code=1)
    assert "workers share a database" in clew("worker", cwd=tmp_path, code=1)


def test_a_worker_makes_nothing_where_nothing_is(address: DatabaseAddress, tmp_path: Path) -> None:
    done = clew("worker", "--until-idle", "--kb", address.full_url, "--json", cwd=tmp_path)
    assert json.loads(done) == {"jobs": 0}
    assert "no knowledge base" in clew("status", "--kb", address.full_url, cwd=tmp_path, code=1)
    with psycopg.connect(address.url) as db:
        asked = "SELECT count(*) FROM pg_namespace WHERE nspname = %s"
        assert db.execute(asked, [address.schema]).fetchone() == (0,)


async def test_a_copy_that_was_cut_off_is_continued(
    shared: Settings, address: DatabaseAddress, tmp_path: Path
) -> None:
    folder = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await folder.take(stream(VALLEY))
    there = open_located_store(shared, create=True)

    def cut(stage: str, done: int, total: int) -> None:
        if stage == "copy rows":
            raise StoreError("the connection is lost")

    with pytest.raises(StoreError, match="connection is lost"):
        await copy_store(folder.store, there, cut)
    await there.close()
    (tmp_path / "clew.toml").write_text(f'cache = "{shared.cache}"')
    copy = partial(clew, "copy", "kb", address.full_url, cwd=tmp_path)
    assert "copied" in await asyncio.to_thread(copy)
    there = open_located_store(shared)
    assert await there.find_problems() == []
    assert (await there.counts()).facts == (await folder.store.counts()).facts
    await there.close()
    await folder.close()
    assert "holds a knowledge base already" in await asyncio.to_thread(partial(copy, code=1))


@pytest.mark.slow
async def test_a_build_without_a_worker_says_so(address: DatabaseAddress, tmp_path: Path) -> None:
    (tmp_path / "town.txt").write_text("Pellworth is a market town on the Sarn.")
    (tmp_path / "clew.toml").write_text(f'kb = "{address.full_url}"\ncache = "cache"\n')
    words = (sys.executable, "-m", "clew", "add", "town.txt", "--on", "workers")
    adding = await asyncio.create_subprocess_exec(*words, cwd=tmp_path, stderr=PIPE)
    assert adding.stderr is not None
    async with asyncio.timeout(60):
        said = (await adding.stderr.readuntil(b"starts one")).decode()
    adding.terminate()
    await adding.wait()
    assert "no worker is there" in said
    assert "`clew worker --kb postgresql://" in said
