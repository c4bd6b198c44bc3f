"""What a chat model must do, and the values that travel to it and back.

One method carries everything: a caller that wants the text as it is written passes `hear`, so
every wrapper works for streaming as it does for plain calls. `stream` turns that into an iterator.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from clew.errors import ModelError
from clew.types import Usage

Author = Literal["system", "user", "assistant"]
Mode = Literal["schema", "tool", "json"]
Finish = Literal["stop", "length", "refusal"]
Hear = Callable[[str], None]

UNPROVEN_REFUSALS = frozenset({400, 415, 422, 500, 501})
"""Statuses with which endpoints turn down a way of asking; 500 is what careless ones answer."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Author
    content: str


@dataclass(frozen=True, slots=True)
class Shape:
    """The JSON a reply must have, and the means by which the endpoint is asked for it."""

    mode: Mode
    name: str
    schema: Mapping[str, Any] = field(hash=False)
    proven: bool = field(default=False, compare=False)
    """This endpoint has answered this way before, so an HTTP 500 is a fault and no refusal."""


@dataclass(frozen=True, slots=True)
class Request:
    """A question to a model: everything that can change the answer."""

    messages: tuple[Message, ...] = ()
    temperature: float = 0.0
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    shape: Shape | None = None
    """None asks for plain text."""
    sample: int = 0
    """Which of several answers to the same question; never sent, but the cache tells them apart."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said and what it cost; `text` is the JSON when a shape was asked for."""

    text: str
    usage: Usage = field(default_factory=Usage)
    finish: Finish = "stop"
    model: str = ""


class Chat(Protocol):
    """Answers one request; how many run at once is the caller's business and the wrappers'."""

    @property
    def name(self) -> str:
        """Model and endpoint: another name may give other answers."""
        ...

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Answer; `hear` gets each piece of the text in order as it comes."""
        ...


class EndpointError(ModelError):
    """An endpoint failed or refused, with what is needed to decide whether to try again."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        transient: bool = False,
        absent: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.transient = transient
        self.absent = absent
        """Nothing listens there, on this machine: waiting rarely changes that."""

    def refuses(self, shape: Shape | None) -> bool:
        """Say whether this may mean: not in this shape; a shape that has worked is not doubted."""
        return shape is not None and not shape.proven and self.status in UNPROVEN_REFUSALS


def ask_text(prompt: str, system: str = "") -> Request:
    """Build the simplest request: one user message, and a system message if given."""
    head = (Message("system", system),) if system else ()
    return Request((*head, Message("user", prompt)))


async def stream(chat: Chat, request: Request) -> AsyncIterator[str]:
    """Yield the text as it is written; leaving the loop early cancels the call."""
    pieces: asyncio.Queue[str | None] = asyncio.Queue()
    call = asyncio.ensure_future(chat(request, hear=pieces.put_nowait))
    call.add_done_callback(lambda _: pieces.put_nowait(None))
    try:
        while (piece := await pieces.get()) is not None:
            yield piece
        await call
    finally:
        call.cancel()
