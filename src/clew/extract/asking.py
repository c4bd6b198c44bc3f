"""Asking a model about every chunk of a document at once; a chunk that fails does so alone."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic import BaseModel

from clew.errors import AuthError, ClewError, ModelError
from clew.extract.answers import Verdict
from clew.extract.language import prompt_language
from clew.extract.locate import fold
from clew.llm.chat import Chat, EndpointError, Request
from clew.llm.fit import Out, outline
from clew.llm.prompt import Page, Prompt, sections
from clew.types import Chunk, Extraction

JUDGE = Prompt("missing", Verdict, {"text", "known"}, documents={"text", "known"})
_ENDPOINT = re.compile(r" at https?://\S+")
_WRONG_ADDRESS = frozenset({404, 405, 410}).union(range(300, 400))


def model_name(chat: Chat) -> str:
    """The model without its address: moving the endpoint is no reason to extract again."""
    return _ENDPOINT.sub("", chat.name, count=1)


async def each_chunk(
    chunks: Sequence[Chunk], one: Callable[[Chunk], Awaitable[Extraction]]
) -> tuple[Extraction, ...]:
    """Extract from all chunks at once; only what would fail for all of them is raised."""
    if len(chunks) == 1:
        return (await _bear(chunks[0], one),)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_bear(chunk, one)) for chunk in chunks]
    except* ClewError as many:
        # One sentence says it: the first error stopped the others.
        raise many.exceptions[0] from None
    return tuple(task.result() for task in tasks)


async def _bear(chunk: Chunk, one: Callable[[Chunk], Awaitable[Extraction]]) -> Extraction:
    try:
        return await one(chunk)
    except AuthError:
        raise
    except ModelError as error:
        if isinstance(error, EndpointError) and error.status in _WRONG_ADDRESS:
            raise
        return Extraction(failed=str(error))


@dataclass(frozen=True)
class Asker:
    """Asks about one chunk, in its language, and counts what came back unfit."""

    chat: Chat
    chunk: Chunk
    dropped: Counter[str]
    max_tokens: int | None = None

    @property
    def language(self) -> str:
        """The language to ask in."""
        return prompt_language(self.chunk.text)

    async def __call__(self, prompt: Prompt[Out], **more: str) -> Out:
        """Ask one prompt about the chunk."""
        like = Request(max_tokens=self.max_tokens)
        said = await prompt.answer(
            self.chat, language=self.language, like=like, text=shown(self.chunk), **more
        )
        if said.dropped:
            self.dropped["did not fit the answer's shape"] += said.dropped
        if said.cut:
            self.dropped["reply cut off"] += 1
        return said.value


async def lacks(ask: Asker, known: str) -> bool:
    """Ask a loop's judge whether the notes on the chunk lack something."""
    return (await ask(JUDGE, known=known)).verdict == "missing"


def shown(chunk: Chunk) -> str:
    """The chunk as the model reads it: title and heading tell who "she" and "it" are."""
    head = [line for line in dict.fromkeys((chunk.title, chunk.heading)) if line.strip()]
    return "\n".join([*head, "", chunk.text]) if head else chunk.text


@lru_cache(maxsize=64)
def worked_example(page: Page, out: type[BaseModel], language: str) -> str:
    """A prompt's example answer and its shape in words, folded: what small models copy."""
    said = [text for author, text in sections(page, language) if author == "assistant"]
    return fold("\n".join([*said, outline(out)]))
