"""The common flow of extraction by a model: prompt, gleaning, collection.

All chunks of a document are sent concurrently, and a failure stays local to its chunk. Gleaning
repeats the extraction for what was missed (ROGRAG's loop NER, Algorithm 3).
"""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel

from clew.errors import AuthError, ClewError, ModelError, ParseError
from clew.extract.collect import ExtractionCollector
from clew.extract.locate import ChunkLocator, fold
from clew.extract.prose import read_prose
from clew.extract.response_models import CompletenessVerdict
from clew.llm.chat import Chat, EndpointError, Request
from clew.llm.parse import Out, example_json
from clew.llm.prompt import Prompt, PromptTemplate, read_sections
from clew.text.language import prompt_language
from clew.types import Chunk, Document, Extraction

COMPLETENESS_PROMPT = Prompt(
    "missing", CompletenessVerdict, {"text", "known"}, documents={"text", "known"}
)
ResultT = TypeVar("ResultT")
Item = TypeVar("Item")
Variant = Literal["trial", "base"]
_ENDPOINT_SUFFIX = re.compile(r" at https?://\S+")
_WRONG_ADDRESS_STATUSES = frozenset({404, 405, 410}).union(range(300, 400))


def model_name(chat: Chat) -> str:
    """The model without its endpoint address, so that moving it does not cause re-extraction."""
    return _ENDPOINT_SUFFIX.sub("", chat.name, count=1)


async def extract_chunks(
    chunks: Sequence[Chunk], extract: Callable[[Chunk], Awaitable[Extraction]]
) -> tuple[Extraction, ...]:
    """Extract from all chunks concurrently; raise only errors that would affect all of them."""
    extract = _tell_when_done(extract)
    if len(chunks) == 1:
        return (await _extract_or_fail(chunks[0], extract),)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_extract_or_fail(chunk, extract)) for chunk in chunks]
    except* ClewError as many:
        # The first error cancelled the other tasks.
        raise many.exceptions[0] from None
    return tuple(task.result() for task in tasks)


_on_chunk: ContextVar[Callable[[], None] | None] = ContextVar("on_chunk", default=None)


@contextmanager
def hear_chunks(listener: Callable[[], None]) -> Iterator[None]:
    """Call `listener` whenever a model is done with a chunk, as far as this task asks it."""
    token = _on_chunk.set(listener)
    try:
        yield
    finally:
        _on_chunk.reset(token)


def _tell_when_done(
    extract: Callable[[Chunk], Awaitable[Extraction]],
) -> Callable[[Chunk], Awaitable[Extraction]]:
    listener = _on_chunk.get()
    if listener is None:
        return extract

    async def heard(chunk: Chunk) -> Extraction:
        try:
            return await extract(chunk)
        finally:
            listener()

    return heard


async def _extract_or_fail(
    chunk: Chunk, extract: Callable[[Chunk], Awaitable[Extraction]]
) -> Extraction:
    try:
        return await extract(chunk)
    except AuthError:
        raise
    except ModelError as error:
        if isinstance(error, EndpointError) and error.status in _WRONG_ADDRESS_STATUSES:
            raise
        return Extraction(failed=str(error))


@dataclass(frozen=True)
class ChunkAsker:
    """Sends prompts about one chunk, in its language, and counts what had to be dropped."""

    chat: Chat
    chunk: Chunk
    dropped: Counter[str]
    max_tokens: int | None = None

    @property
    def language(self) -> str:
        """The language of the prompts."""
        return prompt_language(self.chunk.text)

    async def __call__(self, prompt: Prompt[Out], **more: Any) -> Out:
        """Send one prompt about the chunk."""
        like = Request(max_tokens=self.max_tokens, text=self.chunk.text)
        answer = await prompt.ask_detailed(
            self.chat, language=self.language, like=like, text=render_chunk(self.chunk), **more
        )
        if answer.dropped:
            self.dropped["did not fit the answer's shape"] += answer.dropped
        if answer.truncated:
            self.dropped["reply cut off"] += 1
        return answer.value


async def is_incomplete(ask: ChunkAsker, known: str) -> bool:
    """Ask the gleaning judge whether the extraction misses something."""
    return (await ask(COMPLETENESS_PROMPT, known=known)).verdict == "missing"


def render_chunk(chunk: Chunk) -> str:
    """The chunk with title and heading, which resolve pronouns such as "she" and "it"."""
    header = [line for line in dict.fromkeys((chunk.title, chunk.heading)) if line.strip()]
    return "\n".join([*header, "", chunk.text]) if header else chunk.text


@lru_cache(maxsize=64)
def fold_example(template: PromptTemplate, out: type[BaseModel], language: str) -> str:
    """A prompt's example answer and example JSON, folded: names small models may copy from it."""
    examples = [text for author, text in read_sections(template, language) if author == "assistant"]
    return fold("\n".join([*examples, example_json(out)]))


@dataclass(frozen=True)
class Gleaning:
    """The loop variant: `trial` judges, then extracts more; `base` extracts more, then judges."""

    variant: Variant = "trial"
    most: int = 0
    """Maximum number of extra rounds; 0 extracts once only."""

    def __post_init__(self) -> None:
        if self.variant not in ("trial", "base"):
            raise ValueError(f"the gleaning variants are trial and base, not {self.variant!r}")


async def glean(
    gleaning: Gleaning,
    first: ResultT,
    more: Callable[[ResultT], Awaitable[ResultT]],
    lacks: Callable[[ResultT], Awaitable[bool]],
    join: Callable[[ResultT, ResultT], ResultT],
) -> ResultT:
    """Repeat until the judge is satisfied, nothing new is found, or the rounds are used up."""
    found = join(first, first)  # removes its own duplicates, so that equality shows no progress
    try:
        for left in range(gleaning.most, 0, -1):
            if gleaning.variant == "trial" and not await lacks(found):
                break
            merged = join(found, await more(found))
            if merged == found:
                break
            found = merged
            # After the last round the verdict would change nothing.
            if gleaning.variant == "base" and left > 1 and not await lacks(found):
                break
    except ParseError:
        # The results before an unparsable round are kept.
        return found
    return found


def unique_by(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[Item]:
    """The first item of each key, in order."""
    found: dict[Hashable, Item] = {}
    for item in items:
        found.setdefault(key(item), item)
    return list(found.values())


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
class PromptedExtraction(Generic[Out]):
    """An extraction prompt, its follow-up prompt, and how answers are merged and collected."""

    prompt: Prompt[Out]
    follow_up: Prompt[Out]
    describe: Callable[[Out], str]
    """Renders the results so far for the follow-up prompt."""
    merge: Callable[[Out, Out], Out]
    """Merges two answers without duplicates."""
    collect: Callable[[Out, ExtractionCollector], None]

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
            try:
                first = await ask(self.prompt)
            except ParseError as problem:
                if not read_prose(problem.reply, collector):
                    raise
                return collector.to_extraction()
            found = await glean(
                options.gleaning,
                first,
                lambda found: ask(self.follow_up, known=self.describe(found)),
                lambda found: is_incomplete(ask, self.describe(found)),
                self.merge,
            )
            self.collect(found, collector)
        return collector.to_extraction()
