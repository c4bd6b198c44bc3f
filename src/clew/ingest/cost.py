"""Estimates the cost of an add without calling a model.

The extractor runs on a dry-run chat that answers at once with the smallest reply its schema
allows: so the number of calls and the prompt tokens are counted, not guessed. Time and disk are
those of a share of the documents that is really built, in a temporary folder.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, NamedTuple

from clew.config import Price
from clew.ingest.build import IngestPipeline
from clew.ingest.chunk import split_rows
from clew.ingest.files import ReadItem
from clew.ingest.readers.source import Skipped, make_document
from clew.llm.cache import Cache, cache_key
from clew.llm.chat import Chat, Reply, Request, TextCallback
from clew.store.protocol import Addition, Store
from clew.store.sqlite.store import SqliteStore
from clew.text.tables import TABLES, read_tables
from clew.types import Document, Usage

_SAMPLE_SECONDS = 10.0  # of the processor, that a sample is built for by `clew add --dry-run`
_FIRST_STEP = 20_000  # characters of the first step of a sample
_PIECE = 8_000  # characters about, of a longer document


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
    bytes: int = 0
    """What the knowledge base grows by on disk."""
    seconds: float | None = 0.0
    """None if no call to this model has been timed yet."""
    guessed: bool = False
    """Whether completion tokens are guessed rather than measured in earlier runs or by a probe."""
    removed: int = 0
    """Rows that are no longer in the file they were read from."""
    note: str = ""
    """What the probe call showed."""


Probe = Callable[[Sequence[Addition]], Awaitable[CostRates]]
"""Extracts from a few chunks of documents with the model, and returns the rates measured."""


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


MakePipeline = Callable[[Store], IngestPipeline]
"""Makes a pipeline that builds in another store as the one estimated would, without a model."""


async def estimate_cost(
    pipeline: IngestPipeline,
    found: AsyncIterator[ReadItem],
    costs: "BuildCosts",
    probe: Probe | None = None,
) -> CostEstimate:
    """Read the new documents and estimate what they cost.

    `probe` makes a few real calls, which measure the rates.
    """
    began = perf_counter()
    classifier = await pipeline.make_classifier()
    documents = [document async for item in found if (document := classifier.classify(item))]
    reading = perf_counter() - began
    made = await costs.estimate(pipeline, documents, probe, _SAMPLE_SECONDS)
    return replace(
        made,
        seconds=None if made.seconds is None else round(made.seconds + reading, 1),
        unchanged=classifier.status_counts["unchanged"],
        skipped=tuple(classifier.skipped),
        removed=len(await classifier.find_removed_rows(pipeline.store)),
    )


@dataclass(frozen=True)
class BuildCosts:
    """Estimates what documents that were read cost: a share of them is built for a moment."""

    sample: MakePipeline
    dry_run: DryRunChat | None
    price: Price
    rates: CostRates

    async def estimate(
        self,
        pipeline: IngestPipeline,
        documents: Sequence[Document],
        probe: Probe | None = None,
        limit: float = 3.0,
    ) -> CostEstimate:
        """Estimate calls, tokens, money, time and disk; `limit` is how long a sample may take."""
        if self.dry_run is not None:
            additions: list[Addition] = []
            await pipeline.extract_documents(documents, additions.append)
            chunks = [chunk for addition in additions for chunk in addition.chunks]
        else:
            additions = []
            chunks = [chunk for one in documents for chunk in split_rows(one, pipeline.chunk)]
        sent = self.dry_run.usage if self.dry_run else Usage()
        rates = await probe(additions) if probe and sent.calls else self.rates
        paid = sent.calls / max(1, sent.calls + sent.cached_calls)
        written = round(sum(len(chunk.text) for chunk in chunks) * rates.completion * paid)
        usage = Usage(sent.calls, sent.prompt_tokens, written if sent.calls else 0)
        seconds, size = await build_sample(self.sample, documents, limit)
        calling = sent.calls * rates.seconds_per_call / rates.at_once
        return CostEstimate(
            documents=len(documents),
            chunks=len(chunks),
            calls=sent.calls,
            cached_calls=sent.cached_calls,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            money=round(self.price.cost(usage), 6),
            # Texts are embedded while the model extracts from others.
            seconds=round(max(calling, seconds), 1) if rates.calls or not sent.calls else None,
            bytes=size,
            guessed=bool(sent.calls) and not rates.calls,
            note=rates.note,
        )


async def build_sample(
    make: MakePipeline, documents: Sequence[Document], limit: float
) -> tuple[float, int]:
    """Return how long building documents takes, and its bytes on disk, judged by a share of them.

    Pieces chosen by their hashes are built in temporary folders, each step twice as many, until
    `limit` seconds of the processor are used, so that other work makes no sample smaller. All of
    them take as long as those of the largest step, and what they add to the disk is what this one
    has more than the one before.
    """
    pieces = [piece for document in documents for piece in _cut(document)]
    pieces.sort(key=lambda piece: piece.id)
    total = sum(len(piece.text) for piece in pieces)
    remaining, size, began = iter(pieces), _FIRST_STEP, process_time()
    steps = [_Step(0, 0.0, 0)]
    while (some := list(_take(remaining, size))) and process_time() - began < limit:
        steps.append(await _build_step(make, some))
        size *= 2
    *_, before, last = [steps[0], *sorted(steps)]
    if not last.characters:
        return 0.0, 0
    growth = (last.bytes - before.bytes) / (last.characters - before.characters)
    seconds = last.seconds / last.characters * total
    return seconds, round(last.bytes + growth * (total - last.characters))


class _Step(NamedTuple):
    """What a part of a sample took."""

    characters: int
    seconds: float
    bytes: int


async def _build_step(make: MakePipeline, pieces: Sequence[Document]) -> _Step:
    with TemporaryDirectory(prefix="clew-sample-") as folder:
        kb = Path(folder) / "kb"
        store = SqliteStore(kb, create=True)
        try:
            began = perf_counter()
            await make(store).add(_iterate(pieces))
            seconds = perf_counter() - began
        finally:
            await store.close()
        size = sum(file.stat().st_size for file in kb.rglob("*") if file.is_file())
    return _Step(sum(len(one.text) for one in pieces), seconds, size)


async def _iterate(documents: Sequence[Document]) -> AsyncIterator[ReadItem]:
    for document in documents:
        yield document


def _take(pieces: Iterator[Document], characters: int) -> Iterator[Document]:
    """Yield pieces until they have so many characters."""
    for piece in pieces:
        yield piece
        characters -= len(piece.text)
        if characters <= 0:
            return


def _cut(document: Document) -> Iterator[Document]:
    """Cut a long document at line ends, or between rows, into pieces of their own."""
    tables = read_tables(document.text, document.metadata)
    if len(document.text) <= _PIECE or not document.text.strip():
        yield from [document] if document.text.strip() else []
        return
    for table in tables:
        spans = list(table.spans())
        first = 0
        for at, (_, _, end) in enumerate(spans):
            if end - spans[first][1] >= _PIECE or at == len(spans) - 1:
                text = document.text[spans[first][1] : end]
                about = {
                    **{"name": table.name, "columns": table.columns, "label": table.label},
                    **{"start": 0, "end": len(text)},
                    "numbers": [[spans[first][0], at + 1 - first]],
                }
                yield make_document(text, document.title, f"{end}", {TABLES: [about]})
                first = at + 1
    at = len(document.text) if tables else 0
    while at < len(document.text):
        end = document.text.find("\n", at + _PIECE) + 1 or len(document.text)
        end = end if end - at <= 2 * _PIECE else at + _PIECE
        text = document.text[at:end]
        if text.strip():
            name = f"{document.id} {at}"
            yield make_document(text, document.title, name, dict(document.metadata))
        at = end
