"""Reads Turtle with rdflib (extra `rdf`) as a stream of triples; none is kept in memory."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

from clew.errors import ConfigError, InputError
from clew.ingest.graphs.lines import check_utf8
from clew.ingest.graphs.rdf import (
    RdfTerm,
    blank_node_prefix,
    interpret_triple,
    join_surrogates,
    to_row_list,
)
from clew.ingest.graphs.rows import BATCH, Row, RowBatch, StartPosition, UnreadableRow
from clew.text import clean
from clew.version import pip_install_command

_QUEUE_SIZE = 4  # batches the parser may be ahead of the reader


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
                found = [
                    UnreadableRow(0, f"(no lines are known of Turtle) has an empty value: {where}")
                ]
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
