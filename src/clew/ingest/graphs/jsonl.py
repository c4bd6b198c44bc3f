"""Reads JSON lines: our own export, triples as objects or arrays, and Neo4j's apoc export.

A file that is one JSON array of such values is read too.

Streams the items of a file that is one JSON array; only the current item is in memory.
"""

import json
import re
from collections.abc import Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from clew.errors import InputError
from clew.ingest.graphs.delimited import COLUMN_NAMES
from clew.ingest.graphs.fields import (
    MEMBERS_FIELD,
    make_link,
    make_nary_fact,
    make_node,
    to_text,
    type_from_labels,
)
from clew.ingest.graphs.rows import (
    BATCH,
    MAX_LINE_BYTES,
    NOT_TEXT,
    LineReader,
    Link,
    Node,
    Row,
    RowBatch,
    StartPosition,
    UnreadableRow,
    check_utf8,
    is_storable_row,
)

PIECE = 1 << 16
_ARRAY_START = re.compile(r"\s*\[\s*[\[{]")  # of objects or arrays: an array of strings is a triple
_TOO_DEEP = re.compile(r"\s*(?:\[\s*){64}")  # a damaged line: it costs itself, not the file
_NON_SPACE = re.compile(r"\S")
_DECODER = json.JSONDecoder()
ArrayItem = tuple[Any, int, int]
"""A value, the line it begins on, and about how many bytes of the file were read."""


def is_array(path: Path) -> bool:
    """Return whether the file is one array, not one value per line."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        head = file.read(PIECE)
    if not _ARRAY_START.match(head) or _TOO_DEEP.match(head):
        return False
    first, *others = head.strip().split("\n")
    return not (any(map(str.strip, others)) and _is_json(first))


def read_items(path: Path) -> Iterator[ArrayItem]:
    """Yield every item; raise `InputError` with the line where the array is malformed."""
    check_utf8(path)
    with path.open("rb") as file:
        text = _ArrayParser(path, TextIOWrapper(file, "utf-8-sig", newline="\n"))
        text.expect("[")
        while text.peek() != "]":
            yield text.read_value(), text.line, file.tell()
            if text.peek() != "]":
                text.expect(",")
        text.expect("]")
        if text.peek():
            raise text.syntax_error("goes on after its end")


class _ArrayParser:
    """Parser over a buffer of text that was read but not yet consumed."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self._path, self._file = path, file
        self._held, self._at = "", 0
        self._next = 1
        self.line = 1
        """Line on which the last value began."""

    def peek(self) -> str:
        """Return the next character that is not white space; "" at the end."""
        while True:
            found = _NON_SPACE.search(self._held, self._at)
            self._consume(found.start() if found else len(self._held))
            if found:
                return found[0]
            if not self._read_more(PIECE):
                return ""

    def expect(self, wanted: str) -> None:
        """Consume this character, or raise."""
        if self.peek() != wanted:
            raise self.syntax_error(f"has no {wanted!r}")
        self._consume(self._at + 1)

    def read_value(self) -> Any:
        """Parse and consume the next value."""
        self.peek()
        while True:
            try:
                found, end = _DECODER.raw_decode(self._held, self._at)
            except RecursionError as error:
                raise self.syntax_error("is nested too deeply") from error
            except ValueError as error:
                # Double the buffer each time, so that a long item is not decoded over and over.
                size = len(self._held) - self._at
                if size > MAX_LINE_BYTES or not self._read_more(max(PIECE, size)):
                    raise self.syntax_error("contains invalid JSON") from error
                continue
            if end == len(self._held) and self._read_more(PIECE):
                continue  # a number may continue
            self.line = self._next
            self._consume(end)
            return found

    def syntax_error(self, why: str) -> InputError:
        """Return an error for an array that cannot be read further."""
        return InputError(
            f"{self._path} is a JSON array that {why} in line {self._next}; "
            "correct it, or write one object per line"
        )

    def _consume(self, end: int) -> None:
        self._next += self._held.count("\n", self._at, end)
        self._at = end

    def _read_more(self, size: int) -> bool:
        self._held, self._at = self._held[self._at :], 0
        try:
            piece = self._file.read(size)
        except UnicodeDecodeError as error:
            raise InputError(f"{self._path} is not UTF-8 text; convert it") from error
        self._held += piece
        return bool(piece)


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


_ID_KEYS = ("id", "_id", "key")
_EXTRACTION_KEYS = ("triples", "extracted_triples", "openie")


def read_jsonl(path: Path, start: StartPosition) -> Iterator[RowBatch]:
    """Yield the rows of each line, or of each item of an array, from `start` on."""
    if is_array(path):
        yield from _read_array(path, start)
        return
    lines = LineReader(path, start)
    yield from lines.to_batches(_read_rows(lines))


def _read_array(path: Path, start: StartPosition) -> Iterator[RowBatch]:
    """Yield the rows of an array; a resumed import parses again and skips those it has."""
    rows: list[Row] = []
    good = number = line = 0
    for number, (value, line, bytes_read) in enumerate(read_items(path), start=1):
        if number <= start.position:
            continue
        found = _parse_storable(value, line)
        rows += found
        good += any(not isinstance(row, UnreadableRow) for row in found)
        if len(rows) >= BATCH:
            yield RowBatch(rows, number, line, bytes_read, good)
            rows, good = [], 0
    yield RowBatch(rows, number, line, path.stat().st_size, good)


def _read_rows(lines: LineReader) -> Iterator[list[Row]]:
    for text in lines:
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            yield [UnreadableRow(lines.line, "is not JSON")]
            continue
        yield _parse_storable(value, lines.line)


def _parse_storable(value: Any, line: int) -> list[Row]:
    """Convert one JSON value; a row with lists where text belongs costs that row only."""
    try:
        return [
            row if is_storable_row(row) else UnreadableRow(line, NOT_TEXT)
            for row in parse_value(value, line)
        ]
    except (TypeError, ValueError, AttributeError, RecursionError):
        return [UnreadableRow(line, "has a value of another form than expected")]


def parse_value(value: Any, line: int) -> list[Row]:
    """Convert one JSON value to rows: a triple, an edge, a node or an n-ary fact."""
    if isinstance(value, list):
        return _parse_list(value, line)
    if not isinstance(value, dict):
        return [UnreadableRow(line, "is neither an object nor an array of three")]
    if value.get("kind") in ("entity", "fact", "community", "meta"):
        return _parse_own_export(value, line)
    if any(isinstance(value.get(name), list) for name in _EXTRACTION_KEYS):
        return [
            UnreadableRow(
                line, "is a recorded extraction; import it with --format openie --corpus FILE"
            )
        ]
    if value.get("type") in ("node", "relationship"):
        return [_parse_apoc(value, line)]
    return _parse_object(value, line)


def _parse_list(values: list[Any], line: int) -> list[Row]:
    """Parse an array: a triple of strings and numbers, or a list of objects and triples."""
    if _is_triple(values):
        return _parse_triple([to_text(value) for value in values], {}, line)
    if not any(isinstance(value, dict | list) for value in values):
        return [UnreadableRow(line, "is neither an object nor an array of three")]
    rows: list[Row] = []
    for value in values:
        # Lists nested any deeper are not followed.
        rows += parse_value(value if isinstance(value, dict) or _is_triple(value) else None, line)
    return rows


def _is_triple(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and all(isinstance(one, str | int | float) for one in value)
    )


def _parse_own_export(value: Mapping[str, Any], line: int) -> list[Row]:
    left = {k: v for k, v in value.items() if k not in ("kind", "said", "support", "id")}
    if value["kind"] in ("meta", "community"):
        return []  # derived again here
    if value["kind"] == "entity":
        name = to_text(left.get("name"))
        attributes = left.get("attributes") or {}
        if not name or not isinstance(attributes, dict):
            return [UnreadableRow(line, "is an entity without a name")]
        found = make_node(name, {k: left[k] for k in ("description", "aliases") if k in left})
        own = {str(k): to_text(v) for k, v in attributes.items() if to_text(v)}
        kind = to_text(left.get("type"))
        return [Node(name, "", kind, found.description, found.aliases, own)]
    if MEMBERS_FIELD in left:
        return [make_nary_fact(left, line)]
    ends = [to_text(left.pop(end, "")) for end in ("head", "relation", "tail")]
    return _parse_triple(ends, left, line)


def _parse_triple(ends: list[str], more: Mapping[str, Any], line: int) -> list[Row]:
    for name, value in zip(("head", "relation", "tail"), ends, strict=True):
        if not value:
            return [UnreadableRow(line, f"has no {name}")]
    return [make_link(ends[0], ends[2], more, ends[1])]


def _parse_apoc(value: Mapping[str, Any], line: int) -> Row:
    fields = value.get("properties") or {}
    if not isinstance(fields, dict):
        return UnreadableRow(line, "has properties that are not an object")
    if value["type"] == "node":
        labels, fields = value.get("labels"), dict(fields)
        kind = type_from_labels(labels if isinstance(labels, list) else [labels], fields)
        key = to_text(value.get("id"))
        return (
            make_node(key, fields, kind) if key else UnreadableRow(line, "is a node without an id")
        )
    ends = [value.get("start"), value.get("end")]
    head, tail = (to_text(e.get("id")) if isinstance(e, dict) else to_text(e) for e in ends)
    if not head or not tail:
        return UnreadableRow(line, "is a relationship without start or end")
    return make_link(head, tail, fields, to_text(value.get("label")))


def _parse_object(obj: dict[str, Any], line: int) -> list[Row]:
    """Parse an object with table column names as keys; without head and tail it is a node."""
    left = dict(obj)
    plain = {key.replace("_", "").replace(" ", "").casefold(): key for key in left}
    cells = {}
    for meaning in ("head", "relation", "tail", "head_type", "tail_type"):
        key = next((plain[name] for name in COLUMN_NAMES[meaning] if name in plain), None)
        if key in left and isinstance(left[key], str | int | float):
            cells[meaning] = to_text(left[key])
    if "head" not in cells and "tail" not in cells:
        key = next((to_text(left.pop(k)) for k in _ID_KEYS if to_text(left.get(k))), "")
        key = key or to_text(left.get("name")) or to_text(left.get("label"))
        return (
            [make_node(key, left)] if key else [UnreadableRow(line, "has neither ends nor an id")]
        )
    used = {plain[n] for m in cells for n in COLUMN_NAMES[m] if n in plain}
    rest = {key: value for key, value in left.items() if key not in used}
    found = _parse_triple([cells.get(end, "") for end in ("head", "relation", "tail")], rest, line)
    ends = (("head", "head_type"), ("tail", "tail_type"))
    nodes = [Node(cells[end], type=cells[kind]) for end, kind in ends if cells.get(kind)]
    return [*nodes, *found] if isinstance(found[0], Link) else found
