"""Streams the text of an answer while the model writes the JSON that holds it."""

import re
from dataclasses import dataclass, field

from clew.context import AnswerDelta, EventListener
from clew.llm.chat import Chat, Reply, Request, TextCallback
from clew.llm.json_repair import unescape

_START = re.compile(r'"answer"\s*:\s*"')
_LOOK_BACK = 40  # characters in which the beginning of the field may stand
# The body of a JSON string as far as it is complete: not half an escape, nor half a character.
_BODY = re.compile(r'(?:[^"\\]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}'
                   r'\\u[0-9a-fA-F]{4}|\\[^u])*', re.DOTALL)  # fmt: skip


@dataclass
class AnswerText:
    """Finds the field `answer` in JSON that arrives in pieces."""

    _buffer: str = ""
    _inside: bool = False
    _done: bool = False

    def feed(self, piece: str) -> str:
        """Return what the next piece adds to the answer's text."""
        if self._done:
            return ""
        self._buffer += piece
        if not self._inside:
            found = _START.search(self._buffer)
            if found is None:
                self._buffer = self._buffer[-_LOOK_BACK:]
                return ""
            self._buffer, self._inside = self._buffer[found.end() :], True
        body = _BODY.match(self._buffer)
        end = body.end() if body else 0
        text, self._buffer = unescape(self._buffer[:end]), self._buffer[end:]
        self._done = self._buffer.startswith('"')
        return text


@dataclass(frozen=True, eq=False)
class StreamingChat:
    """Chat wrapper that tells a listener the answer's text as it arrives."""

    inner: Chat
    listener: EventListener
    _sent: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Ask; where an earlier reply had text, the listener is told that it is void."""
        text = AnswerText()
        if self._sent:
            self._sent.clear()
            self.listener(AnswerDelta("\n", restart=True))

        def listen(piece: str) -> None:
            if new := text.feed(piece):
                self._sent.append(new)
                self.listener(AnswerDelta(new))

        return await self.inner(request, listen)
