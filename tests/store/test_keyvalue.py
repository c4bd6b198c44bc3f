"""Key-value storage on disk: while others write, after failures, and sums of spending."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clew.config import ModelSettings
from clew.engine import KnowledgeBase
from clew.errors import ClewError, Locked
from clew.llm.wrappers import UsageMeter
from clew.models import Models
from clew.store.sqlite import keyvalue
from clew.store.sqlite.store import SqliteStore
from clew.types import Usage


@pytest.fixture(autouse=True)
def _short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    for patience in ("BUSY_TIMEOUT", "FIRST_TIMEOUT", "NEXT_TIMEOUT"):
        monkeypatch.setattr(keyvalue, patience, 0.01)


@contextmanager
def another_writes(folder: Path) -> Iterator[None]:
    """Another process is in the middle of a large transaction."""
    db = sqlite3.connect(folder / "kb.sqlite", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        db.close()


async def test_replies_and_sums_wait_for_a_writer(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, create=True)
    await store.increment("manifest", "spent", 1.0)
    with another_writes(tmp_path):
        for key in "abc":
            await store.set("reply", {key: key.upper()})
            await store.increment("manifest", "spent", 0.5)
        assert await store.get("reply", ["a", "c", "x"]) == {"a": "A", "c": "C"}
        assert await SqliteStore(tmp_path).get("reply", ["a"]) == {}
    await store.set("reply", {"d": "D"})
    again = SqliteStore(tmp_path)
    assert await again.get("reply", list("abcd")) == {key: key.upper() for key in "abcd"}
    assert await again.get("manifest", ["spent"]) == {"spent": "2.5"}


async def test_what_waits_is_written_at_the_end(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, create=True)
    with another_writes(tmp_path):
        await store.set("reply", {"a": "A"})
        await store.increment("manifest", "spent", 0.5)
    await store.close()
    again = SqliteStore(tmp_path)
    assert await again.get("reply", ["a"]) == {"a": "A"}
    assert await again.get("manifest", ["spent"]) == {"spent": "0.5"}


async def test_a_store_that_closes_does_not_wait_for_ever(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, create=True, patience=0.01)
    with another_writes(tmp_path):
        await store.set("reply", {"a": "A"})
        await store.close()
    assert await SqliteStore(tmp_path).get("reply", ["a"]) == {}


async def test_what_others_rely_on_does_not_wait(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, create=True)
    with another_writes(tmp_path), pytest.raises(Locked, match="try again later"):
        await store.set("manifest", {"embedder": "e"})
    assert await store.get("manifest", ["embedder"]) == {}


@pytest.mark.parametrize("busy", [False, True])
async def test_a_text_that_cannot_be_kept_leaves_no_lock(tmp_path: Path, busy: bool) -> None:
    store = SqliteStore(tmp_path, create=True)
    with pytest.raises(UnicodeEncodeError):
        if busy:
            with another_writes(tmp_path):
                await store.set("reply", {"k": "\ud800"})
        await store.set("reply", {"k": "\ud800"})
    other = SqliteStore(tmp_path)
    await other.set("manifest", {"k": "v"})
    await store.set("reply", {"l": "w"})
    assert await other.get("reply", ["k", "l"]) == {"l": "w"}


async def test_all_that_tasks_and_stores_spend_is_booked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyvalue, "FIRST_TIMEOUT", 10.0)
    stores = [SqliteStore(tmp_path, create=True), SqliteStore(tmp_path, create=True)]
    accounts = [Models(ModelSettings(model="m"), store) for store in stores]

    async def pay(account: Models) -> None:
        account.meter.add(Usage(1, money=1.0))
        await account.record_spending()

    await asyncio.gather(*(pay(account) for account in accounts for _ in range(8)))
    for account in accounts:
        await account.record_spending()
    assert await stores[0].get("manifest", ["spent"]) == {"spent": "16.0"}


class _Broken:
    """A memory that cannot be written to, once."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.broken = True

    async def increment(self, kind: str, key: str, amount: float) -> None:
        if self.broken:
            self.broken = False
            raise Locked("later")
        await self.store.increment(kind, key, amount)


async def test_what_could_not_be_booked_is_booked_the_next_time(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, create=True)
    account = Models(ModelSettings(model="m"), _Broken(store), UsageMeter())  # type: ignore[arg-type]
    account.meter.add(Usage(1, money=2.0))
    with pytest.raises(Locked):
        await account.record_spending()
    await account.record_spending()
    assert await store.get("manifest", ["spent"]) == {"spent": "2.0"}


async def test_a_question_that_fails_is_paid_for_too(
    valley: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> None:
        valley.models.meter.add(Usage(1, money=0.5))
        raise ClewError("no")

    monkeypatch.setattr("clew.engine.answer_with", fails)
    with pytest.raises(ClewError):
        await valley.ask("Who designed Marrow Bridge?")
    assert (await valley.status())["spent"] == 0.5
