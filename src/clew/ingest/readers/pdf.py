"""Reads PDF page by page with pypdf (extra `pdf`)."""

import io
import logging
import re
import time
import zlib
from collections.abc import Iterator
from typing import Any

from clew.errors import InputError
from clew.ingest.readers.source import Budget, Skipped, Source, content, megabytes
from clew.text import clean, digest
from clew.types import Document
from clew.version import pip_install

# pypdf fails on malformed objects with whatever error Python happens to raise.
_BROKEN = (
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
_NO_TITLE = re.compile(r"untitled|microsoft word|.*\.(?:docx?|pdf|tex|indd|rtf)$", re.IGNORECASE)
_BETWEEN = "\n\n"


def read_pdf(source: Source, budget: Budget) -> Iterator[Document | Skipped]:
    """Read a PDF's text layer; the document's `page_starts` are the offsets of its pages."""
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError as error:
        raise InputError(f"needs an extra to be read: {pip_install('pdf')}") from error
    # Show pypdf's warnings only where logging is configured.
    logging.getLogger("pypdf").addHandler(logging.NullHandler())
    raw = content(source, budget)
    try:
        reader = PdfReader(io.BytesIO(raw), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise InputError("is encrypted; remove its password first")
        pages = _page_texts(reader, budget)
        title, author = _described(reader)
    except InputError:
        raise
    except PyPdfError as error:
        raise InputError(f"is not a PDF that can be read ({_short(error)})") from error
    except _BROKEN as error:
        raise InputError(f"is a broken PDF ({_short(error)})") from error
    yield _assembled(source, pages, title, author)


def _page_texts(reader: Any, budget: Budget) -> list[str]:
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
            raise InputError(f"unpacks to more than {megabytes(budget.file_bytes)}")
        if time.monotonic() > deadline and number < count:
            raise InputError(f"takes longer than {budget.seconds:g} s to read; split it")
    return texts


def _described(reader: Any) -> tuple[str, str]:
    info = reader.metadata
    title, author = (str(value or "") for value in (info and info.title, info and info.author))
    return ("" if _NO_TITLE.match(title) else title), author


def _assembled(source: Source, pages: list[str], title: str, author: str) -> Document:
    if not any(pages):
        raise InputError("has no text layer; run OCR first")
    starts: list[int] = []
    at = 0
    for page in pages:
        starts.append(at)
        at += len(page) + len(_BETWEEN)
    text = _BETWEEN.join(pages)
    title = " ".join(clean(title).split())
    metadata: dict[str, Any] = {"format": "pdf", "pages": len(pages)}
    if author:
        metadata["author"] = clean(author)
    return Document(digest(title, text), text, title, (source.name,), metadata, tuple(starts))


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:100] or type(error).__name__
