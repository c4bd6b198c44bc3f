"""The limit of a reply: raised where a reply reached it, and remembered for the process."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from clew.errors import ParseError
from clew.llm.chat import REPLY_TOKENS, Chat, EndpointError, Message, Request
from clew.llm.fit_prompt import find_windowed
from clew.types import Usage

Got = TypeVar("Got")
_RAISE = 4
_MAX_RAISES = 2
_REFUSED_STATUSES = frozenset({400, 413, 422})
_RAISED: dict[tuple[str, str], int] = {}
"""The limit that was enough, by model and prompt: who thinks long is not asked twice each time."""


class ReplyCut(ParseError):  # noqa: N818  (reads as what happened)
    """The reply ended at its limit and not by itself; `usage` is what it took."""

    def __init__(self, message: str, usage: Usage) -> None:
        super().__init__(message)
        self.usage = usage


@dataclass(frozen=True)
class ReplyLimit:
    """How long a reply may be, in tokens."""

    asked: int
    """Before it was raised."""
    tokens: int
    most: int | None
    """Half of the model's window, where that is known."""
    raises: int = _MAX_RAISES

    @property
    def higher(self) -> int:
        """The next limit; the same if it cannot be raised any more."""
        raised = max(_RAISE * self.tokens, REPLY_TOKENS) if self.raises else self.tokens
        return max(self.tokens, raised if self.most is None else min(raised, self.most))

    @property
    def last(self) -> bool:
        """Whether a reply that is cut here is made do with."""
        return self.higher == self.tokens

    def request(self, like: Request, messages: tuple[Message, ...]) -> Request:
        """Build the request of these messages."""
        key_tokens = self.asked if self.tokens != self.asked else None
        return replace(like, messages=messages, max_tokens=self.tokens, key_tokens=key_tokens)


async def ask_until_whole(
    chat: Chat, name: str, like: Request, send: Callable[[ReplyLimit], Awaitable[Got]]
) -> Got:
    """Ask, and again with a higher limit while `send` raises ReplyCut."""
    windowed = find_windowed(chat)
    window = (await windowed.room()).window if windowed is not None else None
    asked = like.max_tokens or (min(REPLY_TOKENS, window // 4) if window else REPLY_TOKENS)
    accepted, known = asked, max(asked, _RAISED.get((chat.name, name), 0))
    limit = ReplyLimit(asked, known, window // 2 if window else None)
    while True:
        try:
            got = await send(limit)
        except ReplyCut:
            accepted = limit.tokens
            limit = replace(limit, tokens=limit.higher, raises=limit.raises - 1)
        except EndpointError as error:
            if limit.tokens == accepted or error.status not in _REFUSED_STATUSES:
                raise
            limit = replace(limit, tokens=accepted, raises=0)  # more than this model may write
        else:
            if limit.tokens > asked:
                _RAISED[chat.name, name] = limit.tokens
            return got
