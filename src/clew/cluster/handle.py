"""Do the tasks of a build in this process: read a file, extract from a document, embed texts.

Model calls of all workers share slots, rates and the budget of the build (`SharedLimitChat`).
"""

import asyncio
import json
import secrets
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.builder import Builder
from clew.config import ModelSettings, Price
from clew.engine import KnowledgeBase
from clew.errors import ConfigError, StoreError
from clew.extract.model_extractors import DocumentExtractor
from clew.ingest.remote import decode_document, do_read_task, encode_extractions, encode_vectors
from clew.llm.budget import BudgetExceeded
from clew.llm.chat import Chat, Reply, Request, TextCallback
from clew.llm.embed import can_quote
from clew.llm.limits import DEFAULT_REPLY_TOKENS
from clew.llm.openai_api import estimate_prompt_tokens
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


@dataclass(eq=False)
class TaskHandler:
    """Runs tasks with the models and the embedder of a knowledge base."""

    base: KnowledgeBase
    _extractors: dict[str, DocumentExtractor] = field(default_factory=dict)

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
        return encode_extractions(found, now - dropped, scope.usage)

    def _find_extractor(self, name: str) -> DocumentExtractor:
        if name not in self._extractors:
            builder: Builder = self.base.builder
            self._extractors[name] = builder.make_task_extractor(name)
        return self._extractors[name]

    async def _embed(self, payload: bytes, scope: TaskScope) -> bytes:
        del scope  # embedding is not metered
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


@dataclass(frozen=True, eq=False)
class MeteringChat:
    """Counts the usage of each call for the task that made it."""

    inner: Chat
    model: str
    settings: ModelSettings

    @property
    def name(self) -> str:
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Send the request."""
        reply = await self.inner(request, on_text)
        count_usage(reply, self.settings.prices.get(self.model, Price()))
        return reply


def count_usage(reply: Reply, price: Price) -> float:
    """Count a reply for the current task; return what it cost."""
    money = price.cost(reply.usage)
    if scope := SCOPE.get(None):
        used = reply.usage
        scope.usage += Usage(used.calls, used.prompt_tokens, used.completion_tokens, 0, money)
    return money


@dataclass(eq=False)
class ModelSlots:
    """Takes and frees slots for calls, of which all workers together have so many per model."""

    queue: "JobQueue"
    owed: dict[int, tuple[str, float]] = field(default_factory=dict)
    """Slots that are still to be freed, as the connection was lost: their build and money."""

    async def take(self, slot: int, model: str, run: str, most: int, seconds: float) -> bool:
        """Take a slot if one is free; a cancelled call leaves nothing that runs on."""
        given = (slot, model, run, most, seconds)
        taking = asyncio.create_task(asyncio.to_thread(self.queue.take_slot, *given))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            # Else the thread could take it after it was freed, and nobody would free it.
            await asyncio.wait([taking])
            raise

    async def free(self, slot: int, run: str, money: float) -> None:
        """Give a slot back, and count what the call cost; later if the connection is lost."""
        try:
            await asyncio.to_thread(self.queue.free_slot, slot, run, money)
        except StoreError:
            self.owed[slot] = (run, money)

    async def settle(self) -> None:
        """Free the slots that could not be freed before."""
        for slot, (run, money) in list(self.owed.items()):
            await asyncio.to_thread(self.queue.free_slot, slot, run, money)
            del self.owed[slot]


@dataclass(frozen=True, eq=False)
class SharedLimitChat:
    """Takes a slot and a share of the rate of its model, which all workers have in common."""

    inner: Chat
    model: str
    slots: ModelSlots
    settings: ModelSettings

    @property
    def name(self) -> str:
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Wait for a slot, send the request, and count what it cost."""
        scope = SCOPE.get(None) or TaskScope()
        await self._wait_for_rate(request)
        slot, money = secrets.randbits(_SLOT_BITS), 0.0
        try:
            await self._wait_for_slot(slot, scope.run)
            reply = await self.inner(request, on_text)
            money = count_usage(reply, self.settings.prices.get(self.model, Price()))
            return reply
        finally:
            await asyncio.shield(self.slots.free(slot, scope.run, money))

    async def _wait_for_slot(self, slot: int, run: str) -> None:
        most, seconds = self.settings.concurrency, self.settings.timeout + 1
        while not await self.slots.take(slot, self.name, run, most, seconds):
            if await asyncio.to_thread(self.slots.queue.is_out_of_money, run):
                raise BudgetExceeded("the budget of this build is spent")
            await asyncio.sleep(_SLOT_WAIT)

    async def _wait_for_rate(self, request: Request) -> None:
        tokens = estimate_prompt_tokens(request.messages) + (
            request.max_tokens or DEFAULT_REPLY_TOKENS
        )
        rates = {
            "requests": (self.settings.requests_per_minute, 1.0),
            "tokens": (self.settings.tokens_per_minute, float(tokens)),
        }
        reserve = self.slots.queue.reserve
        waits = [
            await asyncio.to_thread(reserve, self.name, what, amount * 60 / per_minute)
            for what, (per_minute, amount) in rates.items()
            if per_minute
        ]
        if waits and max(waits) > 0:
            await asyncio.sleep(max(waits))
