"""Turtle, parsed by rdflib (extra `rdf`); its triples are handed on as they come, none is kept."""

import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any

from clew.errors import ConfigError, InputError
from clew.ingest.graphs.lines import check
from clew.ingest.graphs.rdf import Term, meaning
from clew.ingest.graphs.rows import BATCH, Batch, Link, Row, Start
from clew.text import clean
from clew.version import pip_install

_WAITING = 4  # batches that the parser may be ahead


def read_turtle(path: Path, start: Start) -> Iterator[Batch]:
    """Hand out what the triples say; a killed import parses again and skips what it has."""
    try:
        import rdflib
    except ImportError as error:
        raise ConfigError(f"Turtle needs rdflib; `{pip_install('rdf')}`") from error
    check(path)
    queue: Queue[list[Any] | BaseException | None] = Queue(_WAITING)
    stop = threading.Event()
    parser = threading.Thread(
        target=_parse, args=(rdflib, path, queue, stop), name=f"parse {path}", daemon=True
    )
    parser.start()
    try:
        yield from _batches(rdflib, path, queue, start)
    finally:
        stop.set()
        while parser.is_alive():
            if not queue.empty():
                queue.get()
            parser.join(0.01)


def _batches(rdflib: Any, path: Path, queue: Any, start: Start) -> Iterator[Batch]:
    place, size = 0, path.stat().st_size
    while (triples := queue.get()) is not None:
        if isinstance(triples, BaseException):
            raise triples
        before, place = place, place + len(triples)
        if place <= start.place:
            continue
        rows: list[Row] = []
        for subject, predicate, value in triples[max(0, start.place - before) :]:
            said = meaning(_term(rdflib, subject).id, str(predicate), _term(rdflib, value))
            found = said if isinstance(said, tuple) else (said,)
            rows += [row for row in found if not isinstance(row, Link) or row.tail]
        yield Batch(rows, place, 0, size if queue.empty() else 0)


def _term(rdflib: Any, node: Any) -> Term:
    if isinstance(node, rdflib.Literal):
        text = clean(str(node)).strip()
        return Term(text, True, str(node.datatype or ""), (node.language or "").lower())
    return Term(f"_:{node}" if isinstance(node, rdflib.BNode) else f"<{node}>")


def _parse(rdflib: Any, path: Path, queue: Any, stop: threading.Event) -> None:
    """Run the parser over a store that hands every triple on and keeps none."""
    held: list[Any] = []

    class Passing(rdflib.store.Store):  # type: ignore[misc]
        def add(self, triple: Any, context: Any, quoted: bool = False) -> None:
            if stop.is_set():
                raise _Stopped
            held.append(triple)
            if len(held) >= BATCH:
                queue.put(held.copy())
                held.clear()

    try:
        with path.open("rb") as file:
            rdflib.Graph(store=Passing()).parse(file, format="turtle", publicID="urn:graph:")
        queue.put(held.copy())
        queue.put(None)
    except _Stopped:
        pass
    except Exception as error:  # noqa: BLE001  (a thread's edge: raised where it is awaited)
        queue.put(InputError(f"{path} is not Turtle: {_sentence(error)}"))


class _Stopped(Exception):  # noqa: N818  (nobody sees it)
    pass


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
