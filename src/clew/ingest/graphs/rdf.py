"""Reads RDF (N-Triples and Turtle) and interprets its triples as graph rows.

Labels name their node, comments describe it, `rdf:type` types it. Other literals become facts with
the value as tail, so that questions can ask for them; very long ones become attributes. Turtle is
read with rdflib (extra `rdf`) as a stream of triples; none is kept in memory.
"""

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any

from clew.errors import ConfigError, InputError
from clew.ingest.files import document_name
from clew.ingest.graphs.rows import (
    BATCH,
    BEST_NAME_RANK,
    LineReader,
    Link,
    Node,
    Row,
    RowBatch,
    StartPosition,
    UnreadableRow,
    check_utf8,
)
from clew.text.names import local_name
from clew.text.unicode import clean, digest
from clew.version import pip_install_command

_LONG_LITERAL = 200  # characters above which a literal becomes an attribute, not a fact
_RDFS, _SKOS = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2004/02/skos/core#"
_QUEUE_SIZE = 4  # batches the Turtle parser may be ahead of the reader
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
    kind = "number" if value.datatype in _NUMBER_TYPES else ""
    kind = "date" if value.datatype in _DATE_TYPES else kind
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
            yield [UnreadableRow(lines.line, "has an escape that is not a character")]
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


def read_turtle(path: Path, start: StartPosition) -> Iterator[RowBatch]:
    """Yield the rows of the triples; a resumed import parses again and skips those it has."""
    try:
        import rdflib
    except ImportError as error:
        raise ConfigError(f"Turtle needs rdflib; `{pip_install_command('rdf')}`") from error
    check_utf8(path)
    queue: Queue[list[Any] | BaseException | None] = Queue(_QUEUE_SIZE)
    stop = threading.Event()
    parser = threading.Thread(
        target=_run_parser, args=(rdflib, path, queue, stop), name=f"parse {path}", daemon=True
    )
    parser.start()
    try:
        yield from _read_batches(rdflib, path, queue, start)
    finally:
        stop.set()
        while parser.is_alive():
            if not queue.empty():
                queue.get()
            parser.join(0.01)


def _read_batches(rdflib: Any, path: Path, queue: Any, start: StartPosition) -> Iterator[RowBatch]:
    place, size, blanks = 0, path.stat().st_size, blank_node_prefix(path)
    while (triples := queue.get()) is not None:
        if isinstance(triples, BaseException):
            raise triples
        before, place = place, place + len(triples)
        if place <= start.position:
            continue
        rows: list[Row] = []
        good = 0
        for subject, predicate, value in triples[max(0, start.position - before) :]:
            head, tail = (_convert_term(rdflib, node, blanks) for node in (subject, value))
            found = to_row_list(interpret_triple(head.id, str(predicate), tail), 0)
            if isinstance(found[0], UnreadableRow):
                where = f"{predicate} of {head.id}"  # rdflib does not give the line
                found = [UnreadableRow(0, f"(line unknown in Turtle) has an empty value: {where}")]
            else:
                good += 1
            rows += found
        yield RowBatch(rows, place, 0, size if queue.empty() else 0, good)


def _convert_term(rdflib: Any, node: Any, blanks: str) -> RdfTerm:
    if isinstance(node, rdflib.Literal):
        text = clean(join_surrogates(str(node))).strip()
        return RdfTerm(text, True, str(node.datatype or ""), (node.language or "").lower())
    return RdfTerm(f"{blanks}{node}" if isinstance(node, rdflib.BNode) else f"<{node}>")


def _run_parser(rdflib: Any, path: Path, queue: Any, stop: threading.Event) -> None:
    """Run the parser over a store that forwards every triple and keeps none."""
    pending: list[Any] = []
    numbers: dict[Any, Any] = {}

    def numbered(node: Any) -> Any:
        """Number blank nodes by their order in the file: rdflib's ids differ in each run."""
        if not isinstance(node, rdflib.BNode):
            return node
        if node not in numbers:
            numbers[node] = rdflib.BNode(str(len(numbers) + 1))
        return numbers[node]

    class Passing(rdflib.store.Store):  # type: ignore[misc]
        def add(self, triple: Any, context: Any, quoted: bool = False) -> None:
            if stop.is_set():
                raise _ParserStopped
            pending.append(tuple(map(numbered, triple)))
            if len(pending) >= BATCH:
                queue.put(pending.copy())
                pending.clear()

    try:
        with _RAW_LITERALS.enable(rdflib), path.open("rb") as file:
            rdflib.Graph(store=Passing()).parse(file, format="turtle", publicID="urn:graph:")
        queue.put(pending.copy())
        queue.put(None)
    except _ParserStopped:
        pass
    except Exception as error:  # noqa: BLE001  (thread boundary: raised where it is awaited)
        queue.put(InputError(f"{path} is not Turtle: {_short_error(error)}"))


class _RawLiterals:
    """Makes rdflib keep literals as written and log no warnings while files are parsed.

    Both are settings of the whole process, so the first of several files sets them and the last
    restores them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files = 0
        self._before: tuple[bool, int] = (True, logging.NOTSET)

    @contextmanager
    def enable(self, rdflib: Any) -> Iterator[None]:
        """Apply the settings inside the context."""
        logger = logging.getLogger("rdflib.term")
        with self._lock:
            if not self._files:
                self._before = rdflib.NORMALIZE_LITERALS, logger.level
                rdflib.NORMALIZE_LITERALS = False
                logger.setLevel(logging.CRITICAL)
            self._files += 1
        try:
            yield
        finally:
            with self._lock:
                self._files -= 1
                if not self._files:
                    rdflib.NORMALIZE_LITERALS, level = self._before
                    logger.setLevel(level)


_RAW_LITERALS = _RawLiterals()


class _ParserStopped(Exception):  # noqa: N818  (internal signal)
    pass


def _short_error(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
