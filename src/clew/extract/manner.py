"""What extraction by a model has in common, whatever is asked for."""

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
    """What an extractor says about its calls."""

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
    """A prompt, one to ask again with, and what is made of the answers."""

    find: Prompt[Said]
    more: Prompt[Said]
    told: Callable[[Said], str]
    """What is known, for the model to read."""
    joined: Callable[[Said, Said], Said]
    """Two answers as one, without doubles."""
    gather: Callable[[Said, Harvest], None]

    async def __call__(
        self, by: Settings, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk, all asked at once."""

        async def one(chunk: Chunk) -> Extraction:
            return await self._extract(by, document.title, chunk)

        return await each_chunk(chunks, one)

    async def _extract(self, by: Settings, title: str, chunk: Chunk) -> Extraction:
        ask = Asker(by.chat, chunk, by.dropped, by.max_tokens)
        example = worked_example(self.find.page, self.find.out, ask.language)
        harvest = Harvest(Places(chunk), title, example, by.dropped)
        if chunk.text.strip():
            found = await glean(
                by.gleaning,
                await ask(self.find),
                lambda found: ask(self.more, known=self.told(found)),
                lambda found: lacks(ask, self.told(found)),
                self.joined,
            )
            self.gather(found, harvest)
        return harvest.extraction()
