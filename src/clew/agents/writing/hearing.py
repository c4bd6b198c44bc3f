"""Stream the sentences of an answer out of the JSON in which a model writes it."""

import re
from dataclasses import dataclass, field

from clew.context import AnswerDelta, EventListener
from clew.llm.chat import Chat, Reply, Request, TextCallback
from clew.llm.quotes import unescape

_TEXT_START = re.compile(r'"text"\s*:\s*"')
_PARTIAL_TEXT_START = re.compile(r'"(?:t(?:e(?:x(?:t(?:"\s*(?::\s*)?)?)?)?)?)?\Z')
# The string body as far as it is complete: not half an escape.
_STRING_BODY = re.compile(
    r'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\u(?![0-9a-fA-F]{0,3}\Z)|\\[^u])*', re.DOTALL
)
_HALF_SURROGATE = re.compile(
    r"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})\Z"
)  # of one character
_LOOK_BACK_CHARS = 100  # characters in which a partial start may stand
_MAX_STREAMED_CHARS = 20_000  # characters that are streamed; only a looping model writes more


def extract_sentences(written: str) -> str:
    """Extract the sentences from the beginning of a JSON answer."""
    return SentenceStream().feed(written)


@dataclass
class SentenceStream:
    """Incremental parser that returns the contents of the JSON's "text" strings."""

    _buffer: str = ""
    _in_string: bool = False
    _has_text: bool = False

    def feed(self, piece: str) -> str:
        """Return the text that the next piece adds."""
        self._buffer += piece
        pieces: list[str] = []
        while self._take_text(pieces) if self._in_string else self._find_text_start(pieces):
            pass
        return "".join(pieces)

    def _find_text_start(self, pieces: list[str]) -> bool:
        """Skip to the beginning of the next text, if it has arrived."""
        found = _TEXT_START.search(self._buffer)
        if found is None:
            partial = _PARTIAL_TEXT_START.search(
                self._buffer, max(0, len(self._buffer) - _LOOK_BACK_CHARS)
            )
            self._buffer = partial[0] if partial else ""
            return False
        if self._has_text:
            pieces.append(" ")
        self._buffer = self._buffer[found.end() :]
        self._in_string = self._has_text = True
        return True

    def _take_text(self, pieces: list[str]) -> bool:
        """Emit the text so far; half a surrogate pair waits for its other half."""
        found = _STRING_BODY.match(self._buffer)
        end = found.end() if found else 0
        closed = self._buffer[end : end + 1] == '"'
        if not closed and (half := _HALF_SURROGATE.search(self._buffer, 0, end)):
            end = half.start(1)
        pieces.append(unescape(self._buffer[:end]))
        self._buffer = self._buffer[end + closed :]
        self._in_string = not closed
        return closed


@dataclass(frozen=True, eq=False)
class StreamingChat:
    """Chat wrapper that emits the answer's sentences while the model writes its JSON."""

    inner: Chat
    tell: EventListener | None
    _sent: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: TextCallback | None = None) -> Reply:
        """Ask; stream only if there is a listener."""
        emit = self.tell
        if emit is None:
            return await self.inner(request, hear)
        sentences, told = SentenceStream(), 0
        # A retry begins on a new line.
        between = "\n" if self._sent else ""

        def listen(piece: str) -> None:
            nonlocal told, between
            text = sentences.feed(piece) if told < _MAX_STREAMED_CHARS else ""
            if text:
                self._sent.append(between + text)
                emit(AnswerDelta(self._sent[-1]))
                told, between = told + len(text), ""

        return await self.inner(request, listen)
