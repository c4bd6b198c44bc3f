"""Reads GraphML as a stream; only the current element is in memory."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.parsers import expat

from clew.errors import InputError
from clew.ingest.graphs.fields import (
    MEMBERS_FIELD,
    make_link,
    make_nary_fact,
    make_node,
    type_from_labels,
)
from clew.ingest.graphs.rows import BATCH, Row, RowBatch, StartPosition, UnreadableRow, check_utf8
from clew.ingest.graphs.staging import ANONYMOUS_ID_PREFIX

_PIECE = 1 << 18
_MAX_ELEMENT_CHARS = 16_000_000  # characters in one element


def read_graphml(path: Path, start: StartPosition) -> Iterator[RowBatch]:
    """Yield nodes and edges; a resumed import parses again and skips those it has."""
    check_utf8(path)
    parser = expat.ParserCreate(namespace_separator=" ")
    handler = _GraphmlHandler(parser, start.position)
    parser.StartElementHandler = handler.start_element
    parser.EndElementHandler = handler.end_element
    parser.CharacterDataHandler = handler.add_characters
    parser.StartDoctypeDeclHandler = handler.reject_doctype
    parser.buffer_text = True
    bytes_read = 0
    with path.open("rb") as file:
        while True:
            piece = file.read(_PIECE)
            bytes_read += len(piece)
            try:
                parser.Parse(piece, not piece)
            except expat.ExpatError as error:
                raise InputError(f"{path} is not GraphML: {error}") from error
            if len(handler.rows) >= BATCH or not piece:
                yield RowBatch(
                    handler.pop_rows(), handler.count, parser.CurrentLineNumber, bytes_read
                )
            if not piece:
                return


@dataclass
class _GraphmlHandler:
    """Parser state: the keys declared so far and the current element."""

    parser: expat.XMLParserType
    skip: int
    count: int = 0
    rows: list[Row] = field(default_factory=list)
    keys: dict[str, tuple[str, str]] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    parents: list[tuple[dict[str, str], dict[str, str]]] = field(default_factory=list)
    """Enclosing elements: a node may contain a graph with nodes of its own."""
    text_pieces: list[str] | None = None
    key: str = ""
    size: int = 0

    def start_element(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""
        match tag.rsplit(" ", 1)[-1]:
            case "key":
                self.key = attributes.get("id", "")
                name = attributes.get("attr.name") or self.key
                self.keys[self.key] = (name, attributes.get("for", "all"))
            case "node" | "edge" | "graph":
                self.parents.append((self.attributes, self.fields))
                self.attributes, self.fields, self.size = attributes, {}, 0
            case "data":
                self.key, self.text_pieces = attributes.get("key", ""), []
            case "default":
                self.text_pieces = []

    def add_characters(self, text: str) -> None:
        """Collect character data."""
        if self.text_pieces is None:
            return
        self.size += len(text)
        if self.size > _MAX_ELEMENT_CHARS:
            raise InputError(f"line {self.parser.CurrentLineNumber}: one element is too large")
        self.text_pieces.append(text)

    def end_element(self, tag: str) -> None:
        """Handle the end of an element."""
        match tag.rsplit(" ", 1)[-1]:
            case "data":
                name, _ = self.keys.get(self.key, (self.key, ""))
                self.fields[name] = "".join(self.text_pieces or ())
                self.text_pieces = None
            case "default":
                self.defaults[self.key] = "".join(self.text_pieces or ())
                self.text_pieces = None
            case "node" | "edge" | "graph" as kind:
                if kind != "graph":
                    self._finish_element(kind)
                self.attributes, self.fields = self.parents.pop()

    def reject_doctype(self, *_: object) -> None:
        """Reject a DOCTYPE: it can declare exploding entities, or refer to files."""
        raise InputError("this GraphML has a DOCTYPE, which is not supported; remove that line")

    def pop_rows(self) -> list[Row]:
        """Return the rows since the last call."""
        found, self.rows = self.rows, []
        return found

    def _finish_element(self, kind: str) -> None:
        self.count += 1
        if self.count <= self.skip:
            return
        defaults = {
            name: self.defaults[key]
            for key, (name, whose) in self.keys.items()
            if key in self.defaults and whose in (kind, "all")
        }
        fields = {**defaults, **self.fields}
        if "clew_role" in fields:
            return  # the n-ary fact lists its members itself
        try:
            fields |= _unpack_exact(fields.pop("clew_exact", ""))
            row = self._make_node(fields) if kind == "node" else self._make_edge(fields)
        except (ValueError, TypeError, AttributeError, RecursionError):
            row = UnreadableRow(
                self.parser.CurrentLineNumber, "has a clew_ field that is not the JSON expected"
            )
        self.rows.append(row)

    def _node_id(self, name: str) -> str:
        """Return a node's id; in our own exports it means nothing outside the file."""
        key = self.attributes.get(name, "").strip()
        return ANONYMOUS_ID_PREFIX + key if key and "node_clew_exact" in self.keys else key

    def _make_node(self, fields: dict[str, str]) -> Row:
        key = self._node_id("id")
        line = self.parser.CurrentLineNumber
        if not key:
            return UnreadableRow(line, "is a node without an id")
        if MEMBERS_FIELD in fields:
            return make_nary_fact(fields, line)
        kind = self.attributes.get("labels", "")  # Neo4j's form, `:Person:Author`
        if kind or fields.get("labels", "").startswith(":"):
            kind = kind or fields["labels"]
            fields.pop("labels", None)
        packed = json.loads(fields.pop("clew_attributes", "") or "{}")
        found = make_node(key, fields, type_from_labels(kind.split(":"), fields))
        return replace(found, attributes={**found.attributes, **packed}) if packed else found

    def _make_edge(self, fields: dict[str, str]) -> Row:
        head, tail = self._node_id("source"), self._node_id("target")
        if not head or not tail:
            return UnreadableRow(
                self.parser.CurrentLineNumber, "is an edge without source or target"
            )
        relation = self.attributes.get("label", "")
        if relation:
            fields.pop("label", None)
        return make_link(head, tail, fields, relation)


def _unpack_exact(packed: str) -> dict[str, str]:
    """Unpack the values that XML cannot represent, as our export stores them."""
    found = json.loads(packed) if packed else {}
    return {name.removeprefix("+"): text for name, text in found.items()}
