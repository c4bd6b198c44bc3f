"""The scribe writes what the caller would have written, and the caller does if it cannot."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import Locked
from clew.ingest import build
from clew.store.sqlite import writer_process as scribes
from clew.store.sqlite.store import SqliteStore
from clew.store.sqlite.writer_process import WriterProcess, decode_addition, encode_addition
from clew.store.write_lock import WriterLock
from clew.testing.contracts import read_content
from clew.testing.fakes import HashEmbed
from clew.text.unicode import digest
from clew.types import Document

COUNT = 60


def _documents(metadata: dict[str, object] | None = None) -> list[Document]:
    texts = [
        f"Village {n} lies near Town {n % 7}. Town {n % 7} trades with Öland since {1500 + n}."
        for n in range(COUNT)
    ]
    return [
        Document(digest(text), text, f"Village {n}", (f"d{n}",), metadata or {})
        for n, text in enumerate(texts)
    ]


async def _stream(many: list[Document]) -> AsyncIterator[Document]:
    for one in many:
        yield one


async def _built(folder: Path, many: list[Document], embed: HashEmbed | None = None) -> SqliteStore:
    store = SqliteStore(folder, create=True)
    base = KnowledgeBase(store, Settings(kb=folder), embed or HashEmbed())
    added = await base.take(_stream(many))
    assert added.counts.documents == len(many)
    assert await base.verify() == []
    return store


@pytest.fixture
def hired(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Let a scribe be hired for any number of documents, and note what became of it."""
    seen = SimpleNamespace(scribes=[], written=[])
    monkeypatch.setattr(scribes, "MIN_DOCUMENTS", 1)
    monkeypatch.setattr(scribes, "count_cores", lambda: 2)
    write = WriterProcess.write

    async def noted(self: WriterProcess) -> bool:
        seen.scribes.append(self)
        seen.written.append(await write(self))
        return bool(seen.written[-1])

    monkeypatch.setattr(WriterProcess, "write", noted)
    return seen


async def test_the_scribe_writes_the_same_knowledge_base(
    tmp_path: Path, hired: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_scribe = await _built(tmp_path / "scribe", _documents({"year": 1911}))
    assert hired.written == [True]
    assert hired.scribes[0].process.returncode is not None
    monkeypatch.setattr(scribes, "MIN_DOCUMENTS", COUNT + 1)
    alone = await _built(tmp_path / "alone", _documents({"year": 1911}))
    assert len(hired.written) == 1
    assert await read_content(by_scribe) == await read_content(alone)
    async with by_scribe.snapshot() as one, alone.snapshot() as other:
        assert set(one.arrays) == set(other.arrays)
        for name, array in one.arrays.items():
            assert np.array_equal(array, other.arrays[name]), name


@pytest.mark.slow  # three processes; one: test_the_scribe_writes_the_same_knowledge_base
async def test_more_is_added_to_what_is_there(tmp_path: Path, hired: SimpleNamespace) -> None:
    many = _documents()
    store = await _built(tmp_path / "parts", many[: COUNT // 2])
    base = KnowledgeBase(store, Settings(kb=store.folder), HashEmbed())
    await base.take(_stream(many[COUNT // 3 :]))
    assert hired.written == [True, True]
    assert await read_content(store) == await read_content(await _built(tmp_path / "whole", many))


async def test_a_scribe_that_dies_is_not_missed(
    tmp_path: Path, hired: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, killed = WriterProcess.send, list[int]()

    def killing(self: WriterProcess, addition: object) -> None:
        take(self, addition)  # type: ignore[arg-type]
        if not killed:
            killed.append(self.process.pid)
            os.kill(self.process.pid, signal.SIGKILL)

    monkeypatch.setattr(WriterProcess, "send", killing)
    store = await _built(tmp_path / "kb", _documents())
    assert hired.written == [False]
    assert (await store.counts()).generation == 1


async def test_what_cannot_travel_is_written_here(tmp_path: Path, hired: SimpleNamespace) -> None:
    class Year(int):
        """Plain enough for JSON, too special for a pipe."""

    await _built(tmp_path / "kb", _documents({"year": Year(1911)}))
    assert hired.written == [False]


async def test_without_a_second_interpreter_nothing_is_different(
    tmp_path: Path, hired: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scribes.sys, "executable", "/nowhere/python")
    await _built(tmp_path / "kb", _documents())
    assert hired.written == []


async def test_stopped_while_the_scribe_writes_nothing_is_half_done(
    tmp_path: Path, hired: SimpleNamespace
) -> None:
    class Hanging(HashEmbed):
        """Embeds one block, then thinks for ever."""

        async def __call__(self, texts, /, *, role="passage"):  # type: ignore[no-untyped-def]
            if len(texts) > 1:
                stuck.set()
                await asyncio.sleep(60)
            return await super().__call__(texts, role=role)

    stuck = asyncio.Event()
    folder = tmp_path / "kb"
    store = SqliteStore(folder, create=True)
    base = KnowledgeBase(store, Settings(kb=folder), Hanging())
    work = asyncio.create_task(base.take(_stream(_documents())))
    await stuck.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (await store.counts()).documents == 0
    await _built(folder, _documents())


async def test_nobody_else_writes_while_the_scribe_lives(
    tmp_path: Path, hired: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[WriterLock] = []
    take = WriterLock.__aenter__

    async def taken(self: WriterLock) -> WriterLock:
        held.append(self)
        return await take(self)

    monkeypatch.setattr(WriterLock, "__aenter__", taken)
    store = SqliteStore(tmp_path / "kb", create=True)
    async with (
        store.write_lock(),
        scribes.open_writer_process(store, build.derive_arrays, 10**6) as scribe,
    ):
        assert scribe is not None
        [mine] = held
        mine.__exit__(None, None, None)  # as if the caller had been killed
        with pytest.raises(Locked):
            WriterLock(tmp_path / "kb" / "writer.lock", patience=0).__enter__()
    with WriterLock(tmp_path / "kb" / "writer.lock", patience=0):
        pass


def test_an_addition_travels_whole() -> None:
    from clew.store.protocol import Addition
    from clew.types import Chunk, Extraction, RawEntity, RawFact

    entity = RawEntity("A", "t", "d", ((0, 1),), 0.5, ("B",), {"k": "v"})
    fact = RawFact("A is B", (("A", "head"), ("B", "tail")), "is", ("k",), "d", 0.3, (0, 6))
    one = Addition(
        Document("i", "A is B", "T", ("n", "m"), {"k": [1, None]}, (0, 3)),
        (Chunk("c", "i", 0, 6, "A is B", "T", "h", 2),),
        (Extraction((entity,), (fact,), "why", True),),
        "stamp",
    )
    assert decode_addition(encode_addition(one)) == one
