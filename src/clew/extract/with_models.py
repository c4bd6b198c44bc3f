"""The extractors that ask a model, by the name users give."""

from collections.abc import Callable, Sequence
from typing import Protocol

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


MODEL_EXTRACTORS: dict[str, Callable[[Chat], Extractor]] = {
    "triples": Triples,
    "schema": Bounded,
    "nary": Nary,
}
