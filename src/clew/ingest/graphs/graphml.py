"""Reads GraphML as a stream; only the current element is in memory."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.parsers import expat

from clew.errors import InputError
from clew.ingest.graphs.fields import labelled, link_of, node_of
from clew.ingest.graphs.lines import check
from clew.ingest.graphs.members import MEMBERS, nary_of
from clew.ingest.graphs.rows import BATCH, Bad, Batch, Row, Start
from clew.store.graph_stage import ANONYMOUS

_PIECE = 1 << 18
_LONGEST = 16_000_000  # characters in one element


def read_graphml(path: Path, start: Start) -> Iterator[Batch]:
    """Yield nodes and edges; a resumed import parses again and skips those it has."""
    check(path)
    parser = expat.ParserCreate(namespace_separator=" ")
    handler = _Reading(parser, start.place)
    parser.StartElementHandler = handler.opens
    parser.EndElementHandler = handler.closes
    parser.CharacterDataHandler = handler.says
    parser.StartDoctypeDeclHandler = handler.refuses
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
                yield Batch(handler.taken(), handler.count, parser.CurrentLineNumber, bytes_read)
            if not piece:
                return


@dataclass
class _Reading:
    """Parser state: the keys declared so far and the current element."""

    parser: expat.XMLParserType
    skip: int
    count: int = 0
    rows: list[Row] = field(default_factory=list)
    keys: dict[str, tuple[str, str]] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    here: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    around: list[tuple[dict[str, str], dict[str, str]]] = field(default_factory=list)
    """Enclosing elements: a node may contain a graph with nodes of its own."""
    words: list[str] | None = None
    key: str = ""
    size: int = 0

    def opens(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""
        match tag.rsplit(" ", 1)[-1]:
            case "key":
                self.key = attributes.get("id", "")
                name = attributes.get("attr.name") or self.key
                self.keys[self.key] = (name, attributes.get("for", "all"))
            case "node" | "edge" | "graph":
                self.around.append((self.here, self.fields))
                self.here, self.fields, self.size = attributes, {}, 0
            case "data":
                self.key, self.words = attributes.get("key", ""), []
            case "default":
                self.words = []

    def says(self, text: str) -> None:
        """Collect character data."""
        if self.words is None:
            return
        self.size += len(text)
        if self.size > _LONGEST:
            raise InputError(f"line {self.parser.CurrentLineNumber}: one element is too large")
        self.words.append(text)

    def closes(self, tag: str) -> None:
        """Handle the end of an element."""
        match tag.rsplit(" ", 1)[-1]:
            case "data":
                name, _ = self.keys.get(self.key, (self.key, ""))
                self.fields[name] = "".join(self.words or ())
                self.words = None
            case "default":
                self.defaults[self.key] = "".join(self.words or ())
                self.words = None
            case "node" | "edge" | "graph" as kind:
                if kind != "graph":
                    self._ends(kind)
                self.here, self.fields = self.around.pop()

    def refuses(self, *_: object) -> None:
        """Reject a DOCTYPE: it can declare exploding entities, or refer to files."""
        raise InputError("this GraphML has a DOCTYPE, which is not read; take that line out")

    def taken(self) -> list[Row]:
        """Return the rows since the last call."""
        found, self.rows = self.rows, []
        return found

    def _ends(self, kind: str) -> None:
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
            fields |= _exact(fields.pop("clew_exact", ""))
            row = self._node(fields) if kind == "node" else self._edge(fields)
        except ValueError:
            row = Bad(self.parser.CurrentLineNumber, "has a clew_ field that is not JSON")
        self.rows.append(row)

    def _key(self, name: str) -> str:
        """Return a node's id; in our own exports it means nothing outside the file."""
        key = self.here.get(name, "").strip()
        return ANONYMOUS + key if key and "node_clew_exact" in self.keys else key

    def _node(self, fields: dict[str, str]) -> Row:
        key = self._key("id")
        line = self.parser.CurrentLineNumber
        if not key:
            return Bad(line, "is a node without an id")
        if MEMBERS in fields:
            return nary_of(fields, line)
        kind = self.here.get("labels", "")  # Neo4j's form, `:Person:Author`
        if kind or fields.get("labels", "").startswith(":"):
            kind = kind or fields["labels"]
            fields.pop("labels", None)
        packed = json.loads(fields.pop("clew_attributes", "") or "{}")
        found = node_of(key, fields, labelled(kind.split(":"), fields))
        return replace(found, attributes={**found.attributes, **packed}) if packed else found

    def _edge(self, fields: dict[str, str]) -> Row:
        head, tail = self._key("source"), self._key("target")
        if not head or not tail:
            return Bad(self.parser.CurrentLineNumber, "is an edge without source or target")
        relation = self.here.get("label", "")
        if relation:
            fields.pop("label", None)
        return link_of(head, tail, fields, relation)


def _exact(packed: str) -> dict[str, str]:
    """Unpack the values that XML cannot represent, as our export stores them."""
    found = json.loads(packed) if packed else {}
    return {name.removeprefix("+"): text for name, text in found.items()}
