"""The common flow of extraction by a model: prompt, gleaning, collection."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

from clew.extract.asking import ChunkAsker, extract_chunks, fold_example, is_incomplete
from clew.extract.found import ExtractionCollector
from clew.extract.gleaning import Gleaning, glean
from clew.extract.locate import ChunkLocator
from clew.llm.chat import Chat
from clew.llm.prompt import Prompt
from clew.types import Chunk, Document, Extraction

AnswerT = TypeVar("AnswerT", bound=BaseModel)


class ExtractorOptions(Protocol):
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
class PromptedExtraction(Generic[AnswerT]):
    """An extraction prompt, its follow-up prompt, and how answers are merged and collected."""

    prompt: Prompt[AnswerT]
    follow_up: Prompt[AnswerT]
    describe: Callable[[AnswerT], str]
    """Renders the results so far for the follow-up prompt."""
    merge: Callable[[AnswerT, AnswerT], AnswerT]
    """Merges two answers without duplicates."""
    collect: Callable[[AnswerT, ExtractionCollector], None]

    async def __call__(
        self, options: ExtractorOptions, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk, all requested concurrently."""

        async def one(chunk: Chunk) -> Extraction:
            return await self._extract_chunk(options, document.title, chunk)

        return await extract_chunks(chunks, one)

    async def _extract_chunk(
        self, options: ExtractorOptions, title: str, chunk: Chunk
    ) -> Extraction:
        ask = ChunkAsker(options.chat, chunk, options.dropped, options.max_tokens)
        example = fold_example(self.prompt.template, self.prompt.out, ask.language)
        collector = ExtractionCollector(ChunkLocator(chunk), title, example, options.dropped)
        if chunk.text.strip():
            found = await glean(
                options.gleaning,
                await ask(self.prompt),
                lambda found: ask(self.follow_up, known=self.describe(found)),
                lambda found: is_incomplete(ask, self.describe(found)),
                self.merge,
            )
            self.collect(found, collector)
        return collector.to_extraction()
