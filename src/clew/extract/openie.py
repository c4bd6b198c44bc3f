"""Recorded extractions: reads a file of a model's open information extraction of a corpus.

Two layouts, one JSON object per line; `id` is the document's id in its corpus:

    {"id": 7, "entities": ["Orla Quist", …], "triples": [["Orla Quist", "founded", "…"], …]}
    {"id": 7, "output": "what the model answered, however broken"}
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from clew.errors import InputError, ParseError
from clew.extract.collect import ExtractionCollector, clean_line, split_relation_words, triple_text
from clew.extract.locate import ChunkLocator
from clew.llm.parse import parse_answer
from clew.text.unicode import clean
from clew.types import Chunk, Document, Extraction

MAX_ROW_BYTES = 64 * 2**20

RecordedTriple = tuple[str, str, str]


class RecordedReply(BaseModel):
    """What a recorded reply may hold; its items are checked one by one."""

    entities: list[Any] = []
    triples: list[Any] = []


@dataclass(frozen=True, slots=True)
class RecordedDocument:
    """The entities and triples of one document."""

    entities: tuple[str, ...] = ()
    triples: tuple[RecordedTriple, ...] = ()


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that could not be parsed."""

    line: int
    reason: str


@dataclass(frozen=True)
class Recording:
    """The documents of a file by corpus id, and its unusable rows and items."""

    name: str
    mark: str
    rows: Mapping[str, RecordedDocument] = field(default_factory=dict, repr=False)
    bad: tuple[BadRow, ...] = field(default=(), repr=False)
    dropped: Mapping[str, int] = field(default_factory=dict, repr=False)
    """Dropped items, by reason."""


def load_recording(path: Path, strict: bool = False) -> Recording:
    """Load a file of recorded extractions; `strict` raises at the first unusable row."""
    rows: dict[str, RecordedDocument] = {}
    bad: list[BadRow] = []
    dropped: Counter[str] = Counter()
    hasher = blake2b(digest_size=6)
    for number, raw in _iter_lines(path, hasher):
        try:
            key, document = _parse_row(raw, dropped)
        except InputError as error:
            if strict:
                raise InputError(f"{path} line {number} {error}.") from error
            bad.append(BadRow(number, str(error)))
            continue
        earlier = rows.get(key, RecordedDocument())
        rows[key] = RecordedDocument(
            tuple(dict.fromkeys(earlier.entities + document.entities)),
            tuple(dict.fromkeys(earlier.triples + document.triples)),
        )
    return Recording(path.name, hasher.hexdigest(), rows, tuple(bad), dict(dropped))


def _iter_lines(path: Path, hasher: blake2b) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of every non-blank line; all lines go into the hash."""
    try:
        with path.open("rb") as file:
            number = 0
            while raw := file.readline(MAX_ROW_BYTES + 1):
                if len(raw) > MAX_ROW_BYTES:
                    raise InputError(
                        f"{path} line {number + 1} is longer than {MAX_ROW_BYTES} bytes."
                    )
                number += 1
                hasher.update(raw)
                if raw.strip():
                    yield number, raw
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): check the path.") from error


def _parse_row(raw: bytes, dropped: Counter[str]) -> tuple[str, RecordedDocument]:
    try:
        row = json.loads(raw.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON ({error})") from error
    if not isinstance(row, dict):
        raise InputError("is not a JSON object")
    key = row.get("id")
    if isinstance(key, bool) or not isinstance(key, str | int | float) or not str(key).strip():
        raise InputError("has no id")
    return clean(str(key)).strip(), _parse_document(row, dropped)


def _parse_document(row: Mapping[str, Any], dropped: Counter[str]) -> RecordedDocument:
    if isinstance(row.get("output"), str):
        try:
            reply = parse_answer(row["output"], RecordedReply)
        except ParseError as error:
            raise InputError(f"has no usable reply: {error}") from error
        if reply.truncated:
            dropped["reply cut off"] += 1
        entities, triples = reply.value.entities, reply.value.triples
    else:
        entities, triples = row.get("entities", []), row.get("triples", [])
        if not isinstance(entities, list) or not isinstance(triples, list):
            raise InputError("has entities or triples that are not a list")
        if not row.keys() & {"entities", "triples"}:
            raise InputError("has neither entities and triples nor an output")
    return RecordedDocument(
        tuple(_clean_entities(entities, dropped)), tuple(_clean_triples(triples, dropped))
    )


def _clean_entities(items: Iterable[Any], dropped: Counter[str]) -> Iterator[str]:
    seen: set[str] = set()
    for item in items:
        name = clean_line(item) if isinstance(item, str) else ""
        if not name:
            dropped["entity that is no name"] += 1
        elif name not in seen:
            seen.add(name)
            yield name


def _clean_triples(items: Iterable[Any], dropped: Counter[str]) -> Iterator[RecordedTriple]:
    seen: set[RecordedTriple] = set()
    for item in items:
        if not isinstance(item, list) or len(item) != 3:
            dropped["triple without exactly three parts"] += 1
            continue
        if not all(isinstance(part, str) for part in item):
            dropped["triple with a part that is no text"] += 1
            continue
        head, relation, tail = (clean_line(part) for part in item)
        if not (head and relation and tail):
            dropped["triple with an empty part"] += 1
        elif (head, relation, tail) not in seen:
            seen.add((head, relation, tail))
            yield head, relation, tail


@dataclass(frozen=True)
class Recorded:
    """Extractor that returns recorded results; documents are matched by name."""

    recording: Recording
    version: int = 1
    dropped: Counter[str] = field(default_factory=Counter, repr=False, compare=False)
    """Dropped items so far, by reason; documents without a record count here too."""

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """Assign entities and facts to the chunks that contain them, else to the first chunk."""
        found = self._find_document(document)
        collectors = [
            ExtractionCollector(ChunkLocator(chunk), document.title, "", self.dropped)
            for chunk in chunks
        ]
        if collectors:
            for name in found.entities:
                containing = [item for item in collectors if item.locator.find_name(name)]
                for collector in containing or collectors[:1]:
                    collector.add_entity(name)
            for head, relation, tail in found.triples:
                self._choose_chunk(collectors, head, relation, tail).add_triple(
                    head, relation, tail
                )
        return tuple(collector.to_extraction() for collector in collectors)

    def _find_document(self, document: Document) -> RecordedDocument:
        rows = self.recording.rows
        for name in document.names:
            # Documents read from a corpus file are named like `corpus.jsonl#17`.
            for key in (name, name.rpartition("#")[2]):
                if key in rows:
                    return rows[key]
        self.dropped["document without a record"] += 1
        return RecordedDocument()

    def _choose_chunk(
        self, collectors: Sequence[ExtractionCollector], head: str, relation: str, tail: str
    ) -> ExtractionCollector:
        """The chunk with most of the fact's participants, the earliest on ties."""
        if len(collectors) == 1:
            return collectors[0]
        text = triple_text(head, split_relation_words(relation), tail)
        counts = [
            collector.locator.find_fact((head, tail), text).names_found for collector in collectors
        ]
        return collectors[counts.index(max(counts))]
