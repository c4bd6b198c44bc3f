"""Wrappers that remember, count and trace: each adds one habit to a chat and is itself a chat."""

import asyncio
import importlib
from asyncio import AbstractEventLoop, Future
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from clew.errors import ClewError
from clew.llm.cache import Cache, Gathering, digest, pack, unpack
from clew.llm.chat import Chat, Hear, Reply, Request
from clew.model_settings import Price
from clew.types import Usage

__all__ = ["Cached", "Counted", "Meter", "Price", "Traced"]


@dataclass(eq=False)
class Cached:
    """Answers from `cache`; what is asked several times at once is asked of `inner` once."""

    inner: Chat
    cache: Cache
    _desks: WeakKeyDictionary[AbstractEventLoop, "_Desk"] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Recall, or wait for whoever asks the same, or ask."""
        key = digest(self.inner.name, request)
        loop = asyncio.get_running_loop()
        desk = self._desks.get(loop)
        if desk is None:
            desk = self._desks[loop] = _Desk(Gathering(self.cache))
        while (first := desk.asked.get(key)) is not None:
            await asyncio.wait({first})
            if not first.cancelled():  # else the asker was stopped: the next in line asks
                return _again(first.result(), hear)
        first = desk.asked[key] = loop.create_future()
        try:
            reply = await self._answer(desk.memory, key, request, hear)
            first.set_result(reply)
            return reply
        except ClewError as error:
            first.set_exception(error)
            first.exception()  # asyncio complains about errors nobody looked at
            raise
        finally:
            first.cancel()
            del desk.asked[key]

    async def _answer(
        self, memory: Gathering, key: str, request: Request, hear: Hear | None
    ) -> Reply:
        """Recall, or ask and remember before anyone hears of it; silence is not remembered."""
        known = await memory.recall(key)
        if known is not None:
            return _again(unpack(known), hear)
        reply = await self.inner(request, hear)
        if reply.text:
            await memory.remember(key, pack(reply))
        return reply


@dataclass(eq=False, slots=True)
class _Desk:
    """What one event loop is asking at the moment."""

    memory: Gathering
    asked: dict[str, Future[Reply]] = field(default_factory=dict)


def _again(reply: Reply, hear: Hear | None) -> Reply:
    """Give a known reply once more, at no cost."""
    if hear is not None:
        hear(reply.text)
    paid = reply.usage
    return replace(
        reply,
        usage=Usage(
            cached_calls=1,
            cached_prompt_tokens=paid.prompt_tokens + paid.cached_prompt_tokens,
            cached_completion_tokens=paid.completion_tokens + paid.cached_completion_tokens,
        ),
    )


class Meter:
    """Adds up bills, from any task or thread."""

    def __init__(self) -> None:
        self._total = Usage()
        self._lock = Lock()

    def add(self, usage: Usage) -> None:
        """Add one bill."""
        with self._lock:
            self._total += usage

    @property
    def total(self) -> Usage:
        """All bills so far."""
        with self._lock:
            return self._total


@dataclass(eq=False)
class Counted:
    """Prices each reply and adds it to `meter`."""

    inner: Chat
    meter: Meter = field(default_factory=Meter)
    price: Price = Price()

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Ask, and write the bill."""
        reply = await self.inner(request, hear)
        money = self.price.of(reply.usage)
        if money:
            usage = replace(reply.usage, money=reply.usage.money + money)
            reply = replace(reply, usage=usage)
        self.meter.add(reply.usage)
        return reply


@dataclass(eq=False)
class Traced:
    """Writes an OpenTelemetry span for each call where its API is installed; else does nothing."""

    inner: Chat
    tracer: Any = None

    def __post_init__(self) -> None:
        if self.tracer is None:
            self.tracer = _tracer()

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Ask within a span."""
        if self.tracer is None:
            return await self.inner(request, hear)
        with self.tracer.start_as_current_span("chat") as span:
            span.set_attribute("gen_ai.operation.name", "chat")
            span.set_attribute("gen_ai.request.model", self.name)
            span.set_attribute("gen_ai.request.temperature", request.temperature)
            reply = await self.inner(request, hear)
            span.set_attribute("gen_ai.response.finish_reasons", (reply.finish,))
            span.set_attribute("gen_ai.usage.input_tokens", reply.usage.prompt_tokens)
            span.set_attribute("gen_ai.usage.output_tokens", reply.usage.completion_tokens)
            return reply


def _tracer() -> Any:
    """Find a tracer; it is never a dependency."""
    try:
        return importlib.import_module("opentelemetry.trace").get_tracer("clew")
    except ImportError:
        return None


@dataclass(frozen=True, eq=False)
class Resampled:
    """Asks for another sample than the one that is remembered."""

    inner: Chat
    sample: int

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Pass the request on under another sample number."""
        return await self.inner(replace(request, sample=self.sample), hear)
