"""The reply cache: its protocol, keys and encoding, and batched access to it."""

import asyncio
import json
from asyncio import Future, Task
from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Protocol

from clew.llm.chat import FinishReason, Reply, Request, ResponseFormat
from clew.text.unicode import mark_text
from clew.types import Usage

CACHE_VERSION = "1"
"""Increment when the meaning of a stored reply changes."""
FINISH_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "refusal": "refusal",
}


class Cache(Protocol):
    """Stores texts by key; a knowledge base provides one."""

    async def get(self, keys: Sequence[str], /) -> Mapping[str, str]:
        """Return the values of the keys that are stored."""

    async def set(self, items: Mapping[str, str], /) -> None:
        """Store the items durably."""


class DictCache:
    """In-memory cache."""

    def __init__(self) -> None:
        self.items: dict[str, str] = {}

    async def get(self, keys: Sequence[str], /) -> Mapping[str, str]:
        """Return the values of the keys that are stored."""
        return {key: self.items[key] for key in keys if key in self.items}

    async def set(self, items: Mapping[str, str], /) -> None:
        """Store the items."""
        self.items.update(items)


def cache_key(model: str, request: Request) -> str:
    """Hash everything in a request that can change its reply.

    Replies made from one text begin with its mark, so that they can be forgotten with it.
    """
    limit = request.key_tokens or request.max_tokens
    numbers = (request.temperature, limit, request.stop, request.seed, request.sample)
    head = [CACHE_VERSION, model, repr(numbers), _encode_format(request.response_format)]
    *earlier, last = request.messages or (None,)
    # Thousands of requests differ only in their last message, so the rest is hashed once.
    hasher = _hash_prefix(
        *head, *[part for turn in earlier for part in (turn.role, turn.content)]
    ).copy()
    if last is not None:
        _update_hash(hasher, last.role, last.content)
    return (mark_text(request.text) if request.text else "") + hasher.hexdigest()


@lru_cache(16)
def _hash_prefix(*parts: str) -> blake2b:
    hasher = blake2b(digest_size=20)
    _update_hash(hasher, *parts)
    return hasher


def _update_hash(hasher: blake2b, *parts: str) -> None:
    for part in parts:  # lengths keep "ab" + "c" and "a" + "bc" apart
        raw = part.encode("utf-8", "surrogatepass")
        hasher.update(b"%d:" % len(raw) + raw)


@lru_cache(256)
def _encode_format(shape: ResponseFormat | None) -> str:
    if shape is None:
        return ""
    tools = [[tool.name, tool.about, tool.schema] for tool in shape.tools]
    parts = [shape.mode, shape.name, shape.schema, *([tools] if tools else ())]
    return json.dumps(parts, sort_keys=True)


def encode_reply(reply: Reply) -> str:
    """Serialise a reply as JSON."""
    token_counts = (reply.usage.prompt_tokens, reply.usage.completion_tokens)
    return json.dumps([reply.text, reply.finish, reply.model, *token_counts], ensure_ascii=False)


def decode_reply(text: str) -> Reply:
    """Deserialise a reply; its tokens count as cached."""
    reply_text, finish, model, *token_counts = json.loads(text)
    prompt, completion = token_counts if len(token_counts) == 2 else (0, 0)
    usage = Usage(cached_calls=1, cached_prompt_tokens=prompt, cached_completion_tokens=completion)
    return Reply(reply_text, usage, FINISH_REASONS[finish], model)


class BatchedCache:
    """Batches the reads and writes that tasks of one event loop make while the cache is busy.

    A cache on disk takes about as long for thirty keys as for one.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._pending_reads: dict[str, Future[str | None]] = {}
        self._pending_writes: dict[str, tuple[str, Future[str | None]]] = {}
        self._batch: Task[Mapping[str, str]] | None = None
        self._unreleased: deque[Future[str | None]] = deque()

    async def get(self, key: str) -> str | None:
        """Read one value."""
        pending = self._pending_reads.get(key)
        if pending is None or pending.cancelled():  # the first reader may have been cancelled
            pending = self._pending_reads[key] = asyncio.get_running_loop().create_future()
            self._start_batch()
        return await pending

    async def set(self, key: str, text: str) -> None:
        """Write one value and wait until it is stored."""
        pending: Future[str | None] = asyncio.get_running_loop().create_future()
        self._pending_writes[key] = (text, pending)
        self._start_batch()
        await pending

    def _start_batch(self) -> None:
        if self._batch is not None:
            return
        reads, self._pending_reads = self._pending_reads, {}
        writes, self._pending_writes = self._pending_writes, {}
        if reads or writes:
            self._batch = asyncio.ensure_future(self._run_batch(reads, writes))
            self._batch.add_done_callback(lambda work: self._resolve_waiters(work, reads, writes))

    async def _run_batch(
        self,
        reads: Mapping[str, Future[str | None]],
        writes: Mapping[str, tuple[str, Future[str | None]]],
    ) -> Mapping[str, str]:
        if writes:
            await self._cache.set({key: text for key, (text, _) in writes.items()})
        return await self._cache.get(list(reads)) if reads else {}

    def _resolve_waiters(
        self,
        batch: Task[Mapping[str, str]],
        reads: Mapping[str, Future[str | None]],
        writes: Mapping[str, tuple[str, Future[str | None]]],
    ) -> None:
        """Resolve every waiting future, or set the error, and start the next batch if needed."""
        self._batch = None
        error = None if batch.cancelled() else batch.exception()
        ok = error is None and not batch.cancelled()
        waiting = [*reads.items(), *((key, fut) for key, (_, fut) in writes.items() if not ok)]
        for key, waiter in waiting:
            if waiter.done():
                continue
            if batch.cancelled():
                waiter.cancel()
            elif error is not None:
                waiter.set_exception(error)
            else:
                waiter.set_result(batch.result().get(key))
        if ok and writes:
            idle = not self._unreleased
            self._unreleased += [fut for _, fut in writes.values()]
            if idle:
                self._release_next()
        self._start_batch()

    def _release_next(self) -> None:
        """Resolve one writer per loop iteration, so that other calls get their turn between."""
        while self._unreleased and self._unreleased[0].done():
            self._unreleased.popleft()
        if self._unreleased:
            self._unreleased.popleft().set_result(None)
        if self._unreleased:
            asyncio.get_running_loop().call_soon(self._release_next)
