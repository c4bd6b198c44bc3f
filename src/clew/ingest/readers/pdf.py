"""Reads PDF page by page with pypdf (extra `pdf`)."""

import io
import logging
import re
import time
import zlib
from collections.abc import Iterator
from typing import Any

from clew.errors import InputError
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, format_megabytes, read_bytes
from clew.text.unicode import clean, digest
from clew.types import Document
from clew.version import pip_install_command

# pypdf fails on malformed objects with whatever error Python happens to raise.
_PARSE_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
    OSError,
    zlib.error,
)
_PLACEHOLDER_TITLE = re.compile(
    r"untitled|microsoft word|.*\.(?:docx?|pdf|tex|indd|rtf)$", re.IGNORECASE
)
_PAGE_SEPARATOR = "\n\n"


def read_pdf(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a PDF's text layer; the document's `page_starts` are the offsets of its pages."""
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError as error:
        raise InputError(f"needs an extra to be read: {pip_install_command('pdf')}") from error
    # Show pypdf's warnings only where logging is configured.
    logging.getLogger("pypdf").addHandler(logging.NullHandler())
    raw = read_bytes(source, budget)
    try:
        reader = PdfReader(io.BytesIO(raw), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise InputError("is encrypted; remove its password first")
        pages = _read_pages(reader, budget)
        title, author = _title_and_author(reader)
    except InputError:
        raise
    except PyPdfError as error:
        raise InputError(f"cannot be read as PDF ({_short_message(error)})") from error
    except _PARSE_ERRORS as error:
        raise InputError(f"is a broken PDF ({_short_message(error)})") from error
    yield _assemble_document(source, pages, title, author)


def _read_pages(reader: Any, budget: ReadBudget) -> list[str]:
    count = len(reader.pages)
    if count > budget.pages:
        raise InputError(f"has {count} pages, over the limit of {budget.pages}; split it")
    deadline = time.monotonic() + budget.seconds
    texts: list[str] = []
    size = 0
    for number, page in enumerate(reader.pages, 1):
        texts.append(clean(page.extract_text()).strip())
        size += len(texts[-1])
        if size > budget.file_bytes:
            raise InputError(f"unpacks to more than {format_megabytes(budget.file_bytes)}")
        if time.monotonic() > deadline and number < count:
            raise InputError(f"takes longer than {budget.seconds:g} s to read; split it")
    return texts


def _title_and_author(reader: Any) -> tuple[str, str]:
    info = reader.metadata
    title, author = (str(value or "") for value in (info and info.title, info and info.author))
    return ("" if _PLACEHOLDER_TITLE.match(title) else title), author


def _assemble_document(source: SourceFile, pages: list[str], title: str, author: str) -> Document:
    if not any(pages):
        raise InputError("has no text layer; run OCR first")
    starts: list[int] = []
    at = 0
    for page in pages:
        starts.append(at)
        at += len(page) + len(_PAGE_SEPARATOR)
    text = _PAGE_SEPARATOR.join(pages)
    title = " ".join(clean(title).split())
    metadata: dict[str, Any] = {"format": "pdf", "pages": len(pages)}
    if author:
        metadata["author"] = clean(author)
    return Document(digest(title, text), text, title, (source.name,), metadata, tuple(starts))


def _short_message(error: BaseException) -> str:
    return " ".join(str(error).split())[:100] or type(error).__name__
