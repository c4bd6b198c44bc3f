"""Estimates the cost of an add without calling a model.

The extractor runs on a dry-run chat that answers at once with the smallest reply its schema
allows: so the number of calls and the prompt tokens are counted, not guessed.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from clew.config import Price
from clew.ingest.build import IngestPipeline
from clew.ingest.files import ReadItem
from clew.ingest.readers.source import Skipped
from clew.llm.cache import Cache, cache_key
from clew.llm.chat import Chat, Reply, Request, TextCallback
from clew.llm.embed import Embedder
from clew.store.merge import embedded_text
from clew.store.protocol import Addition
from clew.types import Usage

EMBED_SAMPLE = 6  # chunks that are really embedded, to measure this machine's speed


@dataclass(frozen=True)
class CostRates:
    """Rates measured in earlier runs on this knowledge base, or a first guess."""

    completion: float = 0.25
    """Completion tokens per character of the chunk."""
    seconds_per_call: float = 4.0
    at_once: float = 1.0
    """Calls that ran at once while these were measured."""
    calls: int = 0
    """Number of calls the rates were measured on; 0: a guess, and the time is unknown."""
    note: str = ""
    """What is to be said about how they were measured."""


@dataclass(frozen=True)
class CostEstimate:
    """Cost estimate of an add; nothing is written."""

    documents: int = 0
    unchanged: int = 0
    skipped: tuple[Skipped, ...] = ()
    chunks: int = 0
    calls: int = 0
    cached_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: float = 0.0
    seconds: float | None = 0.0
    """None if no call to this model has been timed yet."""
    guessed: bool = False
    """Whether completion tokens are guessed rather than measured in earlier runs or by a probe."""
    removed: int = 0
    """Rows that are no longer in the file they were read from."""
    note: str = ""
    """What the probe call showed."""


Probe = Callable[[Addition], Awaitable[CostRates]]
"""Extracts from one document with the model, and returns the rates measured."""


@dataclass
class DryRunChat:
    """Chat that only counts calls and tokens; cached replies count as free, others are empty."""

    inner: Chat
    cache: Cache
    usage: Usage = field(default_factory=Usage)

    @property
    def name(self) -> str:
        """Name of the real model, so that cached replies are found."""
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Count the request; return the smallest reply that fits its schema."""
        key = cache_key(self.name, request)
        known = key in await self.cache.get([key])
        if known:
            self.usage += Usage(cached_calls=1)
        else:
            sent = sum(estimate_tokens(turn.content) for turn in request.messages)
            self.usage += Usage(calls=1, prompt_tokens=sent)
        schema = request.response_format.schema if request.response_format else {}
        return Reply(json.dumps(minimal_value(schema, schema)))


def estimate_tokens(text: str) -> int:
    """Estimate the number of chat-model tokens of a text: four bytes each, in any script."""
    return len(text.encode()) // 4 + 4


def minimal_value(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """Return the smallest value that fits a JSON schema, as far as our reply models need."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[-1]
        return minimal_value(root.get("$defs", {}).get(name, {}), root)
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return minimal_value(schema["anyOf"][0], root)
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
            return {
                name: minimal_value(fields[name], root) for name in schema.get("required", fields)
            }


async def estimate_cost(
    pipeline: IngestPipeline,
    found: AsyncIterator[ReadItem],
    dry_run: DryRunChat | None,
    price: Price,
    rates: CostRates,
    probe: Probe | None = None,
) -> CostEstimate:
    """Read and chunk new documents, run the extractor on the dry-run chat, and sum the costs.

    `probe` makes one real call, which measures the rates.
    """
    classifier = await pipeline.make_classifier()
    documents = [document async for item in found if (document := classifier.classify(item))]
    additions: list[Addition] = []
    await pipeline.extract_documents(documents, additions.append)
    chunks = [chunk for addition in additions for chunk in addition.chunks]
    sent = dry_run.usage if dry_run else Usage()
    if probe is not None and sent.calls:
        rates = await probe(additions[len(additions) // 2])
    paid = sent.calls / max(1, sent.calls + sent.cached_calls)
    written = round(sum(len(chunk.text) for chunk in chunks) * rates.completion * paid)
    usage = Usage(sent.calls, sent.prompt_tokens, written if sent.calls else 0)
    texts = [embedded_text(chunk) for chunk in chunks]
    seconds = sent.calls * rates.seconds_per_call / rates.at_once
    embedding = await _estimate_embedding_seconds(pipeline.embed, texts)
    known = rates.calls or not sent.calls
    return CostEstimate(
        documents=len(documents),
        unchanged=classifier.status_counts["unchanged"],
        skipped=tuple(classifier.skipped),
        chunks=len(chunks),
        calls=sent.calls,
        cached_calls=sent.cached_calls,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        money=round(price.cost(usage), 6),
        seconds=round(seconds + embedding, 1) if known else None,
        guessed=bool(sent.calls) and not rates.calls,
        removed=len(await classifier.find_removed_rows(pipeline.store)),
        note=rates.note,
    )


async def _estimate_embedding_seconds(embed: Embedder | None, texts: Sequence[str]) -> float:
    """Embed a few chunks and extrapolate; facts and names take about as long again."""
    if embed is None or not texts:
        return 0.0
    await embed(texts[:1])  # loads the model, which is not measured
    step = max(1, len(texts) // EMBED_SAMPLE)
    sample = list(texts[::step][:EMBED_SAMPLE])
    began = perf_counter()
    await embed(sample)
    per_character = (perf_counter() - began) / max(1, sum(map(len, sample)))
    return 2 * per_character * sum(map(len, texts))
