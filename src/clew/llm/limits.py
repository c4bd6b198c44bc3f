"""Chat wrappers that limit concurrency, rate and duration of calls.

They may be shared by several event loops; each call waits in its own loop.
"""

import asyncio
import time
from asyncio import AbstractEventLoop, Semaphore
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol
from weakref import WeakKeyDictionary

from clew.llm.chat import Chat, EndpointError, Reply, Request, TextCallback
from clew.llm.openai_body import estimate_prompt_tokens

BURST_SECONDS = 5.0
"""Seconds of allowance that may be used at once before the rate is enforced."""
DEFAULT_REPLY_TOKENS = 500
"""Tokens reserved for a reply without a limit until its usage is known."""


class Clock(Protocol):
    """Source of time, replaceable in tests."""

    def now(self) -> float:
        """Monotonic time in seconds."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds."""
        ...


class WallClock:
    """The system's monotonic clock."""

    def now(self) -> float:
        """Read the monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep in the event loop."""
        await asyncio.sleep(seconds)


@dataclass(eq=False)
class ConcurrencyLimitedChat:
    """Runs at most `limit` calls concurrently per event loop."""

    inner: Chat
    limit: int
    _semaphores: WeakKeyDictionary[AbstractEventLoop, Semaphore] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    @property
    def name(self) -> str:
        """The wrapped chat's name."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: TextCallback | None = None) -> Reply:
        """Wait for the semaphore, then send the request."""
        loop = asyncio.get_running_loop()
        semaphore = self._semaphores.get(loop)
        if semaphore is None:
            semaphore = self._semaphores[loop] = Semaphore(self.limit)
        async with semaphore:
            return await self.inner(request, hear)


@dataclass(eq=False)
class RateLimiter:
    """A leaky bucket; callers are told how long to wait, first come first served.

    Its state is one number: the time at which everything taken will have been refilled.
    """

    per_minute: float
    burst: float = BURST_SECONDS
    _full_at: float = field(default=0.0, init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def reserve(self, amount: float, now: float) -> float:
        """Reserve `amount` and return the seconds to wait before using it."""
        with self._lock:
            starts = max(self._full_at, now)
            self._full_at = starts + amount * 60 / self.per_minute
            return max(0.0, starts - now - self.burst)

    def adjust(self, difference: float) -> None:
        """Correct a reservation once the actual amount is known."""
        with self._lock:
            self._full_at += difference * 60 / self.per_minute


@dataclass(eq=False)
class RateLimitedChat:
    """Limits requests and tokens per minute."""

    inner: Chat
    requests: RateLimiter | None = None
    tokens: RateLimiter | None = None
    clock: Clock = field(default_factory=WallClock)

    @property
    def name(self) -> str:
        """The wrapped chat's name."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: TextCallback | None = None) -> Reply:
        """Wait for both limiters, send the request, and correct the tokens by its usage."""
        now = self.clock.now()
        waits = [0.0]
        if self.requests is not None:
            waits.append(self.requests.reserve(1, now))
        reserved = estimate_prompt_tokens(request.messages) + (
            request.max_tokens or DEFAULT_REPLY_TOKENS
        )
        if self.tokens is not None:
            waits.append(self.tokens.reserve(reserved, now))
        used = 0
        try:
            if max(waits) > 0:
                await self.clock.sleep(max(waits))
            reply = await self.inner(request, hear)
            used = reply.usage.prompt_tokens + reply.usage.completion_tokens
            return reply
        finally:
            if self.tokens is not None:
                self.tokens.adjust(used - reserved)


@dataclass(eq=False)
class TimeoutChat:
    """Aborts a call after `seconds`, including connecting and reading."""

    inner: Chat
    seconds: float

    @property
    def name(self) -> str:
        """The wrapped chat's name."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: TextCallback | None = None) -> Reply:
        """Send the request with a timeout."""
        try:
            async with asyncio.timeout(self.seconds):
                return await self.inner(request, hear)
        except TimeoutError as error:
            raise EndpointError(
                f"{self.name} gave no answer within {self.seconds:g} s: raise the timeout, "
                "or ask for fewer tokens.",
                transient=True,
            ) from error
