"""Conversion between dataclasses and SQLite rows."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clew.errors import StoreError
from clew.store.merge import FactMention, Mention
from clew.store.sqlite.connections import DAMAGED_ROW
from clew.types import Document, Entity, Fact, Participant

Row = tuple[Any, ...]
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def pack(value: Sequence[Any] | Mapping[str, Any]) -> str:
    """Encode a small value as JSON; empty values, which are most, as the empty string."""
    return _ENCODER.encode(value) if value else ""


def pack_spans(many: Sequence[tuple[int, int]]) -> str:
    """Encode spans as JSON without the encoder: faster, and every mention has some."""
    return f"[{','.join([f'[{start},{end}]' for start, end in many])}]" if many else ""


def _decode(cell: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError as error:
        raise StoreError(DAMAGED_ROW) from error


def unpack(cell: str) -> tuple[Any, ...]:
    """Decode a list of texts or numbers."""
    return tuple(_decode(cell)) if cell else ()


def unpack_mapping(cell: str) -> dict[str, Any]:
    """Decode a mapping."""
    return dict(_decode(cell)) if cell else {}


def unpack_spans(cell: str) -> tuple[tuple[int, int], ...]:
    """Decode a list of spans."""
    return tuple((start, end) for start, end in _decode(cell)) if cell else ()


def document_to_row(document: Document, stamp: str) -> Row:
    """Row of `documents`."""
    pages = pack(document.page_starts)
    return (document.id, document.title, document.text, pack(document.metadata), pages, stamp)


def row_to_document(row: Row, names: Sequence[str]) -> Document:
    """From (id, title, text, metadata, pages)."""
    key, title, text, metadata, pages = row
    return Document(key, text, title, tuple(names), unpack_mapping(metadata), unpack(pages))


def mention_to_cells(mention: Mention) -> Row:
    """Cells of `mentions` after the keys of entity and chunk."""
    surface, kind, description, spans, about, aliases, attributes = mention
    # A float, as SQLite returns it: the row's checksum depends on how it is written.
    packed = pack_spans(spans), len(spans), float(about), pack(aliases), pack(attributes)
    return (surface, kind, description, *packed)


def row_to_mention(row: Row) -> Mention:
    """From (surface, type, description, about, aliases, attributes), without spans."""
    surface, kind, description, about, aliases, attributes = row
    merged = unpack(aliases), unpack_mapping(attributes)
    return Mention(surface, kind, description, (), about, *merged)


def fact_mention_to_cells(mention: FactMention) -> Row:
    """Cells of `sayings` after the keys; without a relation the text is stored in the fact."""
    text, relation, keywords, description, weight, span = mention
    own = text if relation else ""
    return (own, relation, pack(keywords), description, float(weight), *span)


def row_to_fact_mention(row: Row) -> FactMention:
    """From (text, relation, keywords, description, weight)."""
    text, relation, keywords, description, weight = row
    return FactMention(text, relation, unpack(keywords), description, weight)


def row_to_entity(row: Row) -> Entity:
    """From (id, name, type, description, aliases, attributes, support)."""
    key, name, kind, description, aliases, attributes, support = row
    merged = unpack(aliases), unpack_mapping(attributes)
    return Entity(key, name, kind, description, *merged, support)


def row_to_fact(row: Row, members: Iterable[Participant]) -> Fact:
    """From (id, text, relation, keywords, description, weight, support)."""
    key, text, relation, keywords, *rest = row
    return Fact(key, text, tuple(members), relation, unpack(keywords), *rest)
