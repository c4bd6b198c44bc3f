"""Structured output: asks any endpoint for JSON that fits a Pydantic model.

The fallback order: native tool calls if there are tools to call, native `json_schema`, a call of
one function, `json_object`, plain text. Only an endpoint's explicit refusal rules a mode out, for
the life of the process; a reply that is not JSON is asked for once more, and teaches nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic

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
from clew.llm.json_repair import is_json
from clew.llm.loops import is_loop
from clew.llm.openai_api import cut_to_tokens, estimate_prompt_tokens
from clew.llm.parse import Out, example_json, json_schema, parse_answer
from clew.llm.reply_limit import ReplyCut
from clew.llm.tools import ToolSpec, describe_tools, example_call, with_tool_names
from clew.types import Usage

TOOL_MODES: tuple[OutputMode, ...] = ("tools", "tools_auto")
JSON_MODES: tuple[OutputMode | None, ...] = ("schema", "tool", "json", None)
QUOTED_REPLY_CHARS = 2000
_LOOP_CHARS = 100  # of a loop: more of it would lead into it again

FORMAT_INSTRUCTION = {
    "en": "Answer with JSON only, in exactly this shape:\n{shape}",
    "zh": "只回答 JSON，格式必须完全如下：\n{shape}",
}
TOOLS_INSTRUCTION = {
    "en": "`wants` may name any of these tools, each like {call}, and may be empty:\n{tools}",
    "zh": "`wants` 可以列出下列任意工具，每项形如 {call}，也可以为空：\n{tools}",
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
    """The output modes that one endpoint has refused, and those that it has answered in."""

    refused: set[OutputMode] = field(default_factory=set)
    proven: set[OutputMode | None] = field(default_factory=set)

    def supported(self, offers_tools: bool) -> list[OutputMode | None]:
        """The modes that have not been refused, best first; the last one is plain text."""
        modes = (*(TOOL_MODES if offers_tools else ()), *JSON_MODES)
        return [mode for mode in modes if mode not in self.refused]


CAPABILITIES: dict[str, EndpointCapability] = {}
"""Capabilities by chat name (model and endpoint)."""


def fixed_capability(mode: OutputMode | None) -> EndpointCapability:
    """Return the capability of using one mode only; None is plain text."""
    others = {one for one in (*TOOL_MODES, *JSON_MODES) if one is not None and one != mode}
    return EndpointCapability(others, {mode, None})


def pin_mode(name: str, mode: OutputMode | None) -> None:
    """Set the output mode of a model without probing; None is plain text."""
    CAPABILITIES[name] = fixed_capability(mode)


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
        return fixed_capability(self.mode)


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

    tools: tuple[ToolSpec, ...] = ()
    """Tools that the answer's field `wants` may call."""
    last: bool = True
    """Whether the complete items of a cut reply are made do with; else it is `ReplyCut`."""

    def request_in(self, mode: OutputMode | None, proven: bool) -> Request:
        """Build the request in a mode; what the mode does not send is described in the prompt."""
        shape = self._build_format(mode, proven) if mode else None
        request = replace(self.request, response_format=shape, keep=self._may_keep)
        *before, last = request.messages
        texts = [last.content]
        if mode not in TOOL_MODES and self.tools:
            texts.append(self._describe_tools())
        if mode in ("json", None):
            texts.append(_translate(FORMAT_INSTRUCTION, self.language, shape=self._example))
        instructed = replace(last, content="\n\n".join(texts))
        return replace(request, messages=(*before, instructed))

    def _build_format(self, mode: OutputMode, proven: bool) -> ResponseFormat:
        schema = json_schema(self.out)
        name = self.name
        if mode not in TOOL_MODES:
            return ResponseFormat(mode, name, with_tool_names(schema, self.tools), proven)
        if any(tool.name == name for tool in self.tools):
            name = f"{name[:57]}_answer"
        return ResponseFormat(mode, name, schema, proven, self.tools)

    @property
    def _example(self) -> str:
        return example_json(self.out)

    def _describe_tools(self) -> str:
        call, tools = example_call(self.tools[0]), describe_tools(self.tools)
        return _translate(TOOLS_INSTRUCTION, self.language, call=call, tools=tools)

    def repair_request(self, request: Request, reply: Reply, problem: ParseError) -> Request:
        """Build the repair request: the start of the reply, the problem, the format."""
        instruction = _translate(
            REPAIR_INSTRUCTION, self.language, problem=problem, shape=self._example
        )
        shape = request.response_format
        if shape is not None and shape.offers_tools:  # the model may never have seen them
            instruction = f"{instruction}\n\n{self._describe_tools()}"
        messages = (*request.messages, Message("user", instruction))
        quote = reply.text[: _LOOP_CHARS if is_loop(reply.text) else QUOTED_REPLY_CHARS]
        if self.limit is not None:
            quote = cut_to_tokens(quote, self.limit - estimate_prompt_tokens(messages) - 4)
        quoted = [Message("assistant", quote)] * bool(quote.strip())
        messages = (*request.messages, *quoted, messages[-1])
        return replace(request, messages=messages, keep=self._is_usable)

    def _may_keep(self, reply: Reply) -> bool:
        """Whether a reply may be kept: else a failure would be given again for ever.

        What is made from one text is kept: who retries it asks for another sample.
        """
        if self.request.text:
            return not self.is_cut(reply)
        return not self.is_cut(reply) and reply.finish != "refusal"

    def is_cut(self, reply: Reply) -> bool:
        """Whether a reply ended at its limit, and before its JSON did."""
        return reply.finish == "length" and (bool(self.tools) or not is_json(reply.text))

    def _is_usable(self, reply: Reply) -> bool:
        if self.request.text or self.is_cut(reply):
            return self._may_keep(reply)
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

    async def send(self, request: Request) -> Reply:
        """Send a request and add its usage."""
        reply = await self.chat(request)
        self.spent += reply.usage
        return reply

    async def send_supported(self, capability: EndpointCapability) -> tuple[Request, Reply]:
        """Send in the best mode; one counts as refused only if a later one is answered."""
        refused: list[OutputMode] = []
        for mode in capability.supported(bool(self.question.tools)):
            request = self.question.request_in(mode, proven=mode in capability.proven)
            try:
                reply = await self._send_with_retry(request)
            except EndpointError as error:
                if mode is None or not error.rejects_format(request.response_format):
                    raise
                refused.append(mode)
                continue
            capability.refused.update(refused)
            capability.proven.add(mode)
            return request, reply
        raise AssertionError("plain text is a mode of every endpoint")

    async def _send_with_retry(self, request: Request) -> Reply:
        """Retry once after an HTTP 500: an unsupported format fails again, other errors rarely."""
        try:
            return await self.send(request)
        except EndpointError as error:
            if error.status != 500 or not error.rejects_format(request.response_format):
                raise
        return await self.send(request)

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
            return replace(self.read(retried), repaired=True)
        except ReplyCut:
            raise
        except ParseError as still:
            failure = ParseError(
                f"{self.chat.name} gave no usable answer ({still}; the reply begins "
                f"{_excerpt(retried)}); try a larger model."
            )
            # The first reply was not asked to be short.
            failure.reply = reply.text if len(reply.text) > len(retried.text) else retried.text
            raise failure from still

    def read(self, reply: Reply) -> StructuredAnswer[Out]:
        """Parse a reply; raise ReplyCut if it is cut and can be asked for with a higher limit."""
        cut = self.question.is_cut(reply)
        if cut and not self.question.last and not is_loop(reply.text):
            raise ReplyCut(f"the answer to {self.question.name!r} is cut off", self.spent)
        parsed = parse_answer(reply.text, self.question.out)
        return StructuredAnswer(parsed.value, self.spent, parsed.dropped, parsed.truncated or cut)


async def ask_structured(chat: Chat, question: StructuredRequest[Out]) -> StructuredAnswer[Out]:
    """Ask in the mode known to work, or probe for one; ParseError if no reply is usable."""
    exchange = _Exchange(chat, question)
    request, reply = await exchange.send_supported(_find_capability(chat))
    try:
        return exchange.read(reply)
    except ReplyCut:
        raise
    except ParseError as problem:
        return await exchange.repair(request, reply, problem)


def _translate(texts: Mapping[str, str], language: str, **inputs: object) -> str:
    return texts.get(language, texts["en"]).format(**inputs)


def _excerpt(reply: Reply) -> str:
    return repr(" ".join(reply.text[:400].split())[:80])
