"""Notes where the text of each document stands in the file that it was read from."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from clew.errors import InputError
from clew.ingest.readers.decode import TextLine, decode
from clew.ingest.readers.source import (
    ReadBudget,
    Skipped,
    SourceFile,
    content_suffix,
    read_bytes,
)
from clew.text.origins import (
    ESCAPES,
    Escapes,
    cut_origins,
    trace_exact,
    trace_lines,
    trace_text,
)
from clew.types import Document

_NO_TEXT = frozenset(
    ".pdf .docx .pptx .epub .xlsx .parquet .sqlite .sqlite3 .db".split()
)  # what is in them has pages, sheets or rows, and no lines
_BY_ROW = frozenset(".csv .tsv .jsonl .ndjson".split())  # their readers know the lines of a row
_ESCAPES_OF = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    **dict.fromkeys((".json", ".ipynb"), "json"),
}
_MOST = 4_000_000  # characters of a file and of what was read from it that are compared


def trace_items(
    items: Iterable[Document | Skipped], source: SourceFile, budget: ReadBudget
) -> Iterator[Document | Skipped]:
    """Yield what was read from a file, documents with their origin if the file is one of text."""
    suffix = content_suffix(source.path)
    if suffix in _NO_TEXT | _BY_ROW or source.path.stat().st_size > 4 * _MOST:
        yield from items
        return
    found = list(items)
    documents = [item for item in found if isinstance(item, Document)]
    encoding = str(documents[0].metadata.get("encoding", "")) if documents else ""
    origins = iter(_trace(documents, _read_text(source, budget, encoding), _choose_escapes(suffix)))
    for item in found:
        yield replace(item, origin=next(origins)) if isinstance(item, Document) else item


def _read_text(source: SourceFile, budget: ReadBudget, encoding: str) -> str:
    """Return a file's text with plain line ends; "" for one that is not text, whatever its name."""
    try:
        text, _ = decode(read_bytes(source, budget), encoding)
    except InputError:
        return ""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _choose_escapes(suffix: str) -> Escapes | None:
    if suffix in _ESCAPES_OF:
        return ESCAPES[_ESCAPES_OF[suffix]]
    is_manual = suffix == ".man" or suffix[1:2].isdigit()
    return ESCAPES["roff"] if is_manual else None


def _trace(documents: Sequence[Document], text: str, escapes: Escapes | None) -> list[str]:
    """Return the origin of each document of a file; they follow each other there."""
    size = len(text) + sum(len(one.text) for one in documents)
    if not text or size > 2 * _MOST:
        return [""] * len(documents)
    if len(documents) == 1:
        return [trace_text(documents[0].text, text, escapes)]
    return cut_origins([one.text for one in documents], text, escapes)


def trace_row(document: Document, lines: Sequence[TextLine]) -> Document:
    """Return the document of a row with its lines, and its place in them where it has one."""
    first, last = lines[0], lines[-1]
    raw = "".join(line.text for line in lines).replace("\r\n", "\n")
    origin = ""
    if first.start >= 0:
        origin = trace_exact(document.text, raw, first.start, first.number)
    return replace(document, origin=origin or trace_lines(first.number, last.number))
