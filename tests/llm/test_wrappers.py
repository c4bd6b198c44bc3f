import asyncio
import sys
import threading
from dataclasses import replace
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.config import Price
from clew.errors import StoreError
from clew.llm.cache import DictCache, cache_key, decode_reply, encode_reply
from clew.llm.chat import EndpointError, Message, Reply, Request, ResponseFormat, text_request
from clew.llm.wrappers import CachedChat, MeteredChat, TracedChat, UsageMeter
from clew.testing.fakes import ScriptedChat
from clew.types import Usage


class SlowCache(DictCache):
    """Counts its visits and takes its time."""

    def __init__(self):
        super().__init__()
        self.recalls = 0
        self.remembers = 0

    async def get(self, keys, /):
        self.recalls += 1
        await asyncio.sleep(0.001)
        return await super().get(keys)

    async def set(self, items, /):
        self.remembers += 1
        await asyncio.sleep(0.001)
        await super().set(items)


def echo(request):
    return "re: " + request.messages[-1].content


async def test_the_second_time_is_free():
    inner, cache = ScriptedChat(echo), DictCache()
    chat = CachedChat(inner, cache)
    first = await chat(text_request("q"))
    again = await chat(text_request("q"))
    elsewhere = await CachedChat(inner, cache)(text_request("q"))
    assert first.text == again.text == elsewhere.text == "re: q"
    assert first.usage.calls == 1
    assert again.usage == elsewhere.usage == Usage(cached_calls=1)
    assert len(inner.requests) == 1


BASE = Request(
    (Message("user", "q"),), response_format=ResponseFormat("schema", "s", {"type": "object"})
)


@pytest.mark.parametrize(
    "other",
    [
        replace(BASE, messages=(Message("user", "q "),)),
        replace(BASE, messages=(Message("system", "q"),)),
        replace(BASE, messages=(Message("user", ""), Message("user", "q"))),
        replace(BASE, temperature=0.1),
        replace(BASE, max_tokens=5),
        replace(BASE, stop=("x",)),
        replace(BASE, seed=1),
        replace(BASE, sample=1),
        replace(BASE, response_format=None),
        replace(BASE, response_format=ResponseFormat("tool", "s", {"type": "object"})),
        replace(BASE, response_format=ResponseFormat("schema", "s", {"type": "array"})),
    ],
)
def test_everything_that_matters_is_in_the_key(other):
    assert cache_key("m", BASE) != cache_key("m", other)
    assert cache_key("m", BASE) != cache_key("n", BASE)


def test_what_does_not_matter_is_not_in_the_key():
    proven = replace(BASE, response_format=replace(BASE.response_format, proven=True))
    assert cache_key("m", BASE) == cache_key("m", proven)


@given(st.text(), st.sampled_from(["stop", "length", "refusal"]), st.text())
def test_a_reply_comes_back_as_it_went_in(text, finish, model):
    back = decode_reply(encode_reply(Reply(text, Usage(1, 2, 3), finish, model)))
    assert (back.text, back.finish, back.model) == (text, finish, model)


async def test_the_same_question_at_the_same_time_is_asked_once():
    inner = ScriptedChat(echo)

    async def slow(request, /, on_text=None):
        await asyncio.sleep(0.01)
        return await inner(request, on_text)

    slow.name = "slow"
    chat = CachedChat(slow, DictCache())
    replies = await asyncio.gather(*[chat(text_request("q")) for _ in range(20)])
    assert len(inner.requests) == 1
    assert sum((reply.usage for reply in replies), Usage()).calls == 1
    assert sum((reply.usage for reply in replies), Usage()).cached_calls == 19


async def test_a_failure_is_shared_but_not_remembered():
    inner = ScriptedChat([EndpointError("down."), "up"])
    chat = CachedChat(inner, DictCache())
    both = await asyncio.gather(
        chat(text_request("q")), chat(text_request("q")), return_exceptions=True
    )
    assert [str(error) for error in both] == ["down.", "down."]
    assert (await chat(text_request("q"))).text == "up"


async def test_when_the_first_asker_is_cancelled_the_next_takes_over():
    started = 0
    begun = asyncio.Event()

    async def slow(request, /, on_text=None):
        nonlocal started
        started += 1
        begun.set()
        if started == 1:
            await asyncio.Event().wait()  # for as long as it is left alone
        return Reply("done", Usage(1))

    slow.name = "slow"
    chat = CachedChat(slow, DictCache())
    first, second = (asyncio.ensure_future(chat(text_request("q"))) for _ in range(2))
    await begun.wait()
    await asyncio.sleep(0.005)
    assert started == 1
    first.cancel()
    assert (await second).text == "done"
    assert started == 2


async def test_silence_is_not_remembered():
    chat = CachedChat(ScriptedChat(["", "words"]), DictCache())
    assert (await chat(text_request("q"))).text == ""
    assert (await chat(text_request("q"))).text == "words"


async def test_a_busy_cache_is_visited_with_many_keys_at_once():
    cache = SlowCache()
    chat = CachedChat(ScriptedChat(echo), cache)
    replies = await asyncio.gather(*[chat(text_request(str(n))) for n in range(100)])
    assert [reply.text for reply in replies] == [f"re: {n}" for n in range(100)]
    assert len(cache.items) == 100
    assert cache.recalls < 20
    assert cache.remembers < 20


async def test_a_cache_that_fails_is_not_passed_over_in_silence():
    class Full(DictCache):
        async def set(self, items, /):
            raise StoreError("the disk is full.")

    chat = CachedChat(ScriptedChat(echo), Full())
    with pytest.raises(StoreError, match="full"):
        await chat(text_request("q"))


async def test_a_known_reply_is_heard_too():
    chat = CachedChat(ScriptedChat(echo), DictCache())
    for _ in range(2):
        heard = []
        await chat(text_request("q"), heard.append)
        assert "".join(heard) == "re: q"


def test_a_cached_chat_serves_several_event_loops():
    chat = CachedChat(ScriptedChat(echo), SlowCache())
    for _ in range(2):
        with asyncio.Runner() as runner:
            assert runner.run(chat(text_request("q"))).text == "re: q"


async def test_money_is_counted():
    inner = ScriptedChat([Reply("a", Usage(1, 1_000_000, 500_000))])
    meter = UsageMeter()
    reply = await MeteredChat(inner, meter, Price(prompt=2.0, completion=8.0))(text_request("q"))
    assert reply.usage.money == meter.total.money == 6.0


def test_bills_from_many_threads_add_up():
    meter = UsageMeter()

    def spend():
        for _ in range(1000):
            meter.add(Usage(calls=1, money=0.5))

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (meter.total.calls, meter.total.money) == (8000, 4000.0)


class Span:
    def __init__(self):
        self.attributes = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended = True

    def set_attribute(self, key, value):
        self.attributes[key] = value


async def test_spans_are_written_where_opentelemetry_is_installed(monkeypatch):
    span = Span()
    trace = ModuleType("opentelemetry.trace")
    trace.get_tracer = lambda name: type("T", (), {"start_as_current_span": lambda *_: span})()
    monkeypatch.setitem(sys.modules, "opentelemetry", ModuleType("opentelemetry"))
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", trace)
    inner = ScriptedChat([Reply("a", Usage(1, 30, 5))])
    await TracedChat(inner)(text_request("q"))
    assert span.ended
    assert span.attributes["gen_ai.request.model"] == inner.name
    assert span.attributes["gen_ai.usage.output_tokens"] == 5


async def test_without_opentelemetry_nothing_is_traced(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    chat = TracedChat(ScriptedChat(echo))
    assert chat.tracer is None
    assert (await chat(text_request("q"))).text == "re: q"


async def test_who_asks_the_same_is_not_stopped_with_whoever_asked_first():
    class Busy(DictCache):
        def __init__(self):
            super().__init__()
            self.free = asyncio.Event()

        async def get(self, keys, /):
            await self.free.wait()
            return await super().get(keys)

    cache = Busy()
    chat = CachedChat(ScriptedChat(echo), cache)
    tasks = [asyncio.ensure_future(chat(text_request(text))) for text in ("other", "q", "q")]
    for _ in range(3):  # the cache is busy with the first, and the second waits in line
        await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.wait({tasks[1]})
    cache.free.set()
    async with asyncio.timeout(5):
        assert [(await tasks[at]).text for at in (0, 2)] == ["re: other", "re: q"]
