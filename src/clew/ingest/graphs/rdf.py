"""Interprets RDF triples as graph rows, and reads N-Triples line by line.

Labels name their node, comments describe it, `rdf:type` types it. Other literals become facts with
the value as tail, so that questions can ask for them; very long ones become attributes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clew.ingest.find import document_name
from clew.ingest.graphs.lines import LineReader
from clew.ingest.graphs.rows import (
    BEST_NAME_RANK,
    Link,
    Node,
    Row,
    RowBatch,
    StartPosition,
    UnreadableRow,
)
from clew.names import local_name
from clew.text import clean, digest

_LONG_LITERAL = 200  # characters above which a literal becomes an attribute, not a fact
_RDFS, _SKOS = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2004/02/skos/core#"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_LABEL_RANKS = {
    f"{_RDFS}label": 0,
    f"{_SKOS}prefLabel": 1,
    "http://schema.org/name": 2,
    "https://schema.org/name": 2,
    "http://xmlns.com/foaf/0.1/name": 3,
    "http://purl.org/dc/terms/title": 4,
    "http://purl.org/dc/elements/1.1/title": 4,
}
_FOREIGN_RANK = 10  # added to the rank of labels in languages other than English
_ALIAS_PREDICATES = {
    f"{_SKOS}altLabel",
    "http://schema.org/alternateName",
    "https://schema.org/alternateName",
}
_DESCRIPTION_PREDICATES = {
    f"{_RDFS}comment",
    f"{_SKOS}definition",
    "http://schema.org/description",
    "https://schema.org/description",
    "http://purl.org/dc/terms/description",
    "http://purl.org/dc/elements/1.1/description",
}
_XSD = "http://www.w3.org/2001/XMLSchema#"
_DATE_TYPES = {f"{_XSD}{name}" for name in ("date", "dateTime", "gYear", "gYearMonth", "time")}
_NUMBER_TYPES = {
    f"{_XSD}{name}"
    for name in (
        *("integer", "decimal", "double", "float", "int", "long", "short", "byte"),
        *("nonNegativeInteger", "positiveInteger", "unsignedInt", "unsignedLong"),
    )
}

# No two parts of a pattern can match the same characters, so that a line that is not a triple is
# rejected in linear time.
_IRI_CHARS = r"[^<>\"{}|^`\\\x00-\x20]*"
_IRI = rf"<({_IRI_CHARS}(?:\\(?:u[0-9A-Fa-f]{{4}}|U[0-9A-Fa-f]{{8}}){_IRI_CHARS})*)>"
_BLANK = r"(_:[^\s<>\"]*[^\s<>\".])(?=[\s<.]|$)"  # a final dot ends the statement
_LITERAL = r'"([^"\\]*(?:\\.[^"\\]*)*+)"(?:\^\^' + _IRI + r"|@([A-Za-z0-9-]+))?"
_TRIPLE = re.compile(
    rf"\s*(?:{_IRI}|{_BLANK})\s*{_IRI}\s*(?:{_IRI}|{_BLANK}|{_LITERAL})"
    rf"\s*(?:(?:{_IRI}|{_BLANK})\s*)?\.\s*(?:#.*)?$",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")
_ESCAPED_CHARACTERS = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(frozen=True, slots=True)
class RdfTerm:
    """An IRI as `<iri>`, a blank node as `_:name`, or a literal as its text."""

    id: str
    literal: bool = False
    datatype: str = ""
    language: str = ""


def interpret_triple(subject: str, predicate: str, value: RdfTerm) -> Row | tuple[Row, Row]:
    """Convert a triple to rows; subject and predicate are ids, the predicate without brackets."""
    if not value.literal:
        if predicate == RDF_TYPE:
            return Node(subject, type=local_name(value.id.strip("<>")))
        return Link(subject, f"<{predicate}>", value.id)
    text = value.id
    if predicate in _LABEL_RANKS:
        foreign = value.language not in ("", "en") and not value.language.startswith("en-")
        rank = BEST_NAME_RANK + _LABEL_RANKS[predicate] + (_FOREIGN_RANK if foreign else 0)
        return Node(subject, name=text, rank=rank)
    if predicate in _ALIAS_PREDICATES:
        return Node(subject, aliases=(text,))
    if predicate in _DESCRIPTION_PREDICATES:
        return Node(subject, description=text)
    if len(text) > _LONG_LITERAL:
        return Node(subject, attributes={local_name(predicate): text})
    link = Link(subject, f"<{predicate}>", text)
    kind = (
        "date"
        if value.datatype in _DATE_TYPES
        else "number"
        if value.datatype in _NUMBER_TYPES
        else ""
    )
    return (link, Node(text, type=kind)) if kind else link


def read_ntriples(path: Path, start: StartPosition) -> Iterator[RowBatch]:
    """Yield the rows of a file's triples (or quads), from `start` on."""
    lines = LineReader(path, start)
    yield from lines.to_batches(_parse_lines(lines, blank_node_prefix(path)))


def blank_node_prefix(path: Path) -> str:
    """Return the prefix of this file's blank nodes: their labels are local to the file."""
    return f"_:{digest(document_name(path))[:8]}."


def _parse_lines(lines: LineReader, blanks: str) -> Iterator[list[Row]]:
    for text in lines:
        stripped = text.strip()
        if not stripped or stripped.startswith("#"):
            continue
        found = _TRIPLE.match(text)
        if found is None:
            yield [UnreadableRow(lines.line, "is not a triple")]
            continue
        iri, blank, predicate, *value = found.groups()[:8]
        try:
            rows = interpret_triple(
                f"<{_unescape(iri)}>" if iri is not None else blanks + blank[2:],
                _unescape(predicate),
                _parse_term(blanks, *value),
            )
        except (ValueError, OverflowError):
            yield [UnreadableRow(lines.line, "has an escape that is no character")]
            continue
        yield to_row_list(rows, lines.line)


def to_row_list(interpreted: Row | tuple[Row, Row], line: int) -> list[Row]:
    """Return the rows of a triple as a list, or an `UnreadableRow` for an empty value."""
    rows = list(interpreted) if isinstance(interpreted, tuple) else [interpreted]
    if any(isinstance(row, Link) and not row.tail for row in rows):
        return [UnreadableRow(line, "has an empty value")]
    return rows


def _parse_term(
    blanks: str,
    iri: str | None,
    blank: str | None,
    text: str | None,
    datatype: str | None,
    language: str | None,
) -> RdfTerm:
    if iri is not None:
        return RdfTerm(f"<{_unescape(iri)}>")
    if blank is not None:
        return RdfTerm(blanks + blank[2:])
    value = clean(_unescape(text or "")).strip()
    return RdfTerm(value, True, _unescape(datatype or ""), (language or "").lower())


def _unescape(text: str) -> str:
    return join_surrogates(_ESCAPE.sub(_unescape_match, text)) if "\\" in text else text


def join_surrogates(text: str) -> str:
    """Join surrogate pairs, which some writers escape separately; a lone half becomes U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub(_decode_surrogates, text)


def _decode_surrogates(match: re.Match[str]) -> str:
    return match[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _unescape_match(match: re.Match[str]) -> str:
    short, long, other = match.groups()
    if other is not None:
        return _ESCAPED_CHARACTERS.get(other, other)
    found = chr(int(short or long, 16))
    return found if "\ud800" <= found <= "\udfff" else clean(found)
