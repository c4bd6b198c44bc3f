"""What an add would cost, before it costs anything.

The extractor itself is run, but on a stand-in for the model that answers at once with as little as
the asked shape allows: so the number of calls and what would be sent are counted, not guessed.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from clew.ingest.build import Build
from clew.ingest.intake import Intake
from clew.ingest.read import Item, Skipped
from clew.llm.cache import Cache, digest
from clew.llm.chat import Chat, Hear, Reply, Request
from clew.llm.embed import Embed
from clew.model_settings import Price
from clew.store.merge import embedded_text
from clew.store.protocol import Addition
from clew.types import Document, Usage

SAMPLE = 6  # chunks that are really embedded, to know how fast this machine is


@dataclass(frozen=True)
class Rates:
    """What this knowledge base's earlier runs showed, or a first guess."""

    completion: float = 0.25
    """Completion tokens per character of the chunk."""
    seconds_per_call: float = 4.0
    calls: int = 0
    """How many calls the rates come from; 0: a guess."""


@dataclass(frozen=True)
class Plan:
    """The bill before the meal."""

    documents: int = 0
    unchanged: int = 0
    skipped: tuple[Skipped, ...] = ()
    chunks: int = 0
    calls: int = 0
    cached_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: float = 0.0
    seconds: float = 0.0
    guessed: bool = False
    """Whether completion tokens and time rest on a guess rather than on earlier runs."""
    removed: int = 0
    """Rows that are no longer in the file they were read from."""


@dataclass
class Pretence:
    """A chat that only counts: what is remembered costs nothing, the rest is answered emptily."""

    inner: Chat
    cache: Cache
    usage: Usage = field(default_factory=Usage)

    @property
    def name(self) -> str:
        """The real model's, so that remembered replies are found."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Count the request; answer with the least the shape allows."""
        key = digest(self.name, request)
        known = key in await self.cache.recall([key])
        if known:
            self.usage += Usage(cached_calls=1)
        else:
            sent = sum(tokens_in(turn.content) for turn in request.messages)
            self.usage += Usage(calls=1, prompt_tokens=sent)
        schema = request.shape.schema if request.shape else {}
        return Reply(json.dumps(least(schema, schema)))


def tokens_in(text: str) -> int:
    """About how many tokens a chat model makes of a text: four bytes each, whatever the script."""
    return len(text.encode()) // 4 + 4


def least(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """The smallest value that fits a JSON schema, as far as our answer models go."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[-1]
        return least(root.get("$defs", {}).get(name, {}), root)
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return least(schema["anyOf"][0], root)
    match schema.get("type"):
        case "array":
            return []
        case "string":
            return ""
        case "integer" | "number":
            return 0
        case "boolean":
            return False
        case _:
            fields = schema.get("properties", {})
            return {name: least(fields[name], root) for name in schema.get("required", fields)}


async def planned(
    build: Build,
    found: AsyncIterator[Item],
    pretence: Pretence | None,
    price: Price,
    rates: Rates,
    concurrency: int,
) -> Plan:
    """Read and chunk what is new, run the extractor on the pretence, and add up."""
    fresh, intake = await _fresh(build, found)
    additions: list[Addition] = []
    await build.extracted(fresh, additions.append)
    chunks = [chunk for addition in additions for chunk in addition.chunks]
    sent = pretence.usage if pretence else Usage()
    paid = sent.calls / max(1, sent.calls + sent.cached_calls)
    written = round(sum(len(chunk.text) for chunk in chunks) * rates.completion * paid)
    usage = Usage(sent.calls, sent.prompt_tokens, written if sent.calls else 0)
    texts = [embedded_text(chunk) for chunk in chunks]
    seconds = sent.calls * rates.seconds_per_call / concurrency
    return Plan(
        documents=len(fresh),
        unchanged=intake.met["unchanged"],
        skipped=tuple(intake.skipped),
        chunks=len(chunks),
        calls=sent.calls,
        cached_calls=sent.cached_calls,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        money=round(price.of(usage), 6),
        seconds=round(seconds + await _embedding_seconds(build.embed, texts), 1),
        guessed=bool(sent.calls) and not rates.calls,
        removed=len(await intake.gone(build.store)),
    )


async def _fresh(build: Build, found: AsyncIterator[Item]) -> tuple[list[Document], Intake]:
    intake = await build.intake()
    fresh = [document async for item in found if (document := intake.take(item))]
    return fresh, intake


async def _embedding_seconds(embed: Embed | None, texts: Sequence[str]) -> float:
    """Embed a few chunks for real and extrapolate; facts and names add about as much again."""
    if embed is None or not texts:
        return 0.0
    await embed(texts[:1])  # what loading costs is no measure
    step = max(1, len(texts) // SAMPLE)
    sample = list(texts[::step][:SAMPLE])
    began = perf_counter()
    await embed(sample)
    per_character = (perf_counter() - began) / max(1, sum(map(len, sample)))
    return 2 * per_character * sum(map(len, texts))
