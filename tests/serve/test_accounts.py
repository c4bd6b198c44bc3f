"""The budget of a key: what is sent is charged, all that is left can be used, and no more."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from serving import fill, make_key, make_server, running

from clew.config import ModelSettings, Price, Settings
from clew.engine import KnowledgeBase
from clew.llm.budget import BudgetExceeded, UsageBudget
from clew.llm.chat import Reply, Request, text_request
from clew.serve.core.accounts import KeyAccount
from clew.serve.core.database import ServerDatabase
from clew.serve.core.keys import Key, KeyLimits, KeyStore
from clew.testing.hashed_kb import open_hashed
from clew.testing.stub_endpoint import StubEndpoint

PRICES = {"stub": Price(prompt=1000.0, completion=1000.0)}


def make_account(folder: Path, **limits: Any) -> tuple[KeyStore, Key]:
    """A key with limits, in a database of its own."""
    keys = KeyStore(ServerDatabase(folder))
    key, _ = keys.create("test", {"*": "write"}, limits=KeyLimits(**limits))
    return keys, key


@asynccontextmanager
async def paid_base(
    folder: Path, stub: StubEndpoint, keys: KeyStore, key: Key
) -> AsyncIterator[KnowledgeBase]:
    """A knowledge base whose calls a key pays for."""
    models = ModelSettings(model="stub", base_url=stub.base_url, prices=PRICES)
    base = await open_hashed(Settings(kb=folder / "kb", models=models), True)
    base.models.budget = UsageBudget(account=KeyAccount(keys, key))
    yield base
    await base.close()


async def ask_at_once(base: KnowledgeBase, most: int, max_tokens: int | None = None) -> None:
    """Send different requests at once, as a build does: the first that fails cancels the rest."""
    chat = base.models.chat("extract")
    async with asyncio.TaskGroup() as group:
        for number in range(most):
            request = Request(text_request(f"Prompt {number}").messages, max_tokens=max_tokens)
            group.create_task(chat(request))


async def test_all_calls_of_a_budget_are_made_and_their_replies_kept(tmp_path: Path) -> None:
    keys, key = make_account(tmp_path / "state", calls_per_day=4)
    async with StubEndpoint(latency=0.05) as stub, paid_base(tmp_path, stub, keys, key) as base:
        with pytest.raises(BaseExceptionGroup) as raised:
            await ask_at_once(base, 12)
        first = raised.value.exceptions[0]
        assert isinstance(first, BudgetExceeded) and "its 4 model calls for today" in str(first)
        assert stub.stats.chat_calls == 4 and keys.spent_today(key.id)[0] == 4
        base.models.budget = None
        await ask_at_once(base, 12)
        assert stub.stats.chat_calls == 12, "the replies that were paid were not kept"


async def test_a_call_is_charged_before_its_reply_comes_and_stays_charged(tmp_path: Path) -> None:
    keys, key = make_account(tmp_path / "state")
    async with StubEndpoint(latency=30) as stub, paid_base(tmp_path, stub, keys, key) as base:
        asking = asyncio.ensure_future(base.models.chat("extract")(text_request("Hello")))
        while not stub.stats.chat_calls:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert keys.spent_today(key.id)[0] == 1  # as a process that is killed now leaves it
        asking.cancel()
        await asyncio.wait({asking})
        calls, money = keys.spent_today(key.id)
        assert calls == 1 and money > 0


async def test_money_is_reserved_before_a_call_is_sent(tmp_path: Path) -> None:
    keys, key = make_account(tmp_path / "state", money_per_day=1.0)
    async with StubEndpoint(latency=0.02) as stub, paid_base(tmp_path, stub, keys, key) as base:
        with pytest.raises(BaseExceptionGroup) as raised:
            await ask_at_once(base, 120, max_tokens=400)
        calls, money = keys.spent_today(key.id)
        assert 0 < money <= 1.0
        # More than the two whose reservations fit at once: what a call leaves is used by others.
        assert calls == stub.stats.chat_calls > 2
        assert "of its 1 for today" in str(raised.value.exceptions[0])


async def test_a_question_uses_the_last_call_and_the_next_is_refused(tmp_path: Path) -> None:
    await asyncio.to_thread(fill, tmp_path / "valley")
    async with StubEndpoint() as stub:
        models = ModelSettings(model="stub", base_url=stub.base_url, prices=PRICES)
        server = make_server(tmp_path, models=models)
        last = make_key(server, {"valley": "read"}, limits=KeyLimits(calls_per_day=1))
        poor = make_key(server, {"valley": "read"}, limits=KeyLimits(money_per_day=1e-6))

        def check() -> None:
            with running(server) as client:

                def ask(key: dict[str, str], number: int) -> Any:
                    body = {"question": f"Who designed the Marrow Bridge {number}?"}
                    return client.post("/workspaces/valley/ask", json=body, headers=key)

                assert ask(last, 1).json()["usage"]["calls"] == 1
                before = stub.stats.chat_calls
                refused = [ask(last, 2), ask(poor, 3)]
                assert [reply.status_code for reply in refused] == [429, 429]
                assert all(int(reply.headers["retry-after"]) > 1 for reply in refused)
                assert "another call may cost" in refused[1].json()["detail"]
                assert stub.stats.chat_calls == before

        await asyncio.to_thread(check)


class RefusingAccount:
    """Pays for nothing."""

    async def charge(self, *_: object) -> None:
        """Refuse."""
        raise BudgetExceeded("nothing left")

    async def settle(self, *_: object) -> None:
        """Never called."""


async def test_a_budget_that_ends_does_not_end_the_same_question_of_others(tmp_path: Path) -> None:
    async with StubEndpoint() as stub:
        models = ModelSettings(model="stub", base_url=stub.base_url)
        base = await open_hashed(Settings(kb=tmp_path / "kb", models=models), True)
        chat = base.models.chat("extract")
        request = text_request("Hello")
        poor = Request(request.messages, account=RefusingAccount())
        first, second = await asyncio.gather(chat(poor), chat(request), return_exceptions=True)
        assert isinstance(first, BudgetExceeded) and isinstance(second, Reply)
        await base.close()
