"""Structured output: asks any endpoint for JSON that fits a Pydantic model.

The fallback order: native `json_schema`, a tool call, `json_object`, plain text. What an endpoint
does not support is detected at its first rejection and kept for the life of the process.
"""

import asyncio
from asyncio import AbstractEventLoop, Lock
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Generic
from weakref import WeakKeyDictionary

from clew.errors import ParseError
from clew.llm.chat import (
    Chat,
    EndpointError,
    Message,
    OutputMode,
    Reply,
    Request,
    ResponseFormat,
    TextCallback,
)
from clew.llm.openai_api import cut_to_tokens, estimate_prompt_tokens
from clew.llm.parse import NoJsonAnswer, Out, ParsedAnswer, example_json, json_schema, parse_answer
from clew.types import Usage

FALLBACK_MODES: tuple[OutputMode | None, ...] = ("schema", "tool", "json", None)
TEXT_LEVEL = len(FALLBACK_MODES) - 1
PROBE_WAIT_SECONDS = 20.0
"""Seconds other calls wait while the first call probes what an endpoint supports."""
QUOTED_REPLY_CHARS = 2000

FORMAT_INSTRUCTION = {
    "en": "Answer with JSON only, in exactly this shape:\n{shape}",
    "zh": "只回答 JSON，格式必须完全如下：\n{shape}",
}
REPAIR_INSTRUCTION = {
    "en": "That answer cannot be used: {problem}. Give the whole answer again, as JSON only, "
    "short enough to be complete, in exactly this shape:\n{shape}",
    "zh": "上面的回答无法使用：{problem}。请重新给出完整的回答，只用 JSON，"
    "并且足够简短，格式必须完全如下：\n{shape}",
}


@dataclass(frozen=True, slots=True)
class StructuredAnswer(Generic[Out]):
    """A parsed answer, its usage, and the repairs it needed."""

    value: Out
    usage: Usage
    dropped: int = 0
    """Items and optional fields that did not fit and were dropped."""
    truncated: bool = False
    """The reply was truncated; these are its complete items."""
    repaired: bool = False
    """A second request was needed."""


@dataclass(eq=False)
class EndpointCapability:
    """The output mode that works at one endpoint."""

    level: int = 0
    proven: bool = False
    in_prose: bool = False
    """Replies in every mode were prose: the modes are not tried again, but nothing is proven."""
    _locks: WeakKeyDictionary[AbstractEventLoop, Lock] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    @asynccontextmanager
    async def exclusive_probe(self) -> AsyncIterator[None]:
        """Let one call probe the modes while others wait for the result, for a limited time."""
        lock = self._locks.setdefault(asyncio.get_running_loop(), Lock())
        try:
            await asyncio.wait_for(lock.acquire(), PROBE_WAIT_SECONDS)
        except TimeoutError:
            yield
            return
        try:
            yield
        finally:
            lock.release()

    def set_level(self, level: int) -> None:
        """Record the level that worked."""
        self.level, self.proven = level, True


CAPABILITIES: dict[str, EndpointCapability] = {}
"""Capabilities by chat name (model and endpoint)."""


def pin_mode(name: str, mode: OutputMode | None) -> None:
    """Set the output mode of a model without probing; None is plain text."""
    CAPABILITIES[name] = EndpointCapability(FALLBACK_MODES.index(mode), proven=True)


@dataclass(frozen=True, eq=False)
class FixedModeChat:
    """A chat with a fixed output mode, whatever was detected for its endpoint.

    Its name stays the model's own, which is part of document stamps and cache keys.
    """

    inner: Chat
    mode: OutputMode | None
    """None is plain text."""

    @property
    def name(self) -> str:
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Forward the request."""
        return await self.inner(request, on_text)

    def capability(self) -> EndpointCapability:
        """The fixed mode as a proven capability."""
        return EndpointCapability(FALLBACK_MODES.index(self.mode), proven=True)


def _find_capability(chat: Chat) -> EndpointCapability:
    """The capability of a chat: fixed by one of its wrappers, else detected at its endpoint."""
    layer: object = chat
    while layer is not None:
        if isinstance(layer, FixedModeChat):
            return layer.capability()
        layer = getattr(layer, "inner", None)
    return CAPABILITIES.setdefault(chat.name, EndpointCapability())


@dataclass(frozen=True)
class StructuredRequest(Generic[Out]):
    """A request, the model class its answer must fit, and the language of the instructions."""

    name: str
    out: type[Out]
    request: Request
    language: str = "en"
    limit: int | None = None
    """Tokens that the messages may have, where the model's window is known."""

    def request_at(self, level: int, proven: bool) -> Request:
        """Build the request for a level; the last two levels describe the format in the prompt."""
        mode = FALLBACK_MODES[level]
        shape = ResponseFormat(mode, self.name, json_schema(self.out), proven) if mode else None
        request = replace(self.request, response_format=shape, keep=self._keep(_is_no_refusal))
        if mode in ("schema", "tool"):
            return request
        *before, last = request.messages
        instruction = FORMAT_INSTRUCTION.get(self.language, FORMAT_INSTRUCTION["en"]).format(
            shape=example_json(self.out)
        )
        instructed = replace(last, content=f"{last.content}\n\n{instruction}")
        return replace(request, messages=(*before, instructed))

    def repair_request(self, request: Request, reply: Reply, problem: ParseError) -> Request:
        """Build the repair request: the start of the reply, the problem, the format."""
        template = REPAIR_INSTRUCTION.get(self.language, REPAIR_INSTRUCTION["en"])
        instruction = template.format(problem=problem, shape=example_json(self.out))
        messages = (*request.messages, Message("user", instruction))
        quote = reply.text[:QUOTED_REPLY_CHARS]
        if self.limit is not None:
            quote = cut_to_tokens(quote, self.limit - estimate_prompt_tokens(messages) - 4)
        quoted = [Message("assistant", quote)] * bool(quote.strip())
        messages = (*request.messages, *quoted, messages[-1])
        return replace(request, messages=messages, keep=self._keep(self._is_usable))

    def _keep(self, check: Callable[[Reply], bool]) -> Callable[[Reply], bool] | None:
        """The check of what may be kept: else a failure would be given again for ever.

        What is made from one text is kept: who retries it asks for another sample.
        """
        return None if self.request.text else check

    def _is_usable(self, reply: Reply) -> bool:
        try:
            parse_answer(reply.text, self.out)
        except ParseError:
            return False
        return True


@dataclass
class _Exchange(Generic[Out]):
    """One structured request under way, and its usage so far."""

    chat: Chat
    question: StructuredRequest[Out]
    spent: Usage = field(default_factory=Usage)
    attempts: int = 0

    async def send(self, request: Request) -> Reply:
        """Send a request and add its usage."""
        self.attempts += 1
        reply = await self.chat(request)
        self.spent += reply.usage
        return reply

    async def repair(
        self, request: Request, reply: Reply, problem: ParseError
    ) -> StructuredAnswer[Out]:
        """Ask once more, naming the problem; a second failure is final."""
        if reply.finish == "refusal":
            raise ParseError(
                f"{self.chat.name} refuses to answer {self.question.name!r}: {_excerpt(reply)}."
            ) from problem
        retried = await self.send(self.question.repair_request(request, reply, problem))
        try:
            return self.to_answer(parse_answer(retried.text, self.question.out), repaired=True)
        except ParseError as still:
            advice = "raise max_tokens" if retried.finish == "length" else "try a larger model"
            failure = ParseError(
                f"{self.chat.name} gave no usable answer to {self.question.name!r} in "
                f"{self.attempts} attempts "
                f"({still}; the reply begins {_excerpt(retried)}): {advice}."
            )
            # The first reply was not asked to be short.
            failure.reply = reply.text if len(reply.text) > len(retried.text) else retried.text
            raise failure from still

    def to_answer(self, parsed: ParsedAnswer[Out], repaired: bool = False) -> StructuredAnswer[Out]:
        """Build the answer."""
        return StructuredAnswer(
            parsed.value, self.spent, parsed.dropped, parsed.truncated, repaired
        )


async def ask_structured(chat: Chat, question: StructuredRequest[Out]) -> StructuredAnswer[Out]:
    """Ask in the mode known to work, or probe for one; ParseError if no reply is usable."""
    capability = _find_capability(chat)
    exchange = _Exchange(chat, question)
    if not capability.proven:
        async with capability.exclusive_probe():
            if not capability.proven:
                return await _probe_levels(exchange, capability)
    return await _ask_at_level(exchange, capability.level, proven=True)


async def _ask_at_level(
    exchange: _Exchange[Out], level: int, proven: bool
) -> StructuredAnswer[Out]:
    request = exchange.question.request_at(level, proven)
    reply = await exchange.send(request)
    try:
        return exchange.to_answer(parse_answer(reply.text, exchange.question.out))
    except ParseError as problem:
        return await exchange.repair(request, reply, problem)


async def _probe_levels(
    exchange: _Exchange[Out], capability: EndpointCapability
) -> StructuredAnswer[Out]:
    """Try the levels in order; one counts as unsupported only if a later one works."""
    for level in () if capability.in_prose else range(TEXT_LEVEL):
        request = exchange.question.request_at(level, proven=False)
        try:
            reply = await _send_with_retry(exchange, request)
        except EndpointError as error:
            if not error.rejects_format(request.response_format):
                raise
            continue
        try:
            answer = exchange.to_answer(parse_answer(reply.text, exchange.question.out))
        except NoJsonAnswer as problem:  # the endpoint ignored the format
            if reply.finish == "refusal":
                return await exchange.repair(request, reply, problem)
            continue
        except ParseError as problem:
            answer = await exchange.repair(request, reply, problem)
        capability.set_level(level)
        return answer
    try:
        answer = await _ask_at_level(exchange, TEXT_LEVEL, proven=False)
    except ParseError:
        capability.in_prose = True
        raise
    capability.set_level(TEXT_LEVEL)
    return answer


async def _send_with_retry(exchange: _Exchange[Out], request: Request) -> Reply:
    """Retry once after an HTTP 500: an unsupported format fails again, other errors rarely."""
    try:
        return await exchange.send(request)
    except EndpointError as error:
        if error.status != 500 or not error.rejects_format(request.response_format):
            raise
    return await exchange.send(request)


def _is_no_refusal(reply: Reply) -> bool:
    return reply.finish != "refusal"


def _excerpt(reply: Reply) -> str:
    return repr(" ".join(reply.text[:400].split())[:80])
