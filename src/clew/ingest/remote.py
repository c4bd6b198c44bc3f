"""Reading, extraction and embedding elsewhere: what is sent, what comes back, and who asks for it.

Payloads are JSON, which any version of Python reads and nothing can hide in. A build that lets
others work gives the same rows as one that does not: what comes back is used in the same order.
"""

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from clew.errors import ModelError
from clew.extract.model_extractors import DocumentExtractor
from clew.graph.parts import RunParts
from clew.ingest.files import ReadItem, parse_here
from clew.ingest.parse_process import decode_items, encode_items
from clew.ingest.readers.source import ReadBudget, SourceFile
from clew.llm.embed import Embedder, EmbedRole, Passage, Vectors
from clew.llm.wrappers import UsageMeter
from clew.types import Chunk, Document, Extraction, RawEntity, RawFact, Usage

TaskKind = Literal["read", "extract", "embed"]
_HEAD_BYTES = 64  # before the vectors of a reply
REMOTE_BATCH = 64  # texts of one task, for embedders without a batch of their own
_REMOTE_CALLS = 16  # tasks at once that read or embed
_MAX_SENT_BYTES = 64_000_000  # of a file; a larger one is parsed where it is


class TaskRunner(Protocol):
    """Runs tasks elsewhere; a task that was given up is run again by another one."""

    @property
    def parts(self) -> RunParts:
        """Computes the parts of a derivation."""

    async def run(self, kind: TaskKind, payload: bytes) -> bytes:
        """Run one task; raise ModelError if it failed for good."""


@dataclass(frozen=True, eq=False)
class RemoteParser:
    """Parses files elsewhere; their bytes are sent, as others may not see this machine's disks."""

    runner: TaskRunner
    at_once: int = _REMOTE_CALLS

    async def __call__(self, source: SourceFile, budget: ReadBudget) -> list[ReadItem]:
        """Parse one file."""
        try:
            if source.path.stat().st_size > min(_MAX_SENT_BYTES, budget.file_bytes):
                return await parse_here(source, budget)
            raw = await asyncio.to_thread(source.path.read_bytes)
        except OSError:
            return await parse_here(source, budget)  # which says why it cannot be read
        payload = encode_read_task(source, budget, raw)
        return decode_items(json.loads(await self.runner.run("read", payload)))


@dataclass(frozen=True, eq=False, repr=False)
class RemoteExtractor:
    """Extracts elsewhere as `inner` would here; its `repr` is `inner`'s, so stamps are equal."""

    inner: DocumentExtractor
    name: str
    runner: TaskRunner
    meter: UsageMeter
    dropped: Counter[str] = field(default_factory=Counter)

    def __repr__(self) -> str:
        return repr(self.inner)

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk."""
        payload = encode_extract_task(self.name, repr(self.inner), document, chunks)
        reply = json.loads(await self.runner.run("extract", payload))
        found = [decode_extraction(one) for one in reply["extractions"]]
        if len(found) != len(chunks):
            raise ModelError(f"a worker returned {len(found)} extractions of {len(chunks)} chunks")
        self.meter.add(Usage(**reply["usage"]))
        self.dropped.update(reply["dropped"])
        return found


@dataclass(frozen=True, eq=False)
class RemoteEmbedder:
    """Embeds passages elsewhere as `inner` would here; questions are embedded here."""

    inner: Embedder
    runner: TaskRunner

    @property
    def name(self) -> str:
        """The name of the embedder."""
        return self.inner.name

    @property
    def dim(self) -> int:
        """The length of every vector."""
        return self.inner.dim

    @property
    def batch(self) -> int:
        """Texts of one task."""
        return int(getattr(self.inner, "batch", REMOTE_BATCH))

    @property
    def concurrency(self) -> int:
        """Tasks at once."""
        return max(_REMOTE_CALLS, int(getattr(self.inner, "concurrency", 1)))

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        """Embed a batch elsewhere."""
        if role != "passage" or not texts:
            return await self.inner(texts, role=role)
        return await self._run({"texts": list(texts)}, len(texts))

    async def _run(self, task: dict[str, Any], count: int) -> Vectors:
        payload = json.dumps({"embedder": self.name, **task}).encode()
        vectors = decode_vectors(await self.runner.run("embed", payload))
        if len(vectors) != count:
            raise ModelError(f"a worker returned {len(vectors)} vectors of {count} texts")
        return vectors

    async def embed_quotes(self, passages: Sequence[Passage], /) -> Vectors:
        """Embed passages and their parts elsewhere, if `inner` can."""
        return await self._run(
            {"passages": list(passages)}, sum(1 + len(spans) for _, spans in passages)
        )


# -- payloads


def encode_read_task(source: SourceFile, budget: ReadBudget, raw: bytes) -> bytes:
    """A task: what the file is called and its limits in one line, then its bytes."""
    about = [source.path.name, source.name, source.row_names, asdict(budget)]
    return json.dumps(about).encode() + b"\n" + raw


async def do_read_task(payload: bytes) -> bytes:
    """Parse the file of a task; return what was read."""
    head, _, raw = payload.partition(b"\n")
    file_name, name, row_names, limits = json.loads(head)
    with tempfile.TemporaryDirectory(prefix="clew-read-") as folder:
        # Its name tells the format; of a path nothing else is used.
        path = Path(folder) / f"file{''.join(Path(file_name).suffixes[-2:])}"
        await asyncio.to_thread(path.write_bytes, raw)
        items = await parse_here(SourceFile(path, name, row_names), ReadBudget(**limits))
    return json.dumps(encode_items(items)).encode()


def encode_extract_task(
    name: str, shown: str, document: Document, chunks: Sequence[Chunk]
) -> bytes:
    """A task: the extractor by name, how it shows itself, and what it extracts from."""
    return json.dumps(
        {
            "extractor": name,
            "shown": shown,
            "document": asdict(document) | {"metadata": dict(document.metadata)},
            "chunks": [asdict(chunk) for chunk in chunks],
        }
    ).encode()


def decode_document(raw: Mapping[str, Any]) -> Document:
    """The document of a task."""
    tuples = {"names": tuple(raw["names"]), "page_starts": tuple(raw["page_starts"])}
    return Document(**{**raw, **tuples})


def encode_extractions(
    found: Sequence[Extraction], dropped: Mapping[str, int], usage: Usage
) -> bytes:
    """The reply to a task: extractions, what was dropped, and what it cost."""
    return json.dumps(
        {
            "extractions": [encode_extraction(one) for one in found],
            "dropped": dict(dropped),
            "usage": asdict(usage),
        }
    ).encode()


def encode_extraction(extraction: Extraction) -> dict[str, Any]:
    """An extraction as plain lists; attributes in their order."""
    return {
        "entities": [
            (e.name, e.type, e.description, e.spans, e.about, e.aliases, dict(e.attributes))
            for e in extraction.entities
        ],
        "facts": [
            (f.text, f.members, f.relation, f.keywords, f.description, f.weight, f.span)
            for f in extraction.facts
        ],
        "failed": extraction.failed,
        "exact": extraction.exact,
    }


def decode_extraction(raw: Mapping[str, Any]) -> Extraction:
    """An extraction from its lists."""
    entities = [
        RawEntity(name, kind, text, _pairs(spans), about, tuple(aliases), {**attributes})
        for name, kind, text, spans, about, aliases, attributes in raw["entities"]
    ]
    facts = [
        RawFact(text, _pairs(members), relation, tuple(words), about, weight, (span[0], span[1]))
        for text, members, relation, words, about, weight, span in raw["facts"]
    ]
    return Extraction(tuple(entities), tuple(facts), raw["failed"], raw["exact"])


def _pairs(many: Sequence[Sequence[Any]]) -> tuple[tuple[Any, Any], ...]:
    return tuple((one, other) for one, other in many)


def encode_vectors(vectors: Vectors) -> bytes:
    """Vectors as bytes, with their shape before them."""
    head = json.dumps(vectors.shape).encode().ljust(_HEAD_BYTES)
    return head + np.ascontiguousarray(vectors, "<f4").tobytes()


def decode_vectors(raw: bytes) -> Vectors:
    """Vectors from their bytes."""
    shape = json.loads(raw[:_HEAD_BYTES])
    return np.frombuffer(raw[_HEAD_BYTES:], "<f4").reshape(shape).astype(np.float32)
