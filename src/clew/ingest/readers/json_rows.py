"""Reads JSON lines and JSON lists: each row is a document."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from clew.errors import InputError
from clew.ingest.readers.decode import decode
from clew.ingest.readers.lines import read_lines
from clew.ingest.readers.rows import row_document
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, read_bytes
from clew.text import clean
from clew.types import Document

# Lenient where nothing is lost: raw tabs in strings; NaN becomes a string that JSON can write.
_JSON_DECODER = json.JSONDecoder(strict=False, parse_constant=str)


def read_json_lines(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read one JSON object per line; invalid lines are skipped."""
    for line in read_lines(source, budget):
        if isinstance(line, Skipped):
            yield line
        elif raw := line.text.strip():
            try:
                yield row_document(source, _parse_json(raw), line.number, line.encoding)
            except InputError as error:
                yield Skipped(source.name, str(error), line.number)


def read_json(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a JSON list of rows, or a single row."""
    text, encoding = decode(read_bytes(source, budget))
    rows = _parse_json(text.strip())
    if isinstance(rows, Mapping):
        yield row_document(source, rows, None, encoding)
        return
    if not isinstance(rows, list):
        raise InputError("holds neither a list of rows nor a row")
    for number, row in enumerate(rows, 1):
        try:
            yield row_document(source, row, number, encoding)
        except InputError as error:
            yield Skipped(source.name, f"row {number} {error}")


def _parse_json(raw: str) -> Any:
    try:
        row = _JSON_DECODER.decode(raw)
        # Only escapes can put lone surrogates, which no store accepts, into JSON.
        return _clean_strings(row) if "\\u" in raw else row
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON ({error.msg} at character {error.pos + 1})") from error
    except ValueError as error:
        raise InputError(f"is not JSON ({error})") from error
    except RecursionError as error:
        raise InputError("is nested too deeply") from error


def _clean_strings(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean_strings(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): _clean_strings(item) for key, item in value.items()}
    return value
