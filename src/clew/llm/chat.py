"""The chat model protocol, and the request and reply types it uses.

One method does everything: a caller that wants to stream passes the callback `on_text`, so every
wrapper works for streaming and plain calls alike. `stream_text` turns it into an iterator.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from clew.errors import ModelError, ParseError
from clew.llm.tools import ToolSpec, find_written_calls, join_calls
from clew.types import Usage

MessageRole = Literal["system", "user", "assistant"]
OutputMode = Literal["tools", "tools_auto", "schema", "tool", "json"]
"""The API feature that asks for JSON; the first two also offer tools (`tool_choice`)."""
FinishReason = Literal["stop", "length", "refusal"]
TextCallback = Callable[[str], None]

UNSUPPORTED_FORMAT_STATUSES = frozenset({400, 415, 422, 500, 501})
"""Statuses by which endpoints reject a response format; some send 500 instead of a 4xx."""
REPLY_TOKENS = 1500
"""The longest reply, where nobody asks for another limit."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: MessageRole
    content: str


@dataclass(frozen=True, slots=True)
class ResponseFormat:
    """The JSON schema a reply must match, and the API feature used to request it."""

    mode: OutputMode
    name: str
    schema: Mapping[str, Any] = field(hash=False)
    proven: bool = field(default=False, compare=False)
    """The endpoint has answered in this mode before, so an HTTP 500 does not mean unsupported."""
    tools: tuple[ToolSpec, ...] = ()
    """Tools that the reply may call instead of, or beside, giving the answer."""

    @property
    def offers_tools(self) -> bool:
        """Whether the tools are sent as such."""
        return self.mode in ("tools", "tools_auto")

    def read_calls(self, calls: Sequence[tuple[str, Any]], said: str) -> str:
        """Return a reply of tool calls as JSON; without any, the calls written in it, or itself."""
        if calls:
            return join_calls(calls, said, self.name, self.schema)
        names = frozenset({self.name, *(tool.name for tool in self.tools)})
        written = find_written_calls(said, names)
        return join_calls(written, "", self.name, self.schema) if written else said


class CallAccount(Protocol):
    """Pays for calls: charged before each is sent, settled when it has ended."""

    async def charge(self, most: Usage, /) -> None:
        """Take what a call may use at most; raise BudgetExceeded if that is not left."""

    async def settle(self, most: Usage, used: Usage, /) -> None:
        """Correct what was taken by what the call has used."""


@dataclass(frozen=True, slots=True)
class Request:
    """A chat request: everything that can change the reply, and who pays for it."""

    messages: tuple[Message, ...] = ()
    temperature: float = 0.0
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    response_format: ResponseFormat | None = None
    """None requests plain text."""
    sample: int = 0
    """Number of the sample for repeated requests; never sent, but part of the cache key."""
    text: str = ""
    """The one text of a document that the reply is made from; "": it may quote any. Never sent."""
    account: CallAccount | None = field(default=None, compare=False, repr=False)
    """Who pays if it is sent; neither sent nor part of the cache key."""
    keep: "Callable[[Reply], bool] | None" = field(default=None, compare=False, repr=False)
    """Which replies a cache may keep; None: all. Neither sent nor part of the cache key."""
    key_tokens: int | None = field(default=None, compare=False)
    """`max_tokens` before it was raised, for the cache key: a whole reply is whole under both."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The model's text and token usage; `text` is JSON when a response format was set."""

    text: str
    usage: Usage = field(default_factory=Usage)
    finish: FinishReason = "stop"
    model: str = ""


class Chat(Protocol):
    """Answers one request; callers and wrappers decide how many run concurrently."""

    @property
    def name(self) -> str:
        """Model and endpoint; part of the cache key, as another name may give other replies."""

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Send the request; `on_text` receives each piece of text in order as it arrives."""


class EndpointError(ModelError):
    """An endpoint failed or rejected a call; carries what the retry decision needs."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        transient: bool = False,
        not_listening: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.transient = transient
        self.not_listening = not_listening
        """Nothing listens at this local address; waiting rarely changes that."""

    def rejects_format(self, shape: ResponseFormat | None) -> bool:
        """Whether the endpoint may not support this format; one that has worked is trusted."""
        return shape is not None and not shape.proven and self.status in UNSUPPORTED_FORMAT_STATUSES


class ContextTooLong(EndpointError):  # noqa: N818  (reads as what happened)
    """The prompt does not fit the model's context window; `window` is what the endpoint says."""

    def __init__(self, message: str, *, status: int | None = None, window: int | None = None):
        super().__init__(message, status=status)
        self.window = window

    def rejects_format(self, shape: ResponseFormat | None) -> bool:
        """False: the same prompt is too long in every format."""
        return False


UNUSABLE_REPLY = (ParseError, ContextTooLong)
"""Failures that leave a step without a reply at an endpoint that works."""


def text_request(prompt: str, system: str = "") -> Request:
    """Build a request of one user message, and a system message if given."""
    system_messages = (Message("system", system),) if system else ()
    return Request((*system_messages, Message("user", prompt)))


async def stream_text(chat: Chat, request: Request) -> AsyncIterator[str]:
    """Yield the text as it is generated; leaving the loop early cancels the call."""
    pieces: asyncio.Queue[str | None] = asyncio.Queue()
    call = asyncio.ensure_future(chat(request, on_text=pieces.put_nowait))
    call.add_done_callback(lambda _: pieces.put_nowait(None))
    try:
        while (piece := await pieces.get()) is not None:
            yield piece
        await call
    finally:
        call.cancel()
