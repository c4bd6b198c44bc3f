"""Descriptions keep their vectors through edits, lost arrays and stopped commands."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from in_process import clew

from clew.config import Settings
from clew.engine import KnowledgeBase, open_store
from clew.errors import StoreError
from clew.index.derive import derive_arrays
from clew.llm.embed import EmbedRole, Vectors
from clew.store.protocol import Change, Counts, DeriveArrays, make_removal
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.testing.stub_endpoint import StubEndpoint
from conftest import one_in_three

ROWS = (
    {
        "id": "a",
        "name": "Ilse Brandvik",
        "type": "person",
        "description": "a painter of cathedral windows",
    },
    {
        "id": "b",
        "name": "Oda Falk",
        "type": "person",
        "description": "a keeper of bees on the northern isles",
    },
    {"head": "a", "relation": "taught", "tail": "b"},
)
QUESTION = "painter of cathedral windows"
DETAILED = "(person): "  # only in the text of an entity with its description


class Stopped(BaseException):
    """The process ends here."""


class StoppingEmbed(HashEmbed):
    """Stops where a description is embedded together with its name, as a kill would."""

    stops = False

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        if self.stops and any(DETAILED in text for text in texts):
            raise Stopped
        return await super().__call__(texts, role=role)


class StoppingStore(SqliteStore):
    """Stops before a generation is written."""

    async def write(self, change: Change, derive: DeriveArrays) -> Counts:
        raise Stopped


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "g.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    (tmp_path / "x.md").write_text("# X\n\nIlse Brandvik lives in Vessen.", encoding="utf-8")
    return tmp_path


@pytest.fixture
async def stub(here: Path) -> AsyncIterator[StubEndpoint]:
    async with StubEndpoint() as running:
        (here / "clew.toml").write_text(
            f'[embed]\nmodel = "stub"\nbase_url = "{running.base_url}"\n', encoding="utf-8"
        )
        yield running


async def call(here: Path, *words: str, code: int = 0) -> str:
    return await asyncio.to_thread(partial(clew, *words, cwd=here, code=code))


async def search(here: Path) -> list[dict[str, object]]:
    told = await call(here, "search", QUESTION, "--recipe", "lightrag", "--json")
    found: list[dict[str, object]] = json.loads(told)["entities"]
    return [{key: one[key] for key in ("name", "score")} for one in found]


async def open_kb(folder: Path) -> KnowledgeBase:
    settings = Settings(kb=folder / "kb", extractor="offline", wait=0.2)
    return KnowledgeBase(await open_store(settings, create=True), settings, StoppingEmbed())


async def test_removing_a_document_keeps_the_vectors_of_the_rest(
    here: Path, stub: StubEndpoint
) -> None:
    await call(here, "import", "g.jsonl")
    fresh = await search(here)
    assert fresh[0]["name"] == "Ilse Brandvik"
    await call(here, "add", "x.md", "--extractor", "offline")
    await call(here, "rm", "x.md")
    assert "OK" in await call(here, "verify")
    assert await search(here) == fresh


async def test_a_join_on_the_command_line_embeds_the_merged_description(
    here: Path, stub: StubEndpoint
) -> None:
    await call(here, "import", "g.jsonl")
    before = stub.stats.texts_embedded
    await call(here, "join", "Ilse Brandvik", "Oda Falk")
    assert stub.stats.texts_embedded > before
    assert json.loads(await call(here, "status", "--json"))["pending"] == 0
    assert "OK" in await call(here, "verify")


async def test_lost_arrays_find_the_vectors_again_without_an_embedder(
    here: Path, stub: StubEndpoint
) -> None:
    await call(here, "import", "g.jsonl")
    fresh, asked = await search(here), stub.stats.texts_embedded
    shutil.rmtree(here / "kb" / "arrays")
    assert "OK" in await call(here, "verify")
    assert stub.stats.texts_embedded == asked
    assert await search(here) == fresh


@pytest.mark.parametrize("command", ["import", "merge"])
async def test_the_same_command_finishes_what_was_stopped(here: Path, command: str) -> None:
    async def work() -> object:
        if command == "import":
            return await kb.import_graph(here / "g.jsonl")
        return await kb.identity.merge("Oda Falk", "Ilse Brandvik")

    kb = await open_kb(here)
    assert isinstance(kb.embed, StoppingEmbed)
    if command == "merge":
        await kb.import_graph(here / "g.jsonl")
    kb.embed.stops = True
    with pytest.raises(Stopped):
        await work()
    await kb.close()

    kb = await open_kb(here)
    assert "no vector yet" in (await kb.verify())[-1]
    if command == "import":
        await work()
    else:
        with pytest.raises(StoreError, match="already one entity"):
            await work()
    await check_complete(kb)


async def test_a_removal_stopped_after_its_write_is_finished_by_the_next(here: Path) -> None:
    kb = await open_kb(here)
    await kb.import_graph(here / "g.jsonl")
    await kb.add([here / "x.md"])
    await kb.store.write(make_removal([str(here / "x.md")]), derive_arrays)
    assert "no vector yet" in (await kb.verify())[-1]
    with pytest.raises(StoreError, match="no document"):
        await kb.remove([str(here / "x.md")])
    await check_complete(kb)


async def check_complete(kb: KnowledgeBase) -> None:
    assert (await kb.status())["pending"] == 0
    assert await kb.verify() == []
    await kb.close()


@pytest.mark.parametrize("command", one_in_three(["merge", "split", "undo"]))
async def test_a_decision_that_was_not_applied_is_not_stored(here: Path, command: str) -> None:
    async def work() -> object:
        if command == "split":
            return await kb.identity.split("Oda Falk")
        return await getattr(kb.identity, command)("Oda Falk", "Ilse Brandvik")

    kb = await open_kb(here)
    await kb.import_graph(here / "g.jsonl")
    if command != "merge":
        await kb.identity.merge("Oda Falk", "Ilse Brandvik")
    before = (await kb.store.counts()).entities
    await kb.close()
    kb = KnowledgeBase(StoppingStore(here / "kb"), kb.settings, HashEmbed())
    with pytest.raises(Stopped):
        await work()
    await kb.close()

    kb = await open_kb(here)
    assert (await kb.store.counts()).entities == before
    await work()
    assert (await kb.store.counts()).entities == (before - 1 if command == "merge" else before + 1)
    await check_complete(kb)
