"""Concurrency follows the endpoint: one slot stays near one call, a batch server gets many."""

import asyncio
from dataclasses import dataclass, field

import pytest

from clew.llm.adaptive import AdaptiveChat, CallPace
from clew.llm.chat import EndpointError, Message, Reply, Request
from clew.types import Usage

REQUEST = Request((Message("user", "?"),))


@dataclass
class TickClock:
    """Time that passes only as the server works."""

    time: float = 0.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


@dataclass
class Server:
    """Serves `slots` calls at once, each for a second; others wait in its queue."""

    clock: TickClock
    slots: int
    limit: float = 1e9
    name: str = "server"
    waiting: int = 0
    most: int = 0
    answered: int = 0
    queue: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self.queue = asyncio.Semaphore(self.slots)

    async def __call__(self, request: Request, /, on_text: object = None) -> Reply:
        began = self.clock.now()
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        try:
            async with self.queue:
                await asyncio.sleep(0)
                self.clock.time += 1.0 / self.slots
            if self.clock.now() - began > self.limit:
                raise EndpointError("slow", transient=True) from TimeoutError()
        finally:
            self.waiting -= 1
        self.answered += 1
        return Reply("ok", usage=Usage(calls=1, completion_tokens=10))


async def _call_many(chat: AdaptiveChat, many: int) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(many):
            group.create_task(chat(REQUEST))


async def test_a_server_with_one_slot_is_not_crowded() -> None:
    clock = TickClock()
    server = Server(clock, slots=1)
    chat = AdaptiveChat(server, 16, clock)
    await _call_many(chat, 60)
    assert server.answered == 60
    assert server.most <= 4 and chat.pace.limit <= 3


def _settle(slots: int, rounds: int = 300) -> list[int]:
    """The limits at which calls run that take a second, and longer if they wait for a slot."""
    pace, limits = CallPace(16), []
    for _ in range(rounds):
        seconds = max(1.0, pace.limit / slots)
        reply = Reply("ok", usage=Usage(calls=1, completion_tokens=10))
        pace.note_reply(seconds, reply, pace.limit)
        limits.append(pace.limit)
    return limits[-100:]


@pytest.mark.parametrize(("slots", "low", "high"), [(1, 1, 3), (4, 4, 6), (64, 16, 16)])
def test_as_many_calls_run_as_the_server_serves(slots: int, low: int, high: int) -> None:
    limits = _settle(slots)
    assert low <= min(limits) and max(limits) <= high


async def test_a_call_that_only_waited_is_sent_again() -> None:
    clock = TickClock()
    server = Server(clock, slots=1, limit=1.5)
    chat = AdaptiveChat(server, 8, clock)
    await _call_many(chat, 10)
    assert server.answered == 10 and chat.pace.limit <= 4


async def test_a_call_that_times_out_alone_fails() -> None:
    clock = TickClock()
    chat = AdaptiveChat(Server(clock, slots=1, limit=0.5), 8, clock)
    with pytest.raises(EndpointError):
        await chat(REQUEST)


def test_errors_halve_the_limit() -> None:
    pace = CallPace(16, 12)
    pace.note_failure()
    assert pace.limit == 6
    for _ in range(5):
        pace.note_failure()
    assert pace.limit == 1
