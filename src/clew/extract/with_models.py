"""Registry of the model-based extractors by their names in the settings."""

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
    """An extractor bound to a chat."""

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk, in order."""
        ...


def with_limits(extractor: Extractor, gleaning: Gleaning, max_tokens: int) -> Extractor:
    """A copy of the extractor with these limits, as far as it has them."""
    match extractor:
        case Triples() | Nary():
            return replace(extractor, gleaning=gleaning, max_tokens=max_tokens)
        case Bounded():
            return replace(extractor, max_tokens=max_tokens)
    return extractor


MODEL_EXTRACTORS: dict[str, Callable[[Chat], Extractor]] = {
    "triples": Triples,
    "schema": Bounded,
    "nary": Nary,
}
