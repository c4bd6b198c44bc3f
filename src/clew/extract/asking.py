"""Asks a model about all chunks of a document concurrently; failures stay local to a chunk."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic import BaseModel

from clew.errors import AuthError, ClewError, ModelError
from clew.extract.answers import CompletenessVerdict
from clew.extract.language import prompt_language
from clew.extract.locate import fold
from clew.llm.chat import Chat, EndpointError, Request
from clew.llm.fit import Out, example_json
from clew.llm.prompt import Prompt, PromptTemplate, read_sections
from clew.types import Chunk, Extraction

COMPLETENESS_PROMPT = Prompt(
    "missing", CompletenessVerdict, {"text", "known"}, documents={"text", "known"}
)
_ENDPOINT_SUFFIX = re.compile(r" at https?://\S+")
_WRONG_ADDRESS_STATUSES = frozenset({404, 405, 410}).union(range(300, 400))


def model_name(chat: Chat) -> str:
    """The model without its endpoint address, so that moving it does not cause re-extraction."""
    return _ENDPOINT_SUFFIX.sub("", chat.name, count=1)


async def extract_chunks(
    chunks: Sequence[Chunk], one: Callable[[Chunk], Awaitable[Extraction]]
) -> tuple[Extraction, ...]:
    """Extract from all chunks concurrently; raise only errors that would affect all of them."""
    if len(chunks) == 1:
        return (await _extract_or_fail(chunks[0], one),)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_extract_or_fail(chunk, one)) for chunk in chunks]
    except* ClewError as many:
        # The first error cancelled the other tasks.
        raise many.exceptions[0] from None
    return tuple(task.result() for task in tasks)


async def _extract_or_fail(
    chunk: Chunk, one: Callable[[Chunk], Awaitable[Extraction]]
) -> Extraction:
    try:
        return await one(chunk)
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

    async def __call__(self, prompt: Prompt[Out], **more: str) -> Out:
        """Send one prompt about the chunk."""
        like = Request(max_tokens=self.max_tokens)
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
def fold_example(page: PromptTemplate, out: type[BaseModel], language: str) -> str:
    """A prompt's example answer and example JSON, folded: names small models may copy from it."""
    examples = [text for author, text in read_sections(page, language) if author == "assistant"]
    return fold("\n".join([*examples, example_json(out)]))
