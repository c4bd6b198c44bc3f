"""Retries with exponential backoff; a rejected API key stops all calls at once."""

import asyncio
import random
import time
from asyncio import AbstractEventLoop, Future
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar
from weakref import WeakKeyDictionary

from clew.errors import AuthError
from clew.llm.chat import Chat, EndpointError, Reply, Request, TextCallback
from clew.llm.limits import Clock, WallClock

T = TypeVar("T")
AUTH_FAILURE_SECONDS = 60.0
"""Seconds for which a rejected API key fails every other call."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number of attempts and the waits between them."""

    tries: int = 6
    first_wait: float = 0.5
    max_wait: float = 60.0
    total_seconds: float = 300.0
    """Seconds after which no new attempt starts."""

    def max_tries(self, error: EndpointError) -> int:
        """Maximum attempts for this error; at most two where nothing listens."""
        return min(self.tries, 2) if error.not_listening else self.tries

    def backoff(self, failures: int, chance: float) -> float:
        """Exponential backoff with jitter: 50 to 100 % of the wait, by `chance` in [0, 1]."""
        full = min(self.max_wait, self.first_wait * 2.0 ** min(failures - 1, 30))
        return full * (0.5 + 0.5 * chance)

    def next_wait(
        self, error: EndpointError, failures: int, elapsed: float, chance: Callable[[], float]
    ) -> float | None:
        """Seconds before the next attempt, or None to give up."""
        wait = self.backoff(failures, chance())
        if error.retry_after is not None:  # jitter keeps callers from returning all at once
            wait = error.retry_after + self.first_wait * chance()
        is_over = failures >= self.max_tries(error) or elapsed + wait > self.total_seconds
        return None if is_over else wait


async def call_with_retries(ask: Callable[[], Awaitable[T]], patience: RetryPolicy) -> T:
    """Call `ask` until it succeeds, the policy ends, or the error is permanent."""
    started, failures = time.monotonic(), 0
    while True:
        try:
            return await ask()
        except EndpointError as error:
            if not error.transient:
                raise
            failures += 1
            elapsed = time.monotonic() - started
            wait = patience.next_wait(error, failures, elapsed, random.random)
            if wait is None:
                raise EndpointError(
                    f"{str(error).rstrip('.')}; gave up after {failures} tries in {elapsed:.0f} s.",
                    status=error.status,
                    retry_after=error.retry_after,
                ) from error
        await asyncio.sleep(wait)


@dataclass(eq=False)
class RetryingChat:
    """Retries transient failures; a rejected API key ends this and every other call."""

    inner: Chat
    policy: RetryPolicy = RetryPolicy()
    clock: Clock = field(default_factory=WallClock)
    rng: random.Random = field(default_factory=random.Random, repr=False)
    _auth_failure: tuple[AuthError, float] | None = field(default=None, init=False, repr=False)
    _wakeups: WeakKeyDictionary[AbstractEventLoop, Future[None]] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    @property
    def name(self) -> str:
        """The wrapped chat's name."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: TextCallback | None = None) -> Reply:
        """Send the request until it succeeds, the policy ends, or the error is permanent."""
        started = self.clock.now()
        tracked = TrackedCallback(hear) if hear else None
        failures = 0
        while True:
            self._raise_if_unauthorised()
            try:
                return await self.inner(request, tracked)
            except AuthError as error:
                self._record_auth_failure(error)
                raise
            except EndpointError as error:
                failures += 1
                streamed = (
                    tracked is not None and tracked.called
                )  # streamed text cannot be taken back
                if not error.transient or error.rejects_format(request.response_format) or streamed:
                    raise
                wait = self._next_wait(error, failures, self.clock.now() - started)
            await self._sleep(wait)

    def _next_wait(self, error: EndpointError, failures: int, elapsed: float) -> float:
        """Seconds before the next attempt, or raise with the number of attempts made."""
        wait = self.policy.next_wait(error, failures, elapsed, self.rng.random)
        if wait is None:
            times = "once" if failures == 1 else f"{failures} times"
            requested = f", and it asks for {error.retry_after:g} s" if error.retry_after else ""
            raise EndpointError(
                f"{str(error).rstrip('.')}; tried {times} in {elapsed:.0f} s{requested}.",
                status=error.status,
                retry_after=error.retry_after,
            ) from error
        return wait

    def _raise_if_unauthorised(self) -> None:
        """Raise while an authentication failure is recent; later calls try again."""
        if self._auth_failure is not None:
            error, at = self._auth_failure
            if self.clock.now() - at < AUTH_FAILURE_SECONDS:
                raise AuthError(str(error)) from error

    def _record_auth_failure(self, error: AuthError) -> None:
        self._auth_failure = (error, self.clock.now())
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
