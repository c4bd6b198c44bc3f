"""Finds how many calls an endpoint serves at once: more while that helps, fewer when it does not.

A server with one slot answers two calls no sooner than one after the other: the second waits in its
queue, and a time limit would count the waiting. So the number of calls at once is doubled while
that raises the tokens per second, goes back when it does not, is halved by an error, and later
tried one higher (AIMD).
"""

import asyncio
from asyncio import AbstractEventLoop, Condition
from dataclasses import dataclass, field
from threading import Lock
from weakref import WeakKeyDictionary

from clew.llm.chat import Chat, EndpointError, Reply, Request, TextCallback
from clew.llm.limits import Clock, WallClock

FIRST_LIMIT = 2
"""Calls at once before anything is known: the third finds out whether the second had to wait."""
_WORTH_IT = 1.25  # times the tokens per second that twice the calls must bring
_WORTH_ONE_MORE = 1.02  # … and that one call more must bring
_MIN_REPLIES = 4  # before two numbers of calls are compared
_PATIENCE = 64  # replies after which a higher number is tried again
_PROMPT_SHARE = 0.1  # a prompt's token takes about so much of the time of a written one
_MAX_TIMEOUTS = 2  # timeouts of one call that are blamed on others waiting


@dataclass
class CallPace:
    """The number of calls at once, from the tokens per second that each number has brought."""

    most: int
    limit: int = FIRST_LIMIT
    changes: int = 0
    """How often the limit has changed; what began under another one says nothing about this one."""
    _growing: bool = True
    """Whether more calls have always helped so far: until then the number is doubled."""
    _before: tuple[int, float] | None = None
    """The lower number that this one is compared with, and its tokens per second."""
    _replies: int = 0
    _seconds: float = 0.0
    _tokens: float = 0.0

    def note_reply(self, seconds: float, reply: Reply, at_once: int) -> None:
        """Learn from an answered call that was one of `at_once`."""
        if at_once < self.limit:
            return  # the limit was not what held calls back
        usage = reply.usage
        self._replies += 1
        self._seconds += seconds
        self._tokens += max(1.0, usage.completion_tokens + _PROMPT_SHARE * usage.prompt_tokens)
        if self._replies < max(_MIN_REPLIES, self.limit):
            return
        speed = self.limit * self._tokens / max(self._seconds, 1e-9)
        if self._before is not None and speed < self._gain_wanted() * self._before[1]:
            self._growing = False
            self._move(self._before[0], None)
        elif self._growing or self._before is not None or self._replies >= _PATIENCE:
            higher = self.limit * 2 if self._growing else self.limit + 1
            if min(higher, self.most) > self.limit:
                self._move(min(higher, self.most), (self.limit, speed))

    def note_failure(self) -> None:
        """Halve the limit: the endpoint is overloaded, or tells us to slow down."""
        self._growing = False
        self._move(max(1, self.limit // 2), None)

    def _gain_wanted(self) -> float:
        return _WORTH_IT if self._growing else _WORTH_ONE_MORE

    def _move(self, limit: int, before: tuple[int, float] | None) -> None:
        self.limit, self._before = limit, before
        self.changes += 1
        self._replies, self._seconds, self._tokens = 0, 0.0, 0.0


@dataclass(eq=False)
class AdaptiveChat:
    """Runs as many calls at once as the endpoint serves without making them wait.

    A call that times out while others ran is sent again when fewer do: it may only have waited.
    """

    inner: Chat
    most: int
    clock: Clock = field(default_factory=WallClock)
    pace: CallPace = field(init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)
    _by_loop: WeakKeyDictionary[AbstractEventLoop, "_Slots"] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    def __post_init__(self) -> None:
        self.pace = CallPace(self.most, min(FIRST_LIMIT, self.most))

    @property
    def name(self) -> str:
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Wait for a slot, then send the request."""
        slots = self._by_loop.setdefault(asyncio.get_running_loop(), _Slots())
        timeouts = 0
        while True:
            async with slots.waiting:
                await slots.waiting.wait_for(lambda: slots.used < self.pace.limit)
                slots.used += 1
            at_once, began, change = slots.used, self.clock.now(), self.pace.changes
            try:
                reply = await self.inner(request, on_text)
                with self._lock:
                    if change == self.pace.changes:
                        crowd = max(at_once, slots.used)
                        self.pace.note_reply(self.clock.now() - began, reply, crowd)
                return reply
            except EndpointError as error:
                timeouts += self._note_error(error, max(at_once, slots.used))
                waited = isinstance(error.__cause__, TimeoutError) and at_once > 1
                if not waited or timeouts > _MAX_TIMEOUTS or on_text is not None:
                    raise
            finally:
                slots.used -= 1
                async with slots.waiting:
                    slots.waiting.notify_all()

    def _note_error(self, error: EndpointError, at_once: int) -> int:
        """Slow down for an error that may come from too many calls; return 1."""
        if at_once > 1 and (error.transient or error.status == 429):
            with self._lock:
                self.pace.note_failure()
        return 1


@dataclass(eq=False)
class _Slots:
    """The calls under way on one event loop."""

    waiting: Condition = field(default_factory=Condition)
    used: int = 0
