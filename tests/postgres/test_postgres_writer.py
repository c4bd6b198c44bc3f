"""A build into PostgreSQL by its writer process: equal to one without, whoever is killed."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.store.protocol import COPIED_COLUMNS, CopiedStore
from clew.store.sqlite import writer_process
from clew.store.sqlite.writer_process import WriterProcess
from clew.testing.fakes import HashEmbed
from conftest import document, stream

pytest.importorskip("psycopg", reason="psycopg is not installed")

from clew.stores.opening import open_located_store

pytestmark = pytest.mark.slow  # starts interpreters

DOCUMENTS = [
    document(f"page {n}", f"Town Number{n} lies on the river Sarn. Anton Reeve{n % 7} founded it.")
    for n in range(30)
]


def _tables(store: CopiedStore) -> dict[str, Any]:
    with store.read_rows() as found:
        tables = {name: list(found.rows(name)) for name in COPIED_COLUMNS if name != "memory"}
        return tables | {name: found.arrays[name].tolist() for name in found.arrays}


async def _build(settings: Settings) -> tuple[dict[str, Any], list[str]]:
    store = open_located_store(settings, create=True)
    base = KnowledgeBase(store, settings, HashEmbed())
    await base.take(stream(DOCUMENTS[:20]))
    await base.take(stream(DOCUMENTS[10:]))
    found = _tables(store), await base.verify()
    await base.close()
    return found


@pytest.fixture
def hired(monkeypatch: pytest.MonkeyPatch) -> list[WriterProcess]:
    """Every build has a writer process; the list of those that were started."""
    started: list[WriterProcess] = []
    monkeypatch.setattr(writer_process, "MIN_DOCUMENTS", 1)
    monkeypatch.setattr(writer_process, "count_cores", lambda: 2)
    send = WriterProcess.send_message

    def note(self: WriterProcess, command: str, payload: Any) -> None:
        if self not in started:
            started.append(self)
        send(self, command, payload)

    monkeypatch.setattr(WriterProcess, "send_message", note)
    return started


async def test_a_writer_process_writes_what_one_process_writes(
    shared: Settings, tmp_path: Path, hired: list[WriterProcess]
) -> None:
    built, problems = await _build(shared)
    assert len(hired) == 2
    assert all(one.done for one in hired)
    assert problems == []
    assert built == (await _build(shared.model_copy(update={"kb": tmp_path / "kb"})))[0]


async def test_a_killed_writer_process_loses_nothing(
    shared: Settings, tmp_path: Path, hired: list[WriterProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = WriterProcess.write

    async def killed(self: WriterProcess) -> bool:
        self.begin_write()
        await asyncio.sleep(0.2)  # rows are in its open transaction
        os.kill(self.process.pid, signal.SIGKILL)
        return await write(self)

    monkeypatch.setattr(WriterProcess, "write", killed)
    built, problems = await _build(shared)
    assert len(hired) == 2
    assert not any(one.done for one in hired)
    assert problems == []
    monkeypatch.setattr(writer_process, "MIN_DOCUMENTS", 10**9)
    assert built == (await _build(shared.model_copy(update={"kb": tmp_path / "kb"})))[0]
