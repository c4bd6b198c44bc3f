import asyncio
import random
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import AuthError, ModelError, ParseError
from clew.llm.chat import EndpointError, Message, Reply, Request, ResponseFormat, text_request
from clew.llm.limits import (
    ConcurrencyLimitedChat,
    RateLimitedChat,
    RateLimiter,
    RetryingChat,
    RetryPolicy,
    TimeoutChat,
)
from clew.llm.openai_api import parse_retry_after
from clew.llm.openai_chat import OpenAIChat
from clew.testing.fakes import ScriptedChat
from clew.testing.stub_endpoint import StubEndpoint
from clew.testing.stub_responses import DROP, Fault
from clew.types import Usage


class Steps:
    """A clock whose sleepers wake in the order of their time."""

    def __init__(self):
        self.time = 0.0
        self.waiting = []

    def now(self):
        return self.time

    async def sleep(self, seconds):
        until = self.time + seconds
        woken = asyncio.get_running_loop().create_future()
        self.waiting.append((until, woken))
        await woken

    async def run(self, task):
        while not task.done():
            for _ in range(20):
                await asyncio.sleep(0)
            if self.waiting and not task.done():
                self.waiting.sort(key=lambda pair: pair[0])
                self.time, woken = self.waiting.pop(0)
                woken.set_result(None)
        return task.result()


async def test_no_more_than_the_limit_run_at_once():
    running = most = 0

    async def slow(request, /, on_text=None):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return Reply("x", Usage(1))

    slow.name = "slow"
    chat = ConcurrencyLimitedChat(slow, 4)
    await asyncio.gather(*[chat(text_request("q")) for _ in range(30)])
    assert most == 4


def test_a_limit_holds_in_several_event_loops():
    chat = ConcurrencyLimitedChat(ScriptedChat(lambda _: "x"), 1)
    for _ in range(2):
        with asyncio.Runner() as runner:

            async def many():
                return await asyncio.gather(*[chat(text_request("q")) for _ in range(5)])

            assert len(runner.run(many())) == 5


async def test_requests_keep_their_pace():
    clock = Steps()
    times = []

    def note(_):
        times.append(clock.time)
        return "x"

    chat = RateLimitedChat(ScriptedChat(note), requests=RateLimiter(60, burst=0), clock=clock)
    calls = asyncio.gather(*[chat(text_request(str(n))) for n in range(10)])
    await clock.run(calls)
    assert times == [float(n) for n in range(10)]


async def test_tokens_are_settled_by_the_real_bill():
    clock = Steps()
    times = []

    def note(request):
        times.append(clock.time)
        return Reply("x", Usage(1, 100, 0))

    chat = RateLimitedChat(ScriptedChat(note), tokens=RateLimiter(6000, burst=0), clock=clock)
    request = Request((Message("user", "q"),), max_tokens=595)
    for _ in range(3):
        await clock.run(asyncio.ensure_future(chat(request)))
    assert times == pytest.approx([0.0, 1.0, 2.0])  # 100 tokens each at 100 a second


async def test_a_call_that_fails_gives_its_tokens_back():
    clock = Steps()
    chat = RateLimitedChat(
        ScriptedChat([EndpointError("no."), "x"]), tokens=RateLimiter(600, burst=0), clock=clock
    )
    request = Request((Message("user", "q"),), max_tokens=10_000)
    with pytest.raises(EndpointError):
        await chat(request)
    await chat(request)
    assert clock.time == 0


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0.1, 50)), min_size=1, max_size=60))
def test_a_bucket_never_gives_more_than_its_rate_and_burst(steps):
    bucket, now, taken = RateLimiter(600, burst=2), 0.0, 0.0
    last = 0.0
    for pause, amount in steps:
        now += pause
        ready = now + bucket.reserve(amount, now)
        assert ready >= last - 1e-9  # first come, first served
        last = ready
        # What was given out before this taker fits into the time so far, plus the burst.
        assert taken <= 10 * (ready + 2) + 1e-6
        taken += amount


async def test_a_call_that_takes_too_long_is_ended():
    async def never(request, /, on_text=None):
        await asyncio.sleep(60)

    never.name = "m at http://here"
    with pytest.raises(EndpointError, match=r"m at http://here did not answer within 0.01 s") as e:
        await TimeoutChat(never, 0.01)(text_request("q"))
    assert e.value.transient


class Hourglass:
    """A clock that jumps instead of waiting."""

    def __init__(self):
        self.time = 1000.0
        self.sleeps = []

    def now(self):
        return self.time

    async def sleep(self, seconds):
        self.sleeps.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


def busy(status=503, after=None):
    return EndpointError("x is busy.", status=status, retry_after=after, transient=True)


def retrying(script, **patience):
    clock = Hourglass()
    chat = ScriptedChat(script)
    return RetryingChat(chat, RetryPolicy(**patience), clock, random.Random(1)), chat, clock


async def test_a_passing_failure_passes():
    chat, inner, clock = retrying([busy(), busy(), "fine"])
    assert (await chat(text_request("q"))).text == "fine"
    assert len(inner.requests) == 3
    assert 0.25 <= clock.sleeps[0] <= 0.5 <= clock.sleeps[1] <= 1.0


async def test_it_gives_up_after_so_many_tries_and_says_how_often():
    chat, inner, _ = retrying([busy()] * 9, tries=4)
    with pytest.raises(EndpointError, match="x is busy; gave up after 4 attempts in") as caught:
        await chat(text_request("q"))
    assert len(inner.requests) == 4
    assert not caught.value.transient


async def test_where_nothing_listens_on_this_machine_one_more_try_is_enough():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and not listened at
        port = nobody.getsockname()[1]
        for host in ("localhost", "127.0.0.1"):
            clock = Hourglass()
            chat = RetryingChat(OpenAIChat("m", f"http://{host}:{port}/v1"), RetryPolicy(), clock)
            with pytest.raises(EndpointError, match="cannot be reached.*gave up after 2 attempts"):
                await chat(text_request("q"))
            assert len(clock.sleeps) == 1


async def test_it_waits_as_long_as_it_is_told():
    chat, _, clock = retrying([busy(429, after=12.0), "fine"])
    await chat(text_request("q"))
    assert 12.0 <= clock.sleeps[0] <= 12.5


async def test_a_wait_beyond_all_patience_is_not_begun():
    chat, inner, clock = retrying([busy(429, after=86400.0), "fine"], total_seconds=60)
    with pytest.raises(EndpointError, match="1 attempt.*asks for 86400 s"):
        await chat(text_request("q"))
    assert clock.sleeps == []
    assert len(inner.requests) == 1


@given(st.integers(1, 200), st.floats(0, 1))
def test_waits_grow_and_are_bounded(failures, chance):
    patience = RetryPolicy()
    wait = patience.backoff(failures, chance)
    assert 0 < wait <= patience.max_wait
    assert patience.backoff(failures + 1, chance) >= wait


@pytest.mark.parametrize(
    "error", [EndpointError("no.", status=404), ModelError("no."), ParseError("no.")]
)
async def test_what_cannot_get_better_is_not_tried_again(error):
    chat, inner, _ = retrying([error, "fine"])
    with pytest.raises(type(error)):
        await chat(text_request("q"))
    assert len(inner.requests) == 1


async def test_a_500_to_an_unproven_shape_is_left_to_the_ladder_but_a_proven_one_is_retried():
    schema = ResponseFormat("schema", "s", {})
    chat, inner, _ = retrying([busy(500), "fine"])
    with pytest.raises(EndpointError):
        await chat(Request((Message("user", "q"),), response_format=schema))
    proven = ResponseFormat("schema", "s", {}, proven=True)
    chat, inner, _ = retrying([busy(500), "fine"])
    assert (await chat(Request((Message("user", "q"),), response_format=proven))).text == "fine"
    assert len(inner.requests) == 2


async def test_words_once_heard_are_not_said_again():
    async def breaks_off(request, /, on_text=None):
        on_text("Once upon")
        raise busy()

    breaks_off.name = "b"
    heard = []
    with pytest.raises(EndpointError):
        await RetryingChat(breaks_off, clock=Hourglass())(text_request("q"), heard.append)
    assert heard == ["Once upon"]


async def test_a_refused_key_stops_those_who_wait_and_a_later_call_tries_it_again():
    calls = 0

    async def moody(request, /, on_text=None):
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.01)
        if request.messages[0].content == "key":
            await asyncio.sleep(0.02)
            raise AuthError("the key is refused.")
        raise busy()

    moody.name = "moody"
    chat = RetryingChat(moody, RetryPolicy(first_wait=30))
    names = ["a", "b", "c", "key", "d"]
    async with asyncio.timeout(5):
        results = await asyncio.gather(
            *[chat(text_request(name)) for name in names], return_exceptions=True
        )
    assert [type(result) for result in results] == [AuthError] * 5
    assert calls == 5
    with pytest.raises(AuthError, match="refused"):
        await chat(text_request("key"))
    assert calls == 6


async def test_against_a_real_server_every_passing_failure_is_survived():
    faults = [DROP, Fault(500), Fault(429, retry_after="0"), Fault(429), None]
    async with StubEndpoint(lambda _: "fine", faults=faults) as stub:
        chat = RetryingChat(OpenAIChat("m", stub.base_url), RetryPolicy(first_wait=0.01))
        assert (await chat(text_request("q"))).text == "fine"
        assert stub.stats.chat_calls == 5


def test_retry_after_is_read_in_all_its_forms():
    now = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    later = format_datetime(now + timedelta(seconds=90), usegmt=True)
    assert parse_retry_after({"retry-after": "2.5"}, now) == 2.5
    assert parse_retry_after({"retry-after": later}, now) == 90
    assert parse_retry_after({"retry-after": format_datetime(now - timedelta(days=1))}, now) == 0
    assert parse_retry_after({"retry-after-ms": "1500", "retry-after": "9"}, now) == 1.5


@given(st.text(max_size=40))
def test_a_strange_retry_after_is_ignored_or_sane(value):
    wait = parse_retry_after({"retry-after": value}, datetime.now(UTC))
    assert wait is None or wait >= 0


def test_a_key_refused_in_a_later_loop_is_said_though_an_earlier_one_is_closed():
    chat, _, _ = retrying([busy(), "fine", AuthError("the key is refused.")])
    loops = [asyncio.new_event_loop(), asyncio.new_event_loop()]  # held, so that none is forgotten
    assert loops[0].run_until_complete(chat(text_request("q"))).text == "fine"
    loops[0].close()
    with pytest.raises(AuthError, match="the key is refused"):
        loops[1].run_until_complete(chat(text_request("q")))
    loops[1].close()
