"""The wrapper that asks again, for what can get better, and stops everyone for what cannot."""

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
from clew.llm.chat import Chat, EndpointError, Hear, Reply, Request
from clew.llm.limits import Clock, WallClock

T = TypeVar("T")
REFUSAL_HOLDS = 60.0
"""Seconds for which a refused key stops every other call."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on trying."""

    tries: int = 6
    first_wait: float = 0.5
    longest_wait: float = 60.0
    total: float = 300.0
    """Seconds after which no new attempt begins."""

    def most_tries(self, error: EndpointError) -> int:
        """How often to try; once more where nothing listens, as somebody waits for the answer."""
        return min(self.tries, 2) if error.absent else self.tries

    def wait(self, failures: int, chance: float) -> float:
        """Double the wait with each failure, and take half to all of it, by `chance` in [0, 1]."""
        whole = min(self.longest_wait, self.first_wait * 2.0 ** min(failures - 1, 30))
        return whole * (0.5 + 0.5 * chance)

    def pause(
        self, error: EndpointError, failures: int, spent: float, chance: Callable[[], float]
    ) -> float | None:
        """The wait before the next attempt; none where it is time to give up."""
        pause = self.wait(failures, chance())
        if error.retry_after is not None:  # the spread keeps waiters from returning as one
            pause = error.retry_after + self.first_wait * chance()
        over = failures >= self.most_tries(error) or spent + pause > self.total
        return None if over else pause


async def patiently(ask: Callable[[], Awaitable[T]], patience: Patience) -> T:
    """Ask until it works, patience ends, or trying again is no use."""
    began, failures = time.monotonic(), 0
    while True:
        try:
            return await ask()
        except EndpointError as error:
            if not error.transient:
                raise
            failures += 1
            spent = time.monotonic() - began
            pause = patience.pause(error, failures, spent, random.random)
            if pause is None:
                raise EndpointError(
                    f"{str(error).rstrip('.')}; gave up after {failures} tries in {spent:.0f} s.",
                    status=error.status,
                    retry_after=error.retry_after,
                ) from error
        await asyncio.sleep(pause)


@dataclass(eq=False)
class Retrying:
    """Asks again after a passing failure; a refused key ends this and every other call at once."""

    inner: Chat
    patience: Patience = Patience()
    clock: Clock = field(default_factory=WallClock)
    chance: random.Random = field(default_factory=random.Random, repr=False)
    _refused: tuple[AuthError, float] | None = field(default=None, init=False, repr=False)
    _alarms: WeakKeyDictionary[AbstractEventLoop, Future[None]] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Ask until it works, patience ends, or trying again is no use."""
        began = self.clock.now()
        heard = Heard(hear) if hear else None
        failures = 0
        while True:
            self._check()
            try:
                return await self.inner(request, heard)
            except AuthError as error:
                self._refuse(error)
                raise
            except EndpointError as error:
                failures += 1
                told = heard is not None and heard.any  # words once said cannot be taken back
                if not error.transient or error.refuses(request.shape) or told:
                    raise
                pause = self._pause(error, failures, self.clock.now() - began)
            await self._sleep(pause)

    def _pause(self, error: EndpointError, failures: int, spent: float) -> float:
        """Choose the wait before the next attempt, or give up and say so."""
        pause = self.patience.pause(error, failures, spent, self.chance.random)
        if pause is None:
            times = "once" if failures == 1 else f"{failures} times"
            asked = f", and it asks for {error.retry_after:g} s" if error.retry_after else ""
            raise EndpointError(
                f"{str(error).rstrip('.')}; tried {times} in {spent:.0f} s{asked}.",
                status=error.status,
                retry_after=error.retry_after,
            ) from error
        return pause

    def _check(self) -> None:
        """Fail at once while a refusal is fresh; a server running for days may ask again later."""
        if self._refused is not None:
            error, moment = self._refused
            if self.clock.now() - moment < REFUSAL_HOLDS:
                raise AuthError(str(error)) from error

    def _refuse(self, error: AuthError) -> None:
        self._refused = (error, self.clock.now())
        while self._alarms:
            loop, alarm = self._alarms.popitem()
            with suppress(RuntimeError):  # that loop is closed: nobody sleeps there any more
                loop.call_soon_threadsafe(_ring, alarm)

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but wake when the key is refused meanwhile."""
        loop = asyncio.get_running_loop()
        alarm = self._alarms.get(loop)
        if alarm is None:
            alarm = self._alarms[loop] = loop.create_future()
        sleep = asyncio.ensure_future(self.clock.sleep(seconds))
        try:
            await asyncio.wait({sleep, alarm}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()


def _ring(alarm: Future[None]) -> None:
    if not alarm.done():
        alarm.set_result(None)


@dataclass(slots=True)
class Heard:
    """Passes text on and remembers whether any came."""

    hear: Hear
    any: bool = False

    def __call__(self, piece: str) -> None:
        """Take a piece."""
        self.any = self.any or bool(piece)
        self.hear(piece)
