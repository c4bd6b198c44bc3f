"""The extractors that ask a model, by the name users give."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from clew.extract.gleaning import Gleaning
from clew.extract.nary import Nary
from clew.extract.schema import Bounded
from clew.extract.triples import Triples
from clew.llm.chat import Chat
from clew.types import Chunk, Document, Extraction


class Extractor(Protocol):
    """What each of them is, once it has a chat."""

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk, in order."""
        ...


def tuned(one: Extractor, gleaning: Gleaning, max_tokens: int) -> Extractor:
    """The extractor with these limits, where it has any."""
    match one:
        case Triples() | Nary():
            return replace(one, gleaning=gleaning, max_tokens=max_tokens)
        case Bounded():
            return replace(one, max_tokens=max_tokens)
    return one


MODEL_EXTRACTORS: dict[str, Callable[[Chat], Extractor]] = {
    "triples": Triples,
    "schema": Bounded,
    "nary": Nary,
}
