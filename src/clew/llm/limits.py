"""Wrappers that hold calls back: so many at once, so many a minute, so long each.

They may be shared by several event loops; what must wait waits in its own loop.
"""

import asyncio
import time
from asyncio import AbstractEventLoop, Semaphore
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol
from weakref import WeakKeyDictionary

from clew.llm.chat import Chat, EndpointError, Hear, Reply, Request
from clew.llm.openai_body import prompt_tokens

BURST = 5.0
"""Seconds of allowance that may be used up at once before the pace is kept."""
USUAL_REPLY = 500
"""Tokens set aside for a reply without a limit, until its bill comes."""


class Clock(Protocol):
    """Time, as tests may want to hold it in their hands."""

    def now(self) -> float:
        """Seconds, never going back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let that much time pass."""
        ...


class WallClock:
    """The real time."""

    def now(self) -> float:
        """Read the monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep in the event loop."""
        await asyncio.sleep(seconds)


@dataclass(eq=False)
class Limited:
    """Lets at most `limit` calls run at once in each event loop."""

    inner: Chat
    limit: int
    _gates: WeakKeyDictionary[AbstractEventLoop, Semaphore] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Wait for a place, then ask."""
        loop = asyncio.get_running_loop()
        gate = self._gates.get(loop)
        if gate is None:
            gate = self._gates[loop] = Semaphore(self.limit)
        async with gate:
            return await self.inner(request, hear)


@dataclass(eq=False)
class Bucket:
    """An allowance that refills evenly; a taker is told how long to wait, first come first served.

    It holds one number, the moment at which all that was taken will have been refilled.
    """

    per_minute: float
    burst: float = BURST
    _full_at: float = field(default=0.0, init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def take(self, amount: float, now: float) -> float:
        """Take `amount` and return the seconds to wait before using it."""
        with self._lock:
            starts = max(self._full_at, now)
            self._full_at = starts + amount * 60 / self.per_minute
            return max(0.0, starts - now - self.burst)

    def settle(self, difference: float) -> None:
        """Take more, or give some back, when the real amount is known."""
        with self._lock:
            self._full_at += difference * 60 / self.per_minute


@dataclass(eq=False)
class Paced:
    """Keeps to so many requests and so many tokens a minute."""

    inner: Chat
    requests: Bucket | None = None
    tokens: Bucket | None = None
    clock: Clock = field(default_factory=WallClock)

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Wait until both allowances reach, ask, and settle the tokens by the real bill."""
        now = self.clock.now()
        waits = [0.0]
        if self.requests is not None:
            waits.append(self.requests.take(1, now))
        guess = prompt_tokens(request.messages) + (request.max_tokens or USUAL_REPLY)
        if self.tokens is not None:
            waits.append(self.tokens.take(guess, now))
        spent = 0
        try:
            if max(waits) > 0:
                await self.clock.sleep(max(waits))
            reply = await self.inner(request, hear)
            spent = reply.usage.prompt_tokens + reply.usage.completion_tokens
            return reply
        finally:
            if self.tokens is not None:
                self.tokens.settle(spent - guess)


@dataclass(eq=False)
class TimeLimited:
    """Gives up on a call after `seconds`, connecting and reading included."""

    inner: Chat
    seconds: float

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Ask against the clock."""
        try:
            async with asyncio.timeout(self.seconds):
                return await self.inner(request, hear)
        except TimeoutError as error:
            raise EndpointError(
                f"{self.name} gave no answer within {self.seconds:g} s: raise the timeout, "
                "or ask for fewer tokens.",
                transient=True,
            ) from error
