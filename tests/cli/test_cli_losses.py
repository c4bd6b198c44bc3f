"""What was lost and cannot be derived is told; only a choice of the user makes it the truth."""

import asyncio
import json
import resource
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import chdir, closing
from functools import partial
from pathlib import Path

import pytest
from in_process import clew
from typer.testing import CliRunner

from clew.cli.app import app
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import StoreError
from clew.serve.core.label_views import find_visible, make_view
from clew.store.sqlite.store import SqliteStore
from clew.testing.stub_endpoint import StubEndpoint


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Path]:
    """A folder with a knowledge base of one document."""
    async with StubEndpoint() as stub:
        (tmp_path / "clew.toml").write_text(
            f'extractor = "offline"\n[embed]\nmodel = "one"\nbase_url = "{stub.base_url}"\n'
        )
        await add(tmp_path, "x.md", "# X\n\nIlse Brandvik lives in Vessen with Oda Falk.")
        yield tmp_path


async def call(here: Path, *words: str, code: int = 0) -> str:
    return await asyncio.to_thread(partial(clew, *words, cwd=here, code=code))


async def add(here: Path, name: str, text: str) -> None:
    (here / name).write_text(text, encoding="utf-8")
    await call(here, "add", name)


def list_arrays(here: Path) -> list[str]:
    return sorted(str(path) for path in (here / "kb" / "arrays").rglob("*"))


@pytest.mark.parametrize("trees", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_verify_keeps_the_evidence_of_lost_writes(here: Path, trees: bool) -> None:
    if trees:
        await call(here, "tree", "--grow", "--by", "dual")
    shutil.copy(here / "kb" / "kb.sqlite", here / "old")
    await add(here, "y.md", "# Y\n\nOda Falk lives in Hallowmere.")
    await add(here, "z.md", "# Z\n\nRune Falk lives in Oster.")
    for log in (here / "kb").glob("kb.sqlite-*"):
        log.unlink()
    shutil.copy(here / "old", here / "kb" / "kb.sqlite")
    before = list_arrays(here)
    await call(here, "verify", code=1)
    assert "was written" in await call(here, "search", "Falk", code=1)
    assert list_arrays(here) == before
    told = json.loads(await call(here, "verify", "--repair", "--json"))
    assert told["ok"]
    assert "was written" in told["accepted"][0]
    assert "OK" in await call(here, "verify")


@pytest.mark.parametrize(
    "name", ["tree_level", pytest.param("tree_entities_columns", marks=pytest.mark.slow)]
)
async def test_a_recipe_says_that_its_tree_was_damaged(here: Path, name: str) -> None:
    await call(here, "tree", "--grow", "--by", "dual")
    question = ("search", "Where does Oda Falk live?", "--recipe", "youtu")
    assert json.loads(await call(here, *question, "--json"))["note"] == ""
    path = max((here / "kb" / "arrays").glob(f"*/{name}.npy"), key=lambda p: int(p.parent.name))
    path.write_bytes(path.read_bytes()[:-1])
    assert "clew tree --grow" in json.loads(await call(here, *question, "--json"))["note"]
    assert "no communities were searched" in await call(here, *question)
    await call(here, "verify", "--repair")
    assert "no communities" not in await call(here, *question)


@pytest.mark.parametrize(
    "kind",
    [
        "label",
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in ("community", "resolution", "manifest", "arrival")
        ),
    ],
)
async def test_lost_values_are_told_by_kind(here: Path, kind: str) -> None:
    await call(here, "label", "x.md", "--label", "team=legal")
    await call(here, "tree", "--grow")
    await call(here, "join", "Ilse Brandvik", "Oda Falk")
    assert "OK" in await call(here, "verify")
    with closing(sqlite3.connect(here / "kb" / "kb.sqlite")) as db, db:
        assert db.execute("DELETE FROM memory WHERE kind = ?", (kind,)).rowcount
    await call(here, "verify", code=1)
    told = json.loads(await call(here, "verify", "--repair", "--json"))
    assert f"kind {kind!r}" in told["accepted"][0]
    assert "OK" in await call(here, "verify")


@pytest.mark.parametrize("kind", ["manifest", pytest.param("resolution", marks=pytest.mark.slow)])
async def test_lost_settings_are_noticed_before_an_answer(here: Path, kind: str) -> None:
    await call(here, "join", "Ilse Brandvik", "Oda Falk")
    with closing(sqlite3.connect(here / "kb" / "kb.sqlite")) as db, db:
        assert db.execute("DELETE FROM memory WHERE kind = ?", (kind,)).rowcount
    assert f"kind {kind!r}" in await call(here, "search", "Where does Oda Falk live?", code=1)
    await call(here, "verify", "--repair")
    await call(here, "search", "Where does Oda Falk live?")


@pytest.mark.parametrize("copies", [False, True])
async def test_a_lost_label_never_makes_a_document_public(here: Path, copies: bool) -> None:
    await call(here, "label", "x.md", "--label", "team=legal")
    lost = "kind = 'label'" if copies else "kind = 'label' AND key = 'x.md'"
    with closing(sqlite3.connect(here / "kb" / "kb.sqlite")) as db, db:
        assert db.execute(f"DELETE FROM memory WHERE {lost}").rowcount  # noqa: S608
    base = KnowledgeBase(SqliteStore(here / "kb"), Settings(kb=here / "kb"), None)
    with pytest.raises(StoreError, match="unknown who may see it"):
        await find_visible(base, ["team=sales"])
    told = json.loads(await call(here, "verify", "--repair", "--json"))
    assert (told["ok"], told["hidden"]) == (True, ["x.md"] if copies else [])
    assert (await find_visible(base, ["team=sales"])).hidden == ("x.md",)
    legal = (await find_visible(base, ["team=legal"])).hidden
    assert legal == (("x.md",) if copies else ())  # its label is unknown, or left in its copy
    await call(here, "label", "x.md", "--label", "team=legal")
    assert (await find_visible(base, ["team=legal"])).hidden == ()
    assert (await find_visible(base, ["team=sales"])).hidden == ("x.md",)
    await base.close()


async def test_a_copy_for_readers_has_sums_of_its_own(here: Path) -> None:
    await add(here, "y.md", "# Y\n\nOda Falk lives in Hallowmere.")
    await call(here, "label", "x.md", "--label", "team=legal")
    base = KnowledgeBase(SqliteStore(here / "kb"), Settings(kb=here / "kb"), None)
    copy = await make_view(base, await find_visible(base, []), here / "views")
    await base.close()
    store = SqliteStore(copy)
    assert (await store.find_losses(), list(await store.sources())) == ([], ["y.md"])
    await store.close()
    with closing(sqlite3.connect(copy / "kb.sqlite")) as db, db:
        assert db.execute("DELETE FROM memory WHERE key = 'embedder'").rowcount
    with pytest.raises(StoreError, match="'manifest'"):
        SqliteStore(copy)


async def test_a_backup_that_lost_values_is_not_restored(here: Path) -> None:
    await call(here, "label", "x.md", "--label", "team=legal")
    await call(here, "backup", "copy")
    with closing(sqlite3.connect(here / "copy")) as db, db:
        assert db.execute("DELETE FROM memory WHERE kind = 'label'").rowcount
    before = list_arrays(here)
    assert "is damaged" in await call(here, "restore", "copy", code=1)
    assert list_arrays(here) == before
    assert "OK" in await call(here, "verify")


async def test_a_full_disk_can_be_read(here: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        found = await call(here, "search", "Where does Oda Falk live?", "--json")
        held = await call(here, "status", "--json")
        told = await call(here, "verify", "--json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert json.loads(found)["chunks"]
    assert json.loads(held)["documents"] == 1
    assert json.loads(told)["ok"]
    await add(here, "y.md", "# Y\n\nOda Falk lives in Hallowmere.")


async def test_what_cannot_be_derived_again_is_named_with_its_remedy(here: Path) -> None:
    await call(here, "backup", "b.sqlite")
    with closing(sqlite3.connect(here / "kb" / "kb.sqlite")) as db:
        db.execute("UPDATE sayings SET text = 'Mallory was here.'")
        db.execute("UPDATE chunks SET text = text || '!'")
        db.commit()
    said = await asyncio.to_thread(run_clew, here, "verify")
    assert "clew restore FILE" in said
    said = await asyncio.to_thread(run_clew, here, "verify", "--repair")
    assert "chunks with a wrong checksum" in said
    assert "cannot be derived again; restore a backup: `clew restore FILE`" in said
    assert "verify --repair" not in said
    for words in (["search", "Vessen"], ["ask", "Where does Ilse Brandvik live?"]):
        assert "`clew restore FILE`" in await call(here, *words, code=1)
    await call(here, "restore", "b.sqlite")
    assert "OK" in await call(here, "verify")


def run_clew(here: Path, *words: str) -> str:
    """Run a command that fails; return what it prints."""
    with chdir(here):
        done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 1
    return " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize("arrays", [True, pytest.param(False, marks=pytest.mark.slow)])
async def test_a_database_that_is_gone_is_told_alike_by_every_command(
    here: Path, arrays: bool
) -> None:
    await call(here, "backup", "b.sqlite")
    for file in (here / "kb").glob("kb.sqlite*"):
        file.unlink()
    if not arrays:
        shutil.rmtree(here / "kb" / "arrays")
    for words in (["search", "x"], ["status"], ["verify"], ["verify", "--repair"], ["add", "x.md"]):
        said = await call(here, *words, code=1)
        assert "missing or empty" in said
        assert "`clew restore FILE` restores a backup, or remove the folder" in said
    await call(here, "restore", "b.sqlite")
    assert "OK" in await call(here, "verify")


@pytest.mark.parametrize(
    "key",
    [*("arrays", "rows of manifest"), pytest.param("rows of arrival", marks=pytest.mark.slow)],
)
async def test_a_lost_row_of_the_checks_themselves_is_told(here: Path, key: str) -> None:
    with closing(sqlite3.connect(here / "kb" / "kb.sqlite")) as db, db:
        assert db.execute("DELETE FROM meta WHERE key = ?", (key,)).rowcount
    assert "table `meta`" in await call(here, "search", "Falk", code=1)
    await call(here, "verify", code=1)
    assert "accepted" in await call(here, "verify", "--repair")
    assert "OK" in await call(here, "verify")
    await add(here, "y.md", "# Y\n\nOda Falk lives in Hallowmere.")
    assert "OK" in await call(here, "verify")


async def test_an_export_without_its_lost_summaries_is_refused(here: Path) -> None:
    await call(here, "tree", "--grow")
    with closing(sqlite3.connect(here / "kb" / "kb.sqlite")) as db, db:
        assert db.execute("DELETE FROM memory WHERE kind = 'community'").rowcount
    assert "'community' were written" in await call(here, "export", "out.jsonl", code=1)
    assert "'community' were written" in await call(here, "tree", code=1)
    await call(here, "verify", "--repair")
    await call(here, "export", "out.jsonl")


async def test_lost_counts_of_keys_are_told_and_cost_no_write(here: Path) -> None:
    with closing(sqlite3.connect(here / "kb/kb.sqlite")) as db:
        db.execute("DELETE FROM sqlite_sequence")
        db.commit()
    await call(here, "verify", code=1)
    await add(here, "y.md", "# Y\n\nOda Falk was born in Marlow.")
    await call(here, "verify", "--repair")
    assert "OK" in await call(here, "verify")
