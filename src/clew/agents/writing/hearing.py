"""The answer's sentences as a model writes them, picked out of the JSON they come in."""

import re
from dataclasses import dataclass, field

from clew.context import Said, Tell
from clew.llm.chat import Chat, Hear, Reply, Request
from clew.llm.quotes import unescape

_TEXT = re.compile(r'"text"\s*:\s*"((?:[^"\\]|\\.)*)', re.DOTALL)


def sentences_in(written: str) -> str:
    """The sentences in the beginning of a JSON answer; a longer beginning gives a longer text."""
    return " ".join(unescape(found[1]) for found in _TEXT.finditer(written))


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
        written, told = "", 0
        # A model that is asked again begins anew: on a line of its own.
        between = "\n" if self._told else ""

        def listen(piece: str) -> None:
            nonlocal written, told, between
            written += piece
            text = sentences_in(written)
            if len(text) > told:
                self._told.append(between + text[told:])
                tell(Said(self._told[-1]))
                told, between = len(text), ""

        return await self.inner(request, listen)
