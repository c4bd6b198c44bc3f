"""Stream the sentences of an answer out of the JSON in which a model writes it."""

import re
from dataclasses import dataclass, field

from clew.context import Said, Tell
from clew.llm.chat import Chat, Hear, Reply, Request
from clew.llm.quotes import unescape

_OPENS = re.compile(r'"text"\s*:\s*"')
_MAY_OPEN = re.compile(r'"(?:t(?:e(?:x(?:t(?:"\s*(?::\s*)?)?)?)?)?)?\Z')
# The string body as far as it is complete: not half an escape.
_INSIDE = re.compile(r'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\u(?![0-9a-fA-F]{0,3}\Z)|\\[^u])*', re.DOTALL)
_HALF = re.compile(r"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})\Z")  # of one character
_LOOK_BACK = 100  # characters in which a partial start may stand
_MOST = 20_000  # characters that are streamed; only a looping model writes more


def sentences_in(written: str) -> str:
    """Extract the sentences from the beginning of a JSON answer."""
    return Sentences().read(written)


@dataclass
class Sentences:
    """Incremental parser that returns the contents of the JSON's "text" strings."""

    _rest: str = ""
    _inside: bool = False
    _begun: bool = False

    def read(self, piece: str) -> str:
        """Return the text that the next piece adds."""
        self._rest += piece
        pieces: list[str] = []
        while self._text(pieces) if self._inside else self._open(pieces):
            pass
        return "".join(pieces)

    def _open(self, pieces: list[str]) -> bool:
        """Skip to the beginning of the next text, if it has arrived."""
        found = _OPENS.search(self._rest)
        if found is None:
            partial = _MAY_OPEN.search(self._rest, max(0, len(self._rest) - _LOOK_BACK))
            self._rest = partial[0] if partial else ""
            return False
        if self._begun:
            pieces.append(" ")
        self._rest = self._rest[found.end() :]
        self._inside = self._begun = True
        return True

    def _text(self, pieces: list[str]) -> bool:
        """Emit the text so far; half a surrogate pair waits for its other half."""
        found = _INSIDE.match(self._rest)
        end = found.end() if found else 0
        closed = self._rest[end : end + 1] == '"'
        if not closed and (half := _HALF.search(self._rest, 0, end)):
            end = half.start(1)
        pieces.append(unescape(self._rest[:end]))
        self._rest = self._rest[end + closed :]
        self._inside = not closed
        return closed


@dataclass(frozen=True, eq=False)
class Heard:
    """Chat wrapper that emits the answer's sentences while the model writes its JSON."""

    inner: Chat
    tell: Tell | None
    _told: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Ask; stream only if there is a listener."""
        emit = self.tell
        if emit is None:
            return await self.inner(request, hear)
        sentences, told = Sentences(), 0
        # A retry begins on a new line.
        between = "\n" if self._told else ""

        def listen(piece: str) -> None:
            nonlocal told, between
            text = sentences.read(piece) if told < _MOST else ""
            if text:
                self._told.append(between + text)
                emit(Said(self._told[-1]))
                told, between = told + len(text), ""

        return await self.inner(request, listen)
