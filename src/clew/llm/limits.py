"""Chat wrappers that limit concurrency, rate and duration of calls, retry failures, or fail fast.

A rejected API key stops all calls that wait at once; whoever listens is told what is waited for.
"""

import asyncio
import random
import time
from asyncio import AbstractEventLoop, Future, Semaphore
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal, Protocol, TypeVar
from weakref import WeakKeyDictionary

from clew.errors import AuthError, ConfigError
from clew.llm.chat import Chat, EndpointError, Reply, Request, TextCallback
from clew.llm.openai_api import estimate_prompt_tokens

T = TypeVar("T")
BURST_SECONDS = 5.0
"""Seconds of allowance that may be used at once before the rate is enforced."""
DEFAULT_REPLY_TOKENS = 500
"""Tokens reserved for a reply without a limit until its usage is known."""
# Network errors that only a reachable host causes, or that may pass with time.
_REACHABLE_ERRORS = (TimeoutError, ConnectionResetError, BrokenPipeError)


@dataclass(frozen=True, slots=True)
class ModelWait:
    """Event: a call was sent to a model, failed and will be sent again, or has ended."""

    model: str
    state: Literal["sent", "failed", "ended"]
    why: str = ""
    seconds: float = 0.0
    """After a failure: until it is sent again."""


WaitListener = Callable[[ModelWait], None]
_LISTENER: ContextVar[WaitListener | None] = ContextVar("clew_wait_listener", default=None)


async def tell_waits(listener: WaitListener, work: Awaitable[T]) -> T:
    """Await work; the listener is told of each model call that it waits for."""
    before = _LISTENER.set(listener)
    try:
        return await work
    finally:
        _LISTENER.reset(before)


class Clock(Protocol):
    """Source of time, replaceable in tests."""

    def now(self) -> float:
        """Monotonic time in seconds."""

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds."""


class WallClock:
    """The system's monotonic clock."""

    def now(self) -> float:
        """Read the monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep in the event loop."""
        await asyncio.sleep(seconds)


@dataclass(eq=False)
class ConcurrencyLimit:
    """Slots for `most` calls at once per event loop; chats may share them."""

    most: int
    _semaphores: WeakKeyDictionary[AbstractEventLoop, Semaphore] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    def slots(self) -> AbstractAsyncContextManager[Any]:
        """The slots of the running event loop: entering waits for one."""
        loop = asyncio.get_running_loop()
        semaphore = self._semaphores.get(loop)
        if semaphore is None:
            semaphore = self._semaphores[loop] = Semaphore(self.most)
        return semaphore


@dataclass(eq=False)
class ConcurrencyLimitedChat:
    """Runs at most `limit` calls concurrently per event loop; several chats may share a limit."""

    inner: Chat
    limit: int | ConcurrencyLimit

    def __post_init__(self) -> None:
        """Make a number a limit of this chat's own."""
        given = self.limit
        self._limit = given if isinstance(given, ConcurrencyLimit) else ConcurrencyLimit(given)

    @property
    def name(self) -> str:
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Wait for a slot, then send the request."""
        async with self._limit.slots():
            return await self.inner(request, on_text)


@dataclass(eq=False)
class RateLimiter:
    """A leaky bucket: returns how long to wait, first come first served.

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
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
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
            reply = await self.inner(request, on_text)
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
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Send the request with a timeout."""
        try:
            async with asyncio.timeout(self.seconds):
                return await self.inner(request, on_text)
        except TimeoutError as error:
            raise EndpointError(
                f"{self.name} did not answer within {self.seconds:g} s: raise the timeout, "
                "or lower max_tokens.",
                transient=True,
            ) from error


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number of attempts and the waits between them."""

    tries: int = 6
    first_wait: float = 0.5
    max_wait: float = 60.0
    total_seconds: float = 300.0
    """Seconds after which no new attempt starts."""

    def backoff(self, failures: int, chance: float) -> float:
        """Exponential backoff with jitter: 50 to 100 % of the wait, by `chance` in [0, 1]."""
        full = min(self.max_wait, self.first_wait * 2.0 ** min(failures - 1, 30))
        return full * (0.5 + 0.5 * chance)

    def next_wait(
        self, error: EndpointError, failures: int, elapsed: float, chance: Callable[[], float]
    ) -> float:
        """Seconds before the next attempt, or raise with the number of attempts made."""
        wait = self.backoff(failures, chance())
        if error.retry_after is not None:  # jitter keeps callers from returning all at once
            wait = error.retry_after + self.first_wait * chance()
        tries = min(self.tries, 2) if error.not_listening else self.tries
        if failures < tries and elapsed + wait <= self.total_seconds:
            return wait
        attempts = "1 attempt" if failures == 1 else f"{failures} attempts"
        requested = f", and it asks for {error.retry_after:g} s" if error.retry_after else ""
        raise EndpointError(
            f"{str(error).rstrip('.')}; gave up after {attempts} in {elapsed:.0f} s{requested}.",
            status=error.status,
            retry_after=error.retry_after,
        ) from error


async def call_with_retries(call: Callable[[], Awaitable[T]], policy: RetryPolicy) -> T:
    """Call until it succeeds, the policy ends, or the error is permanent."""
    started, failures = time.monotonic(), 0
    while True:
        try:
            return await call()
        except EndpointError as error:
            if not error.transient:
                raise
            failures += 1
            elapsed = time.monotonic() - started
            wait = policy.next_wait(error, failures, elapsed, random.random)
        await asyncio.sleep(wait)


@dataclass(eq=False)
class RetryingChat:
    """Retries transient failures; a rejected API key ends this call and those that wait."""

    inner: Chat
    policy: RetryPolicy = RetryPolicy()
    clock: Clock = field(default_factory=WallClock)
    rng: random.Random = field(default_factory=random.Random, repr=False)
    _refusals: list[AuthError] = field(default_factory=list, init=False, repr=False)
    _wakeups: WeakKeyDictionary[AbstractEventLoop, Future[None]] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    @property
    def name(self) -> str:
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Send the request until it succeeds, the policy ends, or the error is permanent."""
        tell = _LISTENER.get() or _ignore
        tell(ModelWait(self.name, "sent"))
        try:
            return await self._send(request, on_text, tell)
        finally:
            tell(ModelWait(self.name, "ended"))

    async def _send(
        self, request: Request, on_text: TextCallback | None, tell: WaitListener
    ) -> Reply:
        started, refusals = self.clock.now(), len(self._refusals)
        tracked = TrackedCallback(on_text) if on_text else None
        failures = 0
        while True:
            if len(self._refusals) > refusals:  # meanwhile; a later call tries the key again
                raise AuthError(str(self._refusals[-1])) from self._refusals[-1]
            try:
                return await self.inner(request, tracked)
            except AuthError as error:
                self._record_refusal(error)
                raise
            except EndpointError as error:
                failures += 1
                if tracked is not None and tracked.called:  # streamed text cannot be taken back
                    raise
                if not error.transient or error.rejects_format(request.response_format):
                    raise
                elapsed = self.clock.now() - started
                wait = self.policy.next_wait(error, failures, elapsed, self.rng.random)
                tell(ModelWait(self.name, "failed", str(error), wait))
            await self._sleep(wait)

    def _record_refusal(self, error: AuthError) -> None:
        self._refusals.append(error)
        while self._wakeups:
            loop, wakeup = self._wakeups.popitem()
            with suppress(RuntimeError):  # that loop is closed: nothing waits there
                loop.call_soon_threadsafe(_wake, wakeup)

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but wake up when the API key is rejected meanwhile."""
        loop = asyncio.get_running_loop()
        wakeup = self._wakeups.get(loop)
        if wakeup is None:
            wakeup = self._wakeups[loop] = loop.create_future()
        sleep = asyncio.ensure_future(self.clock.sleep(seconds))
        try:
            await asyncio.wait({sleep, wakeup}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()


def _ignore(event: ModelWait) -> None:
    """Hear nothing, where nobody listens."""


def _wake(wakeup: Future[None]) -> None:
    if not wakeup.done():
        wakeup.set_result(None)


@dataclass(slots=True)
class TrackedCallback:
    """Forwards text to a callback and records whether any came."""

    callback: TextCallback
    called: bool = False

    def __call__(self, piece: str) -> None:
        """Forward one piece of text."""
        self.called = self.called or bool(piece)
        self.callback(piece)


@dataclass(eq=False)
class FailFastChat:
    """Distinguishes an endpoint that does not exist from one that fails now and then.

    A document whose calls fail is written without a graph, to be retried later; but where no call
    was ever answered and nothing can be connected to, that would happen to every document.
    """

    inner: Chat
    _answered: bool = field(default=False, init=False)
    _error_message: str = field(default="", init=False)

    @property
    def name(self) -> str:
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Call the model; a cached reply does not count as reaching the endpoint."""
        if self._error_message:  # concurrent calls need not wait for their own connection error
            raise ConfigError(self._error_message)
        try:
            reply = await self.inner(request, on_text)
        except EndpointError as error:
            self._answered = self._answered or error.status is not None
            if self._answered or not _is_unreachable(error):
                raise
            message = str(error).rstrip(".")
            self._error_message = f"{message}; stopped: nothing is written without a graph."
            raise ConfigError(self._error_message) from error
        self._answered = self._answered or reply.usage.calls > 0
        return reply


def _is_unreachable(error: BaseException | None) -> bool:
    """Return whether no connection was possible, judged by the network error in the cause chain."""
    while error is not None:
        if isinstance(error, OSError) and not isinstance(error, _REACHABLE_ERRORS):
            return True
        error = error.__cause__
    return False
