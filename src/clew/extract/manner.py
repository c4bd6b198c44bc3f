"""The common flow of extraction by a model: prompt, gleaning, collection."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

from clew.extract.asking import Asker, each_chunk, lacks, worked_example
from clew.extract.found import Harvest
from clew.extract.gleaning import Gleaning, glean
from clew.extract.locate import Places
from clew.llm.chat import Chat
from clew.llm.prompt import Prompt
from clew.types import Chunk, Document, Extraction

Said = TypeVar("Said", bound=BaseModel)


class Settings(Protocol):
    """Options of an extractor for its model calls."""

    @property
    def chat(self) -> Chat: ...
    @property
    def gleaning(self) -> Gleaning: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def dropped(self) -> Counter[str]: ...


@dataclass(frozen=True)
class Manner(Generic[Said]):
    """An extraction prompt, its follow-up prompt, and how answers are merged and collected."""

    find: Prompt[Said]
    more: Prompt[Said]
    told: Callable[[Said], str]
    """Renders the results so far for the follow-up prompt."""
    joined: Callable[[Said, Said], Said]
    """Merges two answers without duplicates."""
    gather: Callable[[Said, Harvest], None]

    async def __call__(
        self, options: Settings, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk, all requested concurrently."""

        async def one(chunk: Chunk) -> Extraction:
            return await self._extract(options, document.title, chunk)

        return await each_chunk(chunks, one)

    async def _extract(self, options: Settings, title: str, chunk: Chunk) -> Extraction:
        ask = Asker(options.chat, chunk, options.dropped, options.max_tokens)
        example = worked_example(self.find.page, self.find.out, ask.language)
        collector = Harvest(Places(chunk), title, example, options.dropped)
        if chunk.text.strip():
            found = await glean(
                options.gleaning,
                await ask(self.find),
                lambda found: ask(self.more, known=self.told(found)),
                lambda found: lacks(ask, self.told(found)),
                self.joined,
            )
            self.gather(found, collector)
        return collector.extraction()
