"""Chat wrappers for caching, usage metering, tracing and resampling; each is itself a chat."""

import asyncio
import importlib
from asyncio import AbstractEventLoop, Future
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from clew.config import Price
from clew.errors import ModelError
from clew.llm.cache import BatchedCache, Cache, cache_key, decode_reply, encode_reply
from clew.llm.chat import Chat, Reply, Request, TextCallback
from clew.types import Usage


@dataclass(eq=False)
class CachedChat:
    """Answers from `cache`; identical concurrent requests go to `inner` once."""

    inner: Chat
    cache: Cache
    _by_loop: WeakKeyDictionary[AbstractEventLoop, "_LoopState"] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    @property
    def name(self) -> str:
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Return the cached reply, wait for an identical request in flight, or send it."""
        key = cache_key(self.inner.name, request)
        loop = asyncio.get_running_loop()
        state = self._by_loop.get(loop)
        if state is None:
            state = self._by_loop[loop] = _LoopState(BatchedCache(self.cache))
        while (pending := state.in_flight.get(key)) is not None:
            await asyncio.wait({pending})
            if not pending.cancelled():  # else the first caller was cancelled: send it ourselves
                return _replay(pending.result(), on_text)
        pending = state.in_flight[key] = loop.create_future()
        try:
            reply = await self._get_or_ask(state.cache, key, request, on_text)
            pending.set_result(reply)
            return reply
        except ModelError as error:  # not a budget's end: who waits may have another one
            pending.set_exception(error)
            pending.exception()  # marks it as retrieved, else asyncio logs a warning
            raise
        finally:
            pending.cancel()
            del state.in_flight[key]

    async def _get_or_ask(
        self, cache: BatchedCache, key: str, request: Request, on_text: TextCallback | None
    ) -> Reply:
        """Return the cached reply, or ask and store the new one; useless replies are not stored."""
        stored = await cache.get(key)
        # An earlier version kept them, so the stored one is checked as well.
        if stored is not None and _may_keep(request, known := decode_reply(stored)):
            return _replay(known, on_text)
        reply = await self.inner(request, on_text)
        if _may_keep(request, reply):
            await cache.set(key, encode_reply(reply))
        return reply


def _may_keep(request: Request, reply: Reply) -> bool:
    """Whether a reply is worth giving again: it has a text, and who asked can use it."""
    return bool(reply.text) and (request.keep is None or request.keep(reply))


@dataclass(eq=False, slots=True)
class _LoopState:
    """The requests in flight on one event loop."""

    cache: BatchedCache
    in_flight: dict[str, Future[Reply]] = field(default_factory=dict)


def _replay(reply: Reply, on_text: TextCallback | None) -> Reply:
    """Return a known reply again, its tokens counted as cached."""
    if on_text is not None:
        on_text(reply.text)
    usage = reply.usage
    return replace(
        reply,
        usage=Usage(
            cached_calls=1,
            cached_prompt_tokens=usage.prompt_tokens + usage.cached_prompt_tokens,
            cached_completion_tokens=usage.completion_tokens + usage.cached_completion_tokens,
        ),
    )


class UsageMeter:
    """Thread-safe total of token usage."""

    def __init__(self) -> None:
        self._total = Usage()
        self._lock = Lock()

    def add(self, usage: Usage) -> None:
        """Add the usage of one call."""
        with self._lock:
            self._total += usage

    @property
    def total(self) -> Usage:
        """Usage so far."""
        with self._lock:
            return self._total


@dataclass(eq=False)
class MeteredChat:
    """Adds the price of each reply to its usage, and the usage to `meter`."""

    inner: Chat
    meter: UsageMeter = field(default_factory=UsageMeter)
    price: Price = Price()

    @property
    def name(self) -> str:
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Send the request and record its usage."""
        reply = await self.inner(request, on_text)
        money = self.price.cost(reply.usage)
        if money:
            usage = replace(reply.usage, money=reply.usage.money + money)
            reply = replace(reply, usage=usage)
        self.meter.add(reply.usage)
        return reply


@dataclass(eq=False)
class TracedChat:
    """Emits an OpenTelemetry span per call if its API is installed; else passes calls through."""

    inner: Chat
    tracer: Any = None

    def __post_init__(self) -> None:
        if self.tracer is None:
            self.tracer = _find_tracer()

    @property
    def name(self) -> str:
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Send the request within a span."""
        if self.tracer is None:
            return await self.inner(request, on_text)
        with self.tracer.start_as_current_span("chat") as span:
            span.set_attribute("gen_ai.operation.name", "chat")
            span.set_attribute("gen_ai.request.model", self.name)
            span.set_attribute("gen_ai.request.temperature", request.temperature)
            reply = await self.inner(request, on_text)
            span.set_attribute("gen_ai.response.finish_reasons", (reply.finish,))
            span.set_attribute("gen_ai.usage.input_tokens", reply.usage.prompt_tokens)
            span.set_attribute("gen_ai.usage.output_tokens", reply.usage.completion_tokens)
            return reply


def _find_tracer() -> Any:
    """Load the OpenTelemetry tracer if installed; it is an optional dependency."""
    try:
        return importlib.import_module("opentelemetry.trace").get_tracer("clew")
    except ImportError:
        return None


@dataclass(frozen=True, eq=False)
class ResampledChat:
    """Requests another sample than the cached one."""

    inner: Chat
    sample: int

    @property
    def name(self) -> str:
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Forward the request with this sample number."""
        return await self.inner(replace(request, sample=self.sample), on_text)
