"""Converts a row of fields to a document: finds its text, title and id fields."""

from collections.abc import Collection, Mapping
from typing import Any

from clew.errors import InputError
from clew.ingest.readers.source import Source, document
from clew.text import clean
from clew.types import Document

TEXT = ("text", "content", "body", "passage", "context")
TITLE = ("title", "name", "heading")
ID = ("id", "_id", "doc_id", "key")


def row_document(source: Source, row: Any, number: int | None, encoding: str) -> Document:
    """Make the row's document; `number` names a row without an id."""
    if isinstance(row, str):
        row = {"text": row}
    if not isinstance(row, Mapping):
        raise InputError("is not an object with fields")
    fields = {key.casefold(): key for key in row}
    text_key, title_key, id_key = (one_of(fields, names) for names in (TEXT, TITLE, ID))
    if not text_key:
        raise InputError(f"has no field named {listed(TEXT)}")
    text = _as_text(row[fields[text_key]])
    if not text.strip():
        raise InputError(f"has an empty {text_key!r}")
    used = {fields[key] for key in (text_key, title_key, id_key) if key}
    rest = {clean(key): value for key, value in row.items() if key not in used}
    if encoding != "utf-8":
        rest.setdefault("encoding", encoding)
    title = row[fields[title_key]] if title_key else ""
    identity = _identity(row[fields[id_key]]) if id_key else ""
    name = _row_name(source, identity, number)
    return document(text, title if isinstance(title, str) else _as_text(title or ""), name, rest)


def _row_name(source: Source, identity: str, number: int | None) -> str:
    if source.row_names == "id" and identity:
        return identity
    where = identity or (str(number) if number else "")
    return f"{source.name}#{where}" if where else source.name


def _identity(value: Any) -> str:
    return clean(str(value)).strip() if isinstance(value, str | int | float) else ""


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(item.strip() for item in value)
    if value is None:
        return ""
    if isinstance(value, int | float):
        return str(value)
    raise InputError("has a text that is neither a string nor a list of strings")


def one_of(fields: Collection[str], names: tuple[str, ...]) -> str:
    """Return the first of the names that is a field, or ""."""
    return next((name for name in names if name in fields), "")


def listed(names: tuple[str, ...]) -> str:
    """Format names as a choice: "a, b or c"."""
    return f"{', '.join(names[:-1])} or {names[-1]}"
