import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.llm.chat import EndpointError, Message, Reply, Request, text_request
from clew.llm.limits import ConcurrencyLimitedChat, RateLimitedChat, RateLimiter, TimeoutChat
from clew.testing.scripted import ScriptedChat
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

    async def slow(request, /, hear=None):
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
    async def never(request, /, hear=None):
        await asyncio.sleep(60)

    never.name = "m at http://here"
    with pytest.raises(EndpointError, match=r"m at http://here gave no answer within 0.01 s") as e:
        await TimeoutChat(never, 0.01)(text_request("q"))
    assert e.value.transient
