"""Reads JSON lines: our own export, triples as objects or arrays, and Neo4j's apoc export.

A file that is one JSON array of such values is read too.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clew.ingest.graphs.array import is_array, items
from clew.ingest.graphs.delimited import COLUMNS
from clew.ingest.graphs.fields import labelled, link_of, node_of, text_of
from clew.ingest.graphs.lines import Lines
from clew.ingest.graphs.members import MEMBERS, nary_of
from clew.ingest.graphs.rows import BATCH, Bad, Batch, Link, Node, Row, Start

_KEYS = ("id", "_id", "key")
_RECORDED = ("triples", "extracted_triples", "openie")


def read_jsonl(path: Path, start: Start) -> Iterator[Batch]:
    """Yield the rows of each line, or of each item of an array, from `start` on."""
    if is_array(path):
        yield from _of_items(path, start)
        return
    lines = Lines(path, start)
    yield from lines.batches(_rows(lines))


def _of_items(path: Path, start: Start) -> Iterator[Batch]:
    """Yield the rows of an array; a resumed import parses again and skips those it has."""
    rows: list[Row] = []
    good = number = line = 0
    for number, (value, line, bytes_read) in enumerate(items(path), start=1):
        if number <= start.place:
            continue
        found = row_of(value, line)
        rows += found
        good += any(not isinstance(row, Bad) for row in found)
        if len(rows) >= BATCH:
            yield Batch(rows, number, line, bytes_read, good)
            rows, good = [], 0
    yield Batch(rows, number, line, path.stat().st_size, good)


def _rows(lines: Lines) -> Iterator[list[Row]]:
    for text in lines:
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            yield [Bad(lines.line, "is not JSON")]
            continue
        yield row_of(value, lines.line)


def row_of(value: Any, line: int) -> list[Row]:
    """Convert one JSON value to rows: a triple, an edge, a node or an n-ary fact."""
    if isinstance(value, list):
        return _listed(value, line)
    if not isinstance(value, dict):
        return [Bad(line, "is neither an object nor an array of three")]
    if value.get("kind") in ("entity", "fact", "community", "meta"):
        return _own(value, line)
    if any(isinstance(value.get(name), list) for name in _RECORDED):
        return [Bad(line, "is a recorded extraction; import it with --format openie --corpus FILE")]
    if value.get("type") in ("node", "relationship"):
        return [_apoc(value, line)]
    return _any(value, line)


def _listed(values: list[Any], line: int) -> list[Row]:
    """Parse an array: a triple of strings and numbers, or a list of objects and triples."""
    if _is_triple(values):
        return _triple([text_of(value) for value in values], {}, line)
    if not any(isinstance(value, dict | list) for value in values):
        return [Bad(line, "is neither an object nor an array of three")]
    rows: list[Row] = []
    for value in values:
        # Lists nested any deeper are not followed.
        rows += row_of(value if isinstance(value, dict) or _is_triple(value) else None, line)
    return rows


def _is_triple(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and all(isinstance(one, str | int | float) for one in value)
    )


def _own(value: Mapping[str, Any], line: int) -> list[Row]:
    """Parse a line of our own export."""
    left = {k: v for k, v in value.items() if k not in ("kind", "said", "support", "id")}
    if value["kind"] in ("meta", "community"):
        return []  # derived anew here
    if value["kind"] == "entity":
        name = text_of(left.get("name"))
        attributes = left.get("attributes") or {}
        if not name or not isinstance(attributes, dict):
            return [Bad(line, "is an entity without a name")]
        found = node_of(name, {k: left[k] for k in ("description", "aliases") if k in left})
        own = {str(k): text_of(v) for k, v in attributes.items() if text_of(v)}
        kind = text_of(left.get("type"))
        return [Node(name, "", kind, found.description, found.aliases, own)]
    if MEMBERS in left:
        return [nary_of(left, line)]
    ends = [text_of(left.pop(end, "")) for end in ("head", "relation", "tail")]
    return _triple(ends, left, line)


def _triple(ends: list[str], more: Mapping[str, Any], line: int) -> list[Row]:
    for name, value in zip(("head", "relation", "tail"), ends, strict=True):
        if not value:
            return [Bad(line, f"has no {name}")]
    made = link_of(ends[0], ends[2], more, ends[1])
    return [made]


def _apoc(value: Mapping[str, Any], line: int) -> Row:
    fields = value.get("properties") or {}
    if not isinstance(fields, dict):
        return Bad(line, "has properties that are no object")
    if value["type"] == "node":
        labels, fields = value.get("labels"), dict(fields)
        kind = labelled(labels if isinstance(labels, list) else [labels], fields)
        key = text_of(value.get("id"))
        return node_of(key, fields, kind) if key else Bad(line, "is a node without an id")
    ends = [value.get("start"), value.get("end")]
    head, tail = (text_of(e.get("id")) if isinstance(e, dict) else text_of(e) for e in ends)
    if not head or not tail:
        return Bad(line, "is a relationship without start or end")
    return link_of(head, tail, fields, text_of(value.get("label")))


def _any(obj: dict[str, Any], line: int) -> list[Row]:
    """Parse an object with table column names as keys; without head and tail it is a node."""
    left = dict(obj)
    plain = {key.replace("_", "").replace(" ", "").casefold(): key for key in left}
    cells = {}
    for meaning in ("head", "relation", "tail", "head_type", "tail_type"):
        key = next((plain[name] for name in COLUMNS[meaning] if name in plain), None)
        if key in left and isinstance(left[key], str | int | float):
            cells[meaning] = text_of(left[key])
    if "head" not in cells and "tail" not in cells:
        key = next((text_of(left.pop(k)) for k in _KEYS if text_of(left.get(k))), "")
        key = key or text_of(left.get("name")) or text_of(left.get("label"))
        return [node_of(key, left)] if key else [Bad(line, "has neither ends nor an id")]
    used = {plain[n] for m in cells for n in COLUMNS[m] if n in plain}
    rest = {key: value for key, value in left.items() if key not in used}
    found = _triple([cells.get(end, "") for end in ("head", "relation", "tail")], rest, line)
    ends = (("head", "head_type"), ("tail", "tail_type"))
    nodes = [Node(cells[end], type=cells[kind]) for end, kind in ends if cells.get(kind)]
    return [*nodes, *found] if isinstance(found[0], Link) else found
