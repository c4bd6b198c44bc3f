"""What a reply is remembered under, as what, and how many are recalled at a time."""

import asyncio
import json
from asyncio import Future, Task
from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Protocol

from clew.llm.chat import Finish, Reply, Request, Shape
from clew.types import Usage

VERSION = "1"
"""Raise it when the meaning of a stored reply changes."""
FINISHES: Mapping[str, Finish] = {"stop": "stop", "length": "length", "refusal": "refusal"}


class Cache(Protocol):
    """Keeps texts by key; the knowledge base is one."""

    async def recall(self, keys: Sequence[str], /) -> Mapping[str, str]:
        """Return those that are known."""
        ...

    async def remember(self, items: Mapping[str, str], /) -> None:
        """Keep them; on return they survive a crash."""
        ...


class DictCache:
    """Keeps texts for as long as the process lives."""

    def __init__(self) -> None:
        self.items: dict[str, str] = {}

    async def recall(self, keys: Sequence[str], /) -> Mapping[str, str]:
        """Look them up."""
        return {key: self.items[key] for key in keys if key in self.items}

    async def remember(self, items: Mapping[str, str], /) -> None:
        """Put them in."""
        self.items.update(items)


def digest(model: str, request: Request) -> str:
    """Name a request by everything that can change its answer."""
    numbers = (request.temperature, request.max_tokens, request.stop, request.seed, request.sample)
    head = [VERSION, model, repr(numbers), _written(request.shape)]
    *before, last = request.messages or (None,)
    # Thousands of requests differ in their last turn only.
    name = _begun(*head, *[part for turn in before for part in (turn.role, turn.content)]).copy()
    if last is not None:
        _add(name, last.role, last.content)
    return name.hexdigest()


@lru_cache(16)
def _begun(*parts: str) -> blake2b:
    name = blake2b(digest_size=20)
    _add(name, *parts)
    return name


def _add(name: blake2b, *parts: str) -> None:
    for part in parts:  # lengths keep "ab" + "c" and "a" + "bc" apart
        raw = part.encode("utf-8", "surrogatepass")
        name.update(b"%d:" % len(raw) + raw)


@lru_cache(256)
def _written(shape: Shape | None) -> str:
    if shape is None:
        return ""
    return json.dumps([shape.mode, shape.name, shape.schema], sort_keys=True)


def pack(reply: Reply) -> str:
    """Write a reply as one text."""
    paid = (reply.usage.prompt_tokens, reply.usage.completion_tokens)
    return json.dumps([reply.text, reply.finish, reply.model, *paid], ensure_ascii=False)


def unpack(text: str) -> Reply:
    """Read a reply back; it costs nothing the second time."""
    said, finish, model, *paid = json.loads(text)
    prompt, completion = paid if len(paid) == 2 else (0, 0)
    usage = Usage(cached_calls=1, cached_prompt_tokens=prompt, cached_completion_tokens=completion)
    return Reply(said, usage, FINISHES[finish], model)


class Gathering:
    """Puts together what many tasks of one loop recall and remember while the cache is busy.

    A cache on disk costs about as much for thirty keys as for one.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._wanted: dict[str, Future[str | None]] = {}
        self._given: dict[str, tuple[str, Future[str | None]]] = {}
        self._work: Task[Mapping[str, str]] | None = None
        self._safe: deque[Future[str | None]] = deque()

    async def recall(self, key: str) -> str | None:
        """Ask for one text."""
        wanted = self._wanted.get(key)
        if wanted is None or wanted.cancelled():  # whoever asked first may have been stopped
            wanted = self._wanted[key] = asyncio.get_running_loop().create_future()
            self._start()
        return await wanted

    async def remember(self, key: str, text: str) -> None:
        """Hand over one text, and wait until it is safe."""
        kept: Future[str | None] = asyncio.get_running_loop().create_future()
        self._given[key] = (text, kept)
        self._start()
        await kept

    def _start(self) -> None:
        if self._work is not None:
            return
        wanted, self._wanted = self._wanted, {}
        given, self._given = self._given, {}
        if wanted or given:
            self._work = asyncio.ensure_future(self._visit(wanted, given))
            self._work.add_done_callback(lambda work: self._deliver(work, wanted, given))

    async def _visit(
        self,
        wanted: Mapping[str, Future[str | None]],
        given: Mapping[str, tuple[str, Future[str | None]]],
    ) -> Mapping[str, str]:
        if given:
            await self._cache.remember({key: text for key, (text, _) in given.items()})
        return await self._cache.recall(list(wanted)) if wanted else {}

    def _deliver(
        self,
        work: Task[Mapping[str, str]],
        wanted: Mapping[str, Future[str | None]],
        given: Mapping[str, tuple[str, Future[str | None]]],
    ) -> None:
        """Tell every waiter, with the error if there was one, and go again if more came."""
        self._work = None
        error = None if work.cancelled() else work.exception()
        good = error is None and not work.cancelled()
        waiting = [*wanted.items(), *((key, kept) for key, (_, kept) in given.items() if not good)]
        for key, waiter in waiting:
            if waiter.done():
                continue
            if work.cancelled():
                waiter.cancel()
            elif error is not None:
                waiter.set_exception(error)
            else:
                waiter.set_result(work.result().get(key))
        if good and given:
            idle = not self._safe
            self._safe += [kept for _, kept in given.values()]
            if idle:
                self._let_go()
        self._start()

    def _let_go(self) -> None:
        """Tell one giver at a time: each now reads its reply, and calls must not wait for all."""
        while self._safe and self._safe[0].done():
            self._safe.popleft()
        if self._safe:
            self._safe.popleft().set_result(None)
        if self._safe:
            asyncio.get_running_loop().call_soon(self._let_go)
