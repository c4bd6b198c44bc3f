"""Asking for an answer of a given shape, from any endpoint, and bearing with how it comes.

The ladder: native `json_schema`, a tool call, `json_object`, plain text. What an endpoint cannot
do is learnt from its first refusal and remembered for as long as the process lives.
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
"""Seconds for which others wait while the first call finds out what an endpoint can do."""
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
    """A shaped answer and what it took."""

    value: Out
    usage: Usage
    dropped: int = 0
    """Items and optional fields that did not fit and were left out."""
    cut: bool = False
    """The reply broke off; these are its complete items."""
    mended: bool = False
    """A second turn was needed."""


@dataclass(eq=False)
class Known:
    """What was learnt about one endpoint."""

    rung: int = 0
    proven: bool = False
    _locks: WeakKeyDictionary[AbstractEventLoop, Lock] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    @asynccontextmanager
    async def first_alone(self) -> AsyncIterator[None]:
        """Let one call try the ladder while others wait for what it finds, though not for ever."""
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

    def learn(self, rung: int) -> None:
        """Remember the rung that worked."""
        self.rung, self.proven = rung, True


LEARNT: dict[str, Known] = {}
"""By a chat's name: model and endpoint."""


def pin(name: str, mode: Mode | None) -> None:
    """Settle from the start how this model is asked; None is plain text."""
    LEARNT[name] = Known(RUNGS.index(mode), proven=True)


@dataclass(frozen=True, eq=False)
class Shaped:
    """A chat whose way of being asked for JSON is settled, whatever others learn of the endpoint.

    Its name stays the model's own: that one marks what was extracted and remembered.
    """

    inner: Chat
    mode: Mode | None
    """None is plain text."""

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Pass the request on."""
        return await self.inner(request, hear)

    def known(self) -> Known:
        """What need not be found out any more."""
        return Known(RUNGS.index(self.mode), proven=True)


def _known(chat: Chat) -> Known:
    """How a chat is asked: as it is settled in one of its layers, else as its endpoint taught."""
    layer: object = chat
    while layer is not None:
        if isinstance(layer, Shaped):
            return layer.known()
        layer = getattr(layer, "inner", None)
    return LEARNT.setdefault(chat.name, Known())


@dataclass(frozen=True)
class Question(Generic[Out]):
    """Messages, the shape of their answer, and the words to ask for it in."""

    name: str
    out: type[Out]
    request: Request
    language: str = "en"

    def at(self, rung: int, proven: bool) -> Request:
        """Write the request for a rung; the lower two need the shape in words."""
        mode = RUNGS[rung]
        shape = Shape(mode, self.name, schema_of(self.out), proven) if mode else None
        request = replace(self.request, shape=shape)
        if mode in ("schema", "tool"):
            return request
        *before, last = request.messages
        told = ASK.get(self.language, ASK["en"]).format(shape=outline(self.out))
        asked = replace(last, content=f"{last.content}\n\n{told}")
        return replace(request, messages=(*before, asked))

    def mend(self, request: Request, reply: Reply, problem: ParseError) -> Request:
        """Write the repair turn: the reply's beginning, what is wrong with it, the shape."""
        words = MEND.get(self.language, MEND["en"])
        told = words.format(problem=problem, shape=outline(self.out))
        said = (Message("assistant", reply.text[:QUOTED_REPLY]),) if reply.text.strip() else ()
        turns = (*request.messages, *said, Message("user", told))
        return replace(request, messages=turns)


@dataclass
class _Talk(Generic[Out]):
    """One question being asked, and what it has cost so far."""

    chat: Chat
    question: Question[Out]
    spent: Usage = field(default_factory=Usage)

    async def say(self, request: Request) -> Reply:
        """Ask, and add up the bill."""
        reply = await self.chat(request)
        self.spent += reply.usage
        return reply

    async def mend(self, request: Request, reply: Reply, problem: ParseError) -> Answer[Out]:
        """Ask once more with the fault named; a second fault is final."""
        if reply.finish == "refusal":
            raise ParseError(
                f"{self.chat.name} refuses to answer {self.question.name!r}: {_start(reply)}."
            ) from problem
        again = await self.say(self.question.mend(request, reply, problem))
        try:
            return self.answer(parse(again.text, self.question.out), mended=True)
        except ParseError as still:
            way = "raise max_tokens" if again.finish == "length" else "try a larger model"
            raise ParseError(
                f"{self.chat.name} gives no usable answer to {self.question.name!r}, twice asked "
                f"({still}; it begins {_start(again)}): {way}."
            ) from still

    def answer(self, parsed: Parsed[Out], mended: bool = False) -> Answer[Out]:
        """Close the matter."""
        return Answer(parsed.value, self.spent, parsed.dropped, parsed.cut, mended)


async def ask(chat: Chat, question: Question[Out]) -> Answer[Out]:
    """Ask down the ladder from the rung that is known to work; ParseError if none makes sense."""
    known = _known(chat)
    talk = _Talk(chat, question)
    if not known.proven:
        async with known.first_alone():
            if not known.proven:
                return await _explore(talk, known)
    return await _ask_at(talk, known.rung, proven=True)


async def _ask_at(talk: _Talk[Out], rung: int, proven: bool) -> Answer[Out]:
    """Ask at one rung, and mend once."""
    request = talk.question.at(rung, proven)
    reply = await talk.say(request)
    try:
        return talk.answer(parse(reply.text, talk.question.out))
    except ParseError as problem:
        return await talk.mend(request, reply, problem)


async def _explore(talk: _Talk[Out], known: Known) -> Answer[Out]:
    """Go down the ladder; a rung counts as missing only if a lower one works."""
    for rung in range(TEXT):
        request = talk.question.at(rung, proven=False)
        try:
            reply = await _say_twice(talk, request)
        except EndpointError as error:
            if not error.refuses(request.shape):
                raise
            continue
        try:
            answer = talk.answer(parse(reply.text, talk.question.out))
        except NoAnswer as problem:  # it took no notice of the shape
            if reply.finish == "refusal":
                return await talk.mend(request, reply, problem)
            continue
        except ParseError as problem:
            answer = await talk.mend(request, reply, problem)
        known.learn(rung)
        return answer
    answer = await _ask_at(talk, TEXT, proven=False)
    known.learn(TEXT)
    return answer


async def _say_twice(talk: _Talk[Out], request: Request) -> Reply:
    """Ask again after an HTTP 500: a refusal will come again, a mishap hardly."""
    try:
        return await talk.say(request)
    except EndpointError as error:
        if error.status != 500 or not error.refuses(request.shape):
            raise
    return await talk.say(request)


def _start(reply: Reply) -> str:
    return repr(" ".join(reply.text[:400].split())[:80])
