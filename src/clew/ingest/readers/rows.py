"""Converts a row of fields to a document: finds its text, title and id fields."""

from collections.abc import Collection, Mapping
from typing import Any

from clew.errors import InputError
from clew.ingest.readers.source import SourceFile, make_document
from clew.text import clean
from clew.types import Document

TEXT_FIELDS = ("text", "content", "body", "passage", "context")
TITLE_FIELDS = ("title", "name", "heading")
ID_FIELDS = ("id", "_id", "doc_id", "key")


def row_document(source: SourceFile, row: Any, number: int | None, encoding: str) -> Document:
    """Make the row's document; `number` names a row without an id."""
    if isinstance(row, str):
        row = {"text": row}
    if not isinstance(row, Mapping):
        raise InputError("is not an object with fields")
    fields = {key.casefold(): key for key in row}
    text_key, title_key, id_key = (
        first_field(fields, names) for names in (TEXT_FIELDS, TITLE_FIELDS, ID_FIELDS)
    )
    if not text_key:
        raise InputError(f"has no field named {format_choice(TEXT_FIELDS)}")
    text = _to_text(row[fields[text_key]])
    if not text.strip():
        raise InputError(f"has an empty {text_key!r}")
    used = {fields[key] for key in (text_key, title_key, id_key) if key}
    rest = {clean(key): value for key, value in row.items() if key not in used}
    if encoding != "utf-8":
        rest.setdefault("encoding", encoding)
    title = row[fields[title_key]] if title_key else ""
    identity = _id_text(row[fields[id_key]]) if id_key else ""
    name = _row_name(source, identity, number)
    return make_document(
        text, title if isinstance(title, str) else _to_text(title or ""), name, rest
    )


def _row_name(source: SourceFile, identity: str, number: int | None) -> str:
    if source.row_names == "id" and identity:
        return identity
    where = identity or (str(number) if number else "")
    return f"{source.name}#{where}" if where else source.name


def _id_text(value: Any) -> str:
    return clean(str(value)).strip() if isinstance(value, str | int | float) else ""


def _to_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(item.strip() for item in value)
    if value is None:
        return ""
    if isinstance(value, int | float):
        return str(value)
    raise InputError("has a text that is neither a string nor a list of strings")


def first_field(fields: Collection[str], names: tuple[str, ...]) -> str:
    """Return the first of the names that is a field, or ""."""
    return next((name for name in names if name in fields), "")


def format_choice(names: tuple[str, ...]) -> str:
    """Format names as a choice: "a, b or c"."""
    return f"{', '.join(names[:-1])} or {names[-1]}"
