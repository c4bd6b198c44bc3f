"""Structured output: asks any endpoint for JSON that fits a Pydantic model.

The fallback order: native `json_schema`, a tool call, `json_object`, plain text. What an endpoint
does not support is detected at its first rejection and kept for the life of the process.
"""

import asyncio
from asyncio import AbstractEventLoop, Lock
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Generic
from weakref import WeakKeyDictionary

from clew.errors import ParseError
from clew.llm.chat import Chat, EndpointError, Hear, Message, Mode, Reply, Request, Shape
from clew.llm.fit import NoAnswer, Out, Parsed, outline, parse, schema_of
from clew.types import Usage

RUNGS: tuple[Mode | None, ...] = ("schema", "tool", "json", None)
TEXT = len(RUNGS) - 1
FIRST_ALONE = 20.0
"""Seconds other calls wait while the first call probes what an endpoint supports."""
QUOTED_REPLY = 2000

ASK = {
    "en": "Answer with JSON only, in exactly this shape:\n{shape}",
    "zh": "只回答 JSON，格式必须完全如下：\n{shape}",
}
MEND = {
    "en": "That answer cannot be used: {problem}. Give the whole answer again, as JSON only, "
    "short enough to be complete, in exactly this shape:\n{shape}",
    "zh": "上面的回答无法使用：{problem}。请重新给出完整的回答，只用 JSON，"
    "并且足够简短，格式必须完全如下：\n{shape}",
}


@dataclass(frozen=True, slots=True)
class Answer(Generic[Out]):
    """A parsed answer, its usage, and the repairs it needed."""

    value: Out
    usage: Usage
    dropped: int = 0
    """Items and optional fields that did not fit and were dropped."""
    cut: bool = False
    """The reply was truncated; these are its complete items."""
    mended: bool = False
    """A second request was needed."""


@dataclass(eq=False)
class Known:
    """The output mode that works at one endpoint."""

    rung: int = 0
    proven: bool = False
    _locks: WeakKeyDictionary[AbstractEventLoop, Lock] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    @asynccontextmanager
    async def first_alone(self) -> AsyncIterator[None]:
        """Let one call probe the modes while others wait for the result, for a limited time."""
        lock = self._locks.setdefault(asyncio.get_running_loop(), Lock())
        try:
            await asyncio.wait_for(lock.acquire(), FIRST_ALONE)
        except TimeoutError:
            yield
            return
        try:
            yield
        finally:
            lock.release()

    def learn(self, level: int) -> None:
        """Record the level that worked."""
        self.rung, self.proven = level, True


LEARNT: dict[str, Known] = {}
"""Capabilities by chat name (model and endpoint)."""


def pin(name: str, mode: Mode | None) -> None:
    """Set the output mode of a model without probing; None is plain text."""
    LEARNT[name] = Known(RUNGS.index(mode), proven=True)


@dataclass(frozen=True, eq=False)
class Shaped:
    """A chat with a fixed output mode, whatever was detected for its endpoint.

    Its name stays the model's own, which is part of document stamps and cache keys.
    """

    inner: Chat
    mode: Mode | None
    """None is plain text."""

    @property
    def name(self) -> str:
        """The wrapped chat's name."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Forward the request."""
        return await self.inner(request, hear)

    def known(self) -> Known:
        """The fixed mode as a proven capability."""
        return Known(RUNGS.index(self.mode), proven=True)


def _known(chat: Chat) -> Known:
    """The capability of a chat: fixed by one of its wrappers, else detected at its endpoint."""
    layer: object = chat
    while layer is not None:
        if isinstance(layer, Shaped):
            return layer.known()
        layer = getattr(layer, "inner", None)
    return LEARNT.setdefault(chat.name, Known())


@dataclass(frozen=True)
class Question(Generic[Out]):
    """A request, the model class its answer must fit, and the language of the instructions."""

    name: str
    out: type[Out]
    request: Request
    language: str = "en"

    def at(self, rung: int, proven: bool) -> Request:
        """Build the request for a level; the last two levels describe the format in the prompt."""
        mode = RUNGS[rung]
        shape = Shape(mode, self.name, schema_of(self.out), proven) if mode else None
        request = replace(self.request, shape=shape)
        if mode in ("schema", "tool"):
            return request
        *before, last = request.messages
        instruction = ASK.get(self.language, ASK["en"]).format(shape=outline(self.out))
        instructed = replace(last, content=f"{last.content}\n\n{instruction}")
        return replace(request, messages=(*before, instructed))

    def mend(self, request: Request, reply: Reply, problem: ParseError) -> Request:
        """Build the repair request: the start of the reply, the problem, the format."""
        template = MEND.get(self.language, MEND["en"])
        instruction = template.format(problem=problem, shape=outline(self.out))
        quoted = (Message("assistant", reply.text[:QUOTED_REPLY]),) if reply.text.strip() else ()
        turns = (*request.messages, *quoted, Message("user", instruction))
        return replace(request, messages=turns)


@dataclass
class _Talk(Generic[Out]):
    """One structured request under way, and its usage so far."""

    chat: Chat
    question: Question[Out]
    spent: Usage = field(default_factory=Usage)

    async def say(self, request: Request) -> Reply:
        """Send a request and add its usage."""
        reply = await self.chat(request)
        self.spent += reply.usage
        return reply

    async def mend(self, request: Request, reply: Reply, problem: ParseError) -> Answer[Out]:
        """Ask once more, naming the problem; a second failure is final."""
        if reply.finish == "refusal":
            raise ParseError(
                f"{self.chat.name} refuses to answer {self.question.name!r}: {_start(reply)}."
            ) from problem
        retried = await self.say(self.question.mend(request, reply, problem))
        try:
            return self.answer(parse(retried.text, self.question.out), mended=True)
        except ParseError as still:
            advice = "raise max_tokens" if retried.finish == "length" else "try a larger model"
            raise ParseError(
                f"{self.chat.name} gives no usable answer to {self.question.name!r}, twice asked "
                f"({still}; it begins {_start(retried)}): {advice}."
            ) from still

    def answer(self, parsed: Parsed[Out], mended: bool = False) -> Answer[Out]:
        """Build the answer."""
        return Answer(parsed.value, self.spent, parsed.dropped, parsed.cut, mended)


async def ask(chat: Chat, question: Question[Out]) -> Answer[Out]:
    """Ask in the mode known to work, or probe for one; ParseError if no reply is usable."""
    capability = _known(chat)
    exchange = _Talk(chat, question)
    if not capability.proven:
        async with capability.first_alone():
            if not capability.proven:
                return await _explore(exchange, capability)
    return await _ask_at(exchange, capability.rung, proven=True)


async def _ask_at(exchange: _Talk[Out], level: int, proven: bool) -> Answer[Out]:
    """Ask at one level, with one repair."""
    request = exchange.question.at(level, proven)
    reply = await exchange.say(request)
    try:
        return exchange.answer(parse(reply.text, exchange.question.out))
    except ParseError as problem:
        return await exchange.mend(request, reply, problem)


async def _explore(exchange: _Talk[Out], capability: Known) -> Answer[Out]:
    """Try the levels in order; one counts as unsupported only if a later one works."""
    for level in range(TEXT):
        request = exchange.question.at(level, proven=False)
        try:
            reply = await _say_twice(exchange, request)
        except EndpointError as error:
            if not error.refuses(request.shape):
                raise
            continue
        try:
            answer = exchange.answer(parse(reply.text, exchange.question.out))
        except NoAnswer as problem:  # the endpoint ignored the format
            if reply.finish == "refusal":
                return await exchange.mend(request, reply, problem)
            continue
        except ParseError as problem:
            answer = await exchange.mend(request, reply, problem)
        capability.learn(level)
        return answer
    answer = await _ask_at(exchange, TEXT, proven=False)
    capability.learn(TEXT)
    return answer


async def _say_twice(exchange: _Talk[Out], request: Request) -> Reply:
    """Retry once after an HTTP 500: an unsupported format fails again, a mishap rarely."""
    try:
        return await exchange.say(request)
    except EndpointError as error:
        if error.status != 500 or not error.refuses(request.shape):
            raise
    return await exchange.say(request)


def _start(reply: Reply) -> str:
    return repr(" ".join(reply.text[:400].split())[:80])
