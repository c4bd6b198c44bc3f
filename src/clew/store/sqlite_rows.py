"""Conversion between dataclasses and SQLite rows."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clew.store.merge import Mention, Saying
from clew.types import Chunk, Document, Entity, Fact, Participant

Row = tuple[Any, ...]


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def packed(value: Sequence[Any] | Mapping[str, Any]) -> str:
    """Encode a small value as JSON; empty values, which are most, as the empty string."""
    return _ENCODER.encode(value) if value else ""


def packed_spans(many: Sequence[tuple[int, int]]) -> str:
    """Encode spans as JSON without the encoder: faster, and every mention has some."""
    return f"[{','.join([f'[{start},{end}]' for start, end in many])}]" if many else ""


def texts(cell: str) -> tuple[str, ...]:
    """Decode a list of texts."""
    return tuple(json.loads(cell)) if cell else ()


def table(cell: str) -> dict[str, Any]:
    """Decode a mapping."""
    return dict(json.loads(cell)) if cell else {}


def spans(cell: str) -> tuple[tuple[int, int], ...]:
    """Decode a list of spans."""
    return tuple((start, end) for start, end in json.loads(cell)) if cell else ()


def document_row(document: Document, stamp: str) -> Row:
    """Row of `documents`."""
    pages = packed(document.page_starts)
    return (document.id, document.title, document.text, packed(document.metadata), pages, stamp)


def document(row: Row, names: Sequence[str]) -> Document:
    """From (id, title, text, metadata, pages)."""
    key, title, text, metadata, pages = row
    starts = tuple(json.loads(pages)) if pages else ()
    return Document(key, text, title, tuple(names), table(metadata), starts)


def chunk(row: Row) -> Chunk:
    """From (id, document id, start, end, text, title, heading, page)."""
    return Chunk(*row)


def mention_cells(mention: Mention) -> Row:
    """Cells of `mentions` after the keys of entity and chunk."""
    return (
        mention.surface,
        mention.type,
        mention.description,
        packed_spans(mention.spans),
        len(mention.spans),
        mention.about,
        packed(mention.aliases),
        packed(mention.attributes),
    )


def mention(row: Row) -> Mention:
    """From (surface, type, description, about, aliases, attributes), without spans."""
    surface, kind, description, about, aliases, attributes = row
    return Mention(surface, kind, description, (), about, texts(aliases), table(attributes))


def saying_cells(saying: Saying) -> Row:
    """Cells of `sayings` after the keys; without a relation the text is stored in the fact."""
    return (
        saying.text if saying.relation else "",
        saying.relation,
        packed(saying.keywords),
        saying.description,
        saying.weight,
        *saying.span,
    )


def saying(row: Row) -> Saying:
    """From (text, relation, keywords, description, weight)."""
    text, relation, keywords, description, weight = row
    return Saying(text, relation, texts(keywords), description, weight)


def entity(row: Row) -> Entity:
    """From (id, name, type, description, aliases, attributes, support)."""
    key, name, kind, description, aliases, attributes, support = row
    return Entity(key, name, kind, description, texts(aliases), table(attributes), support)


def fact(row: Row, members: Iterable[Participant]) -> Fact:
    """From (id, text, relation, keywords, description, weight, support)."""
    key, text, relation, keywords, description, weight, support = row
    return Fact(key, text, tuple(members), relation, texts(keywords), description, weight, support)
