"""Do the tasks of a build in this process: read a file, extract from a document, embed texts.

Calls of all workers share slots, rates and the budget of the build (`SharedLimit`).
"""

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from clew.builder import Builder
from clew.config import ModelSettings, Price, Settings
from clew.engine import KnowledgeBase
from clew.errors import AuthError, ConfigError, StoreError
from clew.extract.model_extractors import DocumentExtractor
from clew.ingest.remote import decode_document, do_read_task, encode_extractions, encode_vectors
from clew.llm.budget import BudgetExceeded, UsageBudget, UsageLimits
from clew.llm.chat import Chat, EndpointError, Reply, Request, TextCallback
from clew.llm.embed import Embedder, can_quote
from clew.llm.embed_endpoint import EndpointCall, EndpointEmbedder
from clew.llm.limits import DEFAULT_REPLY_TOKENS
from clew.llm.openai_api import estimate_prompt_tokens
from clew.llm.wrappers import UsageMeter
from clew.types import Chunk, Usage

if TYPE_CHECKING:
    from clew.store.postgres.jobs import JobQueue

_SLOT_WAIT = 0.05  # seconds between two attempts to take a slot
_SLOT_BITS = 62  # of the number of a slot, chosen here: it can be freed whatever was answered


@dataclass(eq=False)
class TaskScope:
    """The build that a task belongs to, and what its model calls have used."""

    run: str = ""
    usage: Usage = Usage()


# Per task: model calls of tasks that run at once are counted apart.
SCOPE: ContextVar[TaskScope] = ContextVar("clew_task_scope")


class TaskMeter(UsageMeter):
    """Counts the usage of each call for the task that made it, too."""

    def add(self, usage: Usage) -> None:
        """Add the usage of one call."""
        super().add(usage)
        if scope := SCOPE.get(None):
            scope.usage += usage


@dataclass(eq=False)
class TaskHandler:
    """Runs tasks with the models and the embedder of a knowledge base."""

    base: KnowledgeBase
    counted: bool = False
    """Whether paid calls are counted elsewhere: then results tell of cached ones only."""
    _extractors: dict[str, DocumentExtractor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Count by task from now on."""
        self.base.models.meter = TaskMeter()

    async def __call__(self, kind: str, payload: bytes, run: str = "") -> bytes:
        """Run one task; ConfigError if this process has other settings than the build."""
        scope = TaskScope(run)
        token = SCOPE.set(scope)
        try:
            if kind == "read":
                return await do_read_task(payload)
            return await (self._embed if kind == "embed" else self._extract)(payload, scope)
        finally:
            SCOPE.reset(token)

    async def _extract(self, payload: bytes, scope: TaskScope) -> bytes:
        task = json.loads(payload)
        extract = self._find_extractor(task["extractor"])
        if repr(extract) != task["shown"]:
            raise ConfigError(
                f"the build extracts by {task['shown']}, this worker by {extract!r}; give it the "
                "same [models] and [extract] in clew.toml"
            )
        chunks = [Chunk(**chunk) for chunk in task["chunks"]]
        dropped: Counter[str] = Counter(getattr(extract, "dropped", None) or {})
        found = await extract(decode_document(task["document"]), chunks)
        now: Counter[str] = Counter(getattr(extract, "dropped", None) or {})
        usage = scope.usage
        if self.counted:
            usage = replace(usage, calls=0, prompt_tokens=0, completion_tokens=0, money=0.0)
        return encode_extractions(found, now - dropped, usage)

    def _find_extractor(self, name: str) -> DocumentExtractor:
        if name not in self._extractors:
            builder: Builder = self.base.builder
            self._extractors[name] = builder.make_task_extractor(name)
        return self._extractors[name]

    async def _embed(self, payload: bytes, scope: TaskScope) -> bytes:
        del scope  # a result is vectors alone; workers count by the slots of their calls
        task = json.loads(payload)
        embed = self.base.embed
        if embed is None or embed.name != task["embedder"]:
            held = embed.name if embed else "none"
            raise ConfigError(
                f"the build embeds with {task['embedder']!r}, this worker with {held!r}; give it "
                "the same [embed] in clew.toml"
            )
        if "passages" in task and can_quote(embed):
            return encode_vectors(await embed.embed_quotes(task["passages"]))
        return encode_vectors(await embed(task["texts"]))


class CallSlots(Protocol):
    """Slots, rates and money that the calls of several processes share."""

    async def take(
        self, slot: int, model: str, run: str, most: int, seconds: float, about: Usage
    ) -> bool:
        """Take a slot if one is free."""

    async def free(self, slot: int, run: str, used: Usage) -> None:
        """Give a slot back, and count what the call used."""

    async def reserve(self, model: str, what: str, seconds: float) -> float:
        """Reserve so many seconds of a rate; return how long to wait before using it."""

    async def is_out_of_money(self, run: str) -> bool:
        """Whether a build has spent its budget."""


@dataclass(eq=False)
class ModelSlots:
    """Takes and frees slots for calls, of which all workers together have so many per model."""

    queue: "JobQueue"
    owed: dict[int, tuple[str, Usage]] = field(default_factory=dict)
    """Slots that are still to be freed, as the connection was lost: their build and usage."""

    async def take(
        self, slot: int, model: str, run: str, most: int, seconds: float, about: Usage
    ) -> bool:
        """Take a slot if one is free; a cancelled call leaves nothing that runs on."""
        given = (slot, model, run, most, seconds, about)
        taking = asyncio.create_task(asyncio.to_thread(self.queue.take_slot, *given))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            # Else the thread could take it after it was freed, and nobody would free it.
            await asyncio.wait([taking])
            raise

    async def free(self, slot: int, run: str, used: Usage) -> None:
        """Give a slot back, and count what the call used; later if the connection is lost."""
        try:
            await asyncio.to_thread(self.queue.free_slot, slot, run, used)
        except StoreError:
            self.owed[slot] = (run, used)

    async def reserve(self, model: str, what: str, seconds: float) -> float:
        """Reserve so many seconds of a rate; return how long to wait before using it."""
        return await asyncio.to_thread(self.queue.reserve, model, what, seconds)

    async def is_out_of_money(self, run: str) -> bool:
        """Whether a build has spent its budget."""
        return await asyncio.to_thread(self.queue.is_out_of_money, run)

    async def settle(self) -> None:
        """Free the slots that could not be freed before."""
        for slot, (run, used) in list(self.owed.items()):
            await asyncio.to_thread(self.queue.free_slot, slot, run, used)
            del self.owed[slot]


@dataclass(frozen=True, eq=False)
class SharedLimit:
    """Lets calls to a model through: slots, rates and the budget are those of all workers."""

    name: str
    slots: CallSlots
    price: Price | None
    """None: calls are not counted."""
    most: int
    """Calls at once."""
    seconds: float
    """After which a slot is taken from a call."""

    @asynccontextmanager
    async def call(self, about: Usage) -> AsyncIterator[EndpointCall]:
        """Hold a slot during a call, and count what it used; if that is not told, `about`."""
        run = (SCOPE.get(None) or TaskScope()).run
        slot, call = secrets.randbits(_SLOT_BITS), EndpointCall()
        try:
            await self._wait_for_slot(slot, run, self._count(about))
            call.used = about
            yield call
        except AuthError:
            call.used = Usage()
            raise
        except EndpointError as error:
            if error.status is not None or error.not_listening:
                call.used = Usage()  # refused: the endpoint has done nothing that costs
            raise
        finally:
            await asyncio.shield(self.slots.free(slot, run, self._count(call.used)))

    def _count(self, used: Usage) -> Usage:
        if self.price is None:
            return Usage()
        return replace(used, money=used.money or self.price.cost(used))

    async def _wait_for_slot(self, slot: int, run: str, about: Usage) -> None:
        given = (slot, self.name, run, self.most, self.seconds, about)
        while not await self.slots.take(*given):
            if await self.slots.is_out_of_money(run):
                raise BudgetExceeded("the budget of this build is spent")
            await asyncio.sleep(_SLOT_WAIT)


def share_embedder(embed: Embedder | None, slots: CallSlots, settings: Settings) -> None:
    """Let an embedder at an endpoint take slots; its calls are counted if it has a price."""
    if isinstance(embed, EndpointEmbedder):
        name = f"{embed.model} at {embed.base_url}, embedding"
        price = settings.models.prices.get(embed.model)
        embed.gate = SharedLimit(
            name, slots, price, settings.embed.concurrency, settings.embed.timeout + 1
        ).call


def share_budget(
    base: KnowledgeBase, budget: float | None, count: Callable[[Usage], None]
) -> Callable[[Usage], None]:
    """Let calls of the build itself count against its budget, too; return who is told of others."""
    if budget is None:
        return count
    base.models.check_prices(["extract"])
    base.models.check_embedder_price(base.embed)
    spending = base.models.budget = UsageBudget(UsageLimits(money=budget))

    def count_both(usage: Usage) -> None:
        count(usage)
        spending.add(usage)

    return count_both


@dataclass(frozen=True, eq=False)
class SharedLimitChat:
    """Takes a slot and a share of the rate of its model, which all workers have in common."""

    inner: Chat
    model: str
    slots: CallSlots
    settings: ModelSettings

    @property
    def name(self) -> str:
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Wait for a slot, send the request, and count what it cost."""
        await self._wait_for_rate(request)
        price = self.settings.prices.get(self.model, Price())
        most, seconds = self.settings.concurrency, self.settings.timeout + 1
        limit = SharedLimit(self.name, self.slots, price, most, seconds)
        async with limit.call(Usage(1, estimate_prompt_tokens(request.messages))) as call:
            reply = await self.inner(request, on_text)
            call.used = reply.usage
            return reply

    async def _wait_for_rate(self, request: Request) -> None:
        tokens = estimate_prompt_tokens(request.messages) + (
            request.max_tokens or DEFAULT_REPLY_TOKENS
        )
        rates = {
            "requests": (self.settings.requests_per_minute, 1.0),
            "tokens": (self.settings.tokens_per_minute, float(tokens)),
        }
        waits = [
            await self.slots.reserve(self.name, what, amount * 60 / per_minute)
            for what, (per_minute, amount) in rates.items()
            if per_minute
        ]
        if waits and max(waits) > 0:
            await asyncio.sleep(max(waits))
