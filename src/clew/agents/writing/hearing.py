"""The answer's sentences as a model writes them, picked out of the JSON they come in."""

import re
from dataclasses import dataclass, field

from clew.context import Said, Tell
from clew.llm.chat import Chat, Hear, Reply, Request
from clew.llm.quotes import unescape

_OPENS = re.compile(r'"text"\s*:\s*"')
_MAY_OPEN = re.compile(r'"(?:t(?:e(?:x(?:t(?:"\s*(?::\s*)?)?)?)?)?)?\Z')
# The inside of a string as far as it can be read: not half an escape.
_INSIDE = re.compile(r'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\u(?![0-9a-fA-F]{0,3}\Z)|\\[^u])*', re.DOTALL)
_HALF = re.compile(r"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})\Z")  # of one character
_LOOK_BACK = 100  # characters in which the beginning of a text may stand
_MOST = 20_000  # characters that are told; an answer is shorter, a model that loops is not


def sentences_in(written: str) -> str:
    """The sentences in the beginning of a JSON answer; a longer beginning gives a longer text."""
    return Sentences().read(written)


@dataclass
class Sentences:
    """Reads JSON piece by piece, each letter once, and gives what its texts say."""

    _rest: str = ""
    _inside: bool = False
    _begun: bool = False

    def read(self, piece: str) -> str:
        """What the next piece adds."""
        self._rest += piece
        told: list[str] = []
        while self._text(told) if self._inside else self._open(told):
            pass
        return "".join(told)

    def _open(self, told: list[str]) -> bool:
        """Go to where the next text begins, if it is there."""
        found = _OPENS.search(self._rest)
        if found is None:
            begun = _MAY_OPEN.search(self._rest, max(0, len(self._rest) - _LOOK_BACK))
            self._rest = begun[0] if begun else ""
            return False
        if self._begun:
            told.append(" ")
        self._rest = self._rest[found.end() :]
        self._inside = self._begun = True
        return True

    def _text(self, told: list[str]) -> bool:
        """Tell the text as far as it goes; half a character waits for its other half."""
        found = _INSIDE.match(self._rest)
        end = found.end() if found else 0
        closed = self._rest[end : end + 1] == '"'
        if not closed and (half := _HALF.search(self._rest, 0, end)):
            end = half.start(1)
        told.append(unescape(self._rest[:end]))
        self._rest = self._rest[end + closed :]
        self._inside = not closed
        return closed


@dataclass(frozen=True, eq=False)
class Heard:
    """Tells each piece of an answer's sentences while the model writes its JSON."""

    inner: Chat
    tell: Tell | None
    _told: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Ask, streaming only where somebody listens."""
        tell = self.tell
        if tell is None:
            return await self.inner(request, hear)
        sentences, told = Sentences(), 0
        # A model that is asked again begins anew: on a line of its own.
        between = "\n" if self._told else ""

        def listen(piece: str) -> None:
            nonlocal told, between
            text = sentences.read(piece) if told < _MOST else ""
            if text:
                self._told.append(between + text)
                tell(Said(self._told[-1]))
                told, between = told + len(text), ""

        return await self.inner(request, listen)
