"""Reads PDF page by page (extra `pdf`): by pdfium, and by pypdf where pdfium's words look wrong.

Running headers and footers, tables of contents and indexes are left out; bookmarks become headings;
pages without text are read by tesseract where it is installed. A page begins at a form feed.
"""

import io
import logging
import re
import shutil
import subprocess
import threading
import time
import zlib
from collections.abc import Iterator, Sequence, Set
from functools import cache
from typing import Any

from clew.errors import InputError
from clew.ingest.readers.pages import (
    Bookmark,
    SizedLine,
    drop_page_contents,
    find_large_lines,
    find_large_title,
    is_listing,
    join_pages,
    strip_running_lines,
)
from clew.ingest.readers.pdf_tables import mark_tables
from clew.ingest.readers.pdf_terms import PageLines, find_glued_fonts, mark_terms, measure_page
from clew.ingest.readers.pdf_words import Vocabulary, count_bad_words, join_hyphenated, part_words
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, format_megabytes, read_bytes
from clew.text.places import PAGE_BREAK
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
    # What the printing program knew: no name yet, "(anonymous)", an address, or a file.
    r"\s*(?:untitled|microsoft word|(?:about|blob|data|file|https?):\S+\s*$"
    r"|\(\w+\)\s*$|.*\.(?:docx?|pdf|tex|indd|rtf)\s*$)",
    re.IGNORECASE,
)
_PDFIUM = threading.Lock()  # it is not made for threads; one that was abandoned keeps it
_BAD_SHARE = 0.004  # of a page's words: from there on the other engine is tried
_LISTING_SHARE = 0.15  # of the pages, at both ends: where indexes and contents are looked for
_LEAST_PAGES_FOR_LISTING = 8
_LETTERS = re.compile(r"[\W_]+")
_HEADING_NUMBER = re.compile(
    r"(?:(?:chapter|part|appendix|section|kapitel|chapitre)\s+)?"
    r"(?:\d+(?:\.\d+)*|[A-Z](?:\.\d+)*|[IVXLC]+)[.:)]?\s+",
    re.IGNORECASE,
)
_PAGE_NUMBER = re.compile(r"^\d{1,4}\s+|\s+\d{1,4}$")
_COMMENTS = re.compile(r"^ {0,3}#{1,6}(?:[ \t].*)?$(?:\n {0,3}#.*$)*", re.MULTILINE)
_HEADER_BYTES = 1024  # within which a PDF says that it is one
_MAX_BOOKMARKS, _MAX_BOOKMARK_DEPTH = 20_000, 15
# Scanned pages are rendered and read by a program of its own.
_DOTS_PER_INCH = 200
_NO_TEXT = "has no text layer; run OCR first"
_NO_PROGRAM = "has no text layer; install tesseract, which then reads it, or run OCR first"
_POINTS_PER_INCH = 72
_MAX_PIXELS = 40_000_000  # of a page: a larger one is rendered smaller
_MAX_SECONDS = 120.0  # for one page, whatever the budget
_DEFAULT_LANGUAGE = "eng"
_SOFT_HYPHEN_END = re.compile("[\x02\ufffe\u00ad]\n?")


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
    if b"%PDF" not in raw[:_HEADER_BYTES]:
        raise InputError("is no PDF, or its beginning is damaged: it does not begin as one")
    try:
        reader = PdfReader(io.BytesIO(raw), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise InputError("is encrypted; remove its password first")
        pages, bookmarks, largest = _read_pages(raw, reader, budget)
        title, author = _title_and_author(reader)
        title = title.strip() or largest
    except InputError:
        raise
    except PyPdfError as error:
        raise InputError(f"cannot be read as PDF ({_short_message(error)})") from error
    except _PARSE_ERRORS as error:
        raise InputError(f"is a broken PDF ({_short_message(error)})") from error
    yield _assemble_document(source, _tidy(pages, bookmarks), title, author)


class _Meter:
    """Counts processor time and characters against the budget."""

    def __init__(self, budget: ReadBudget) -> None:
        self._budget = budget
        self._began = time.thread_time()
        self._size = 0

    def add(self, text: str, is_last: bool) -> None:
        """Count a page; raise if the budget is spent and there are more."""
        self._size += len(text)
        if self._size > self._budget.file_bytes:
            raise InputError(f"unpacks to more than {format_megabytes(self._budget.file_bytes)}")
        if time.thread_time() - self._began > self._budget.seconds and not is_last:
            raise InputError(f"{self._budget.say_too_slow()}; split it")


def _read_pages(
    raw: bytes, reader: Any, budget: ReadBudget
) -> tuple[list[str], list[Bookmark], str]:
    """Return the text of each page by the better engine, the bookmarks, and what may be a title."""
    count = len(reader.pages)
    if count > budget.pages:
        raise InputError(f"has {count} pages, over the limit of {budget.pages}; split it")
    meter = _Meter(budget)
    if not _PDFIUM.acquire(blocking=False):
        return _read_by_pypdf(reader, range(count), meter), [], ""
    try:
        found = _read_by_pdfium(raw, count, budget, meter)
    finally:
        _PDFIUM.release()
    if found is None:
        return _read_by_pypdf(reader, range(count), meter), [], ""
    pages, bookmarks, title = found
    known = Vocabulary(pages)
    doubtful = [at for at, page in enumerate(pages) if _is_doubtful(page, known)]
    for at, other in zip(doubtful, _read_by_pypdf(reader, doubtful, meter), strict=True):
        if _is_better(other, pages[at], known):
            pages[at] = other
    return pages, bookmarks, title


def _read_by_pypdf(reader: Any, numbers: Sequence[int], meter: _Meter) -> list[str]:
    texts = []
    for done, number in enumerate(numbers, 1):
        texts.append(clean(reader.pages[number].extract_text()).strip())
        meter.add(texts[-1], done == len(numbers))
    return texts


def _read_by_pdfium(
    raw: bytes, count: int, budget: ReadBudget, meter: _Meter
) -> tuple[list[str], list[Bookmark], str] | None:
    """Return pages, bookmarks and the largest line; None if pdfium cannot read it as it is."""
    try:
        import pypdfium2 as pdfium
    except ImportError:
        return None
    try:
        document = pdfium.PdfDocument(raw)
    except pdfium.PdfiumError:
        return None
    try:
        if len(document) != count:
            return None
        pages: list[PageLines] = []
        lines: list[SizedLine] = []
        glued: list[dict[str, str]] = []
        for number in range(count):
            page = document[number]
            layer = page.get_textpage()
            raw_text = layer.get_text_range()
            lines += _measure_lines(layer, raw_text, number)
            glued.append(find_glued_fonts(layer, raw_text))
            read = measure_page(layer, raw_text, mark_tables(layer, raw_text))
            if not raw_text.strip() and budget.ocr != "never":
                read = PageLines([_read_scan(page, budget.ocr, budget.seconds)], [None])
            pages.append(read)
            meter.add(raw_text, number == count - 1)
        texts = [clean("\n".join(written)) for written in mark_terms(pages)]
        texts = [_SOFT_HYPHEN_END.sub("", text).rstrip().lstrip("\n") for text in texts]
        texts = [part_words(text, parted) for text, parted in zip(texts, glued, strict=True)]
        bookmarks = list(_read_bookmarks(document)) or find_large_lines(lines)
        return texts, bookmarks, find_large_title(lines)
    except pdfium.PdfiumError:
        return None
    finally:
        document.close()


def _measure_lines(layer: Any, text: str, page: int) -> Iterator[SizedLine]:
    """Yield the lines of a page with the font size that each begins with."""
    if len(text) != layer.count_chars():
        return  # characters were added or left out: positions would be wrong
    from pypdfium2.raw import FPDFText_GetFontSize

    at = 0
    for line in text.split("\n"):
        if line.strip():
            indent = len(line) - len(line.lstrip())
            size = float(FPDFText_GetFontSize(layer.raw, at + indent))
            yield SizedLine(page, round(size, 1), clean(line).strip())
        at += len(line) + 1


@cache
def _find_tesseract() -> str:
    """Return the program, or "" where it is not installed."""
    return shutil.which("tesseract") or ""


def _read_scan(page: Any, languages: str, seconds: float) -> str:
    """Return the text of a pdfium page that is a picture; "" without tesseract or text."""
    program = _find_tesseract()
    if not program:
        return ""
    width, height = page.get_size()
    scale = _DOTS_PER_INCH / _POINTS_PER_INCH
    pixels = max(width * height * scale * scale, 1.0)
    scale *= min(1.0, (_MAX_PIXELS / pixels) ** 0.5)
    bitmap = page.render(scale=scale, grayscale=True)
    picture = bytes(bitmap.buffer)
    if len(set(picture[:: max(1, len(picture) // 20_000)])) < 2:
        return ""  # a blank page
    rows = [
        picture[row * bitmap.stride : row * bitmap.stride + bitmap.width]
        for row in range(bitmap.height)
    ]
    graymap = b"P5 %d %d 255\n" % (bitmap.width, bitmap.height) + b"".join(rows)
    language = _DEFAULT_LANGUAGE if languages == "auto" else languages
    try:
        done = subprocess.run(
            [program, "stdin", "stdout", "-l", language],
            input=graymap,
            capture_output=True,
            timeout=min(seconds, _MAX_SECONDS),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.decode("utf-8", "replace").replace("\f", "")


def _read_bookmarks(document: Any) -> Iterator[Bookmark]:
    for number, mark in enumerate(document.get_toc(max_depth=_MAX_BOOKMARK_DEPTH)):
        if number >= _MAX_BOOKMARKS:
            return
        target = mark.get_dest()
        page = target.get_index() if target is not None else None
        title = clean(mark.get_title() or "").strip()
        if page is not None and title:
            yield page, mark.level + 1, title


def _is_doubtful(page: str, known: Vocabulary) -> bool:
    bad, words = count_bad_words(page, known)
    return not page or (words > 0 and bad > max(1, words * _BAD_SHARE))


def _is_better(other: str, page: str, known: Vocabulary) -> bool:
    """Whether the other engine lost no text and has fewer glued and split words."""
    if not page:
        return bool(other)
    if len(_LETTERS.sub("", other)) < 0.9 * len(_LETTERS.sub("", page)):
        return False
    bad, words = count_bad_words(other, known)
    own_bad, own_words = count_bad_words(page, known)
    return bad * max(own_words, 1) < own_bad * max(words, 1)


def _tidy(pages: list[str], bookmarks: Sequence[Bookmark]) -> list[str]:
    """Leave out what is repeated or only lists other pages; mark headings, join cut words."""
    edge = max(1, int(len(pages) * _LISTING_SHARE)) if len(pages) >= _LEAST_PAGES_FOR_LISTING else 0
    pages = strip_running_lines(pages, [(at, title) for at, _, title in bookmarks])
    by_page: dict[int, list[tuple[int, str]]] = {}
    for at, level, title in bookmarks:
        by_page.setdefault(at, []).append((level, title))
    passed: set[str] = set()  # the titles of chapters that began before
    for at, page in enumerate(pages):
        here = {key for _, title in by_page.get(at, ()) for key in _heading_keys(title)}
        page = drop_page_contents(_drop_chapter_line(page, passed - here))
        is_edge = edge > 0 and (at < edge or at >= len(pages) - edge)
        pages[at] = "" if is_edge and is_listing(page) else page
        passed |= here
    known = Vocabulary(pages)
    return [
        _mark_headings(_fence_comments(join_hyphenated(page, known)), by_page.get(at, ()))
        for at, page in enumerate(pages)
    ]


def _fence_comments(page: str) -> str:
    """Put printed lines that begin with `#` into code: they are comments, never our headings."""
    return _COMMENTS.sub(lambda found: f"```\n{found[0]}\n```", page)


def _drop_chapter_line(page: str, passed: Set[str]) -> str:
    """Drop a first line that is the title of an earlier chapter and the number of the page."""
    first, _, rest = page.lstrip("\n").partition("\n")
    bare = _PAGE_NUMBER.sub("", first.strip(), count=1)
    is_running = bare != first.strip() and not passed.isdisjoint(_heading_keys(bare))
    return rest if is_running else page


def _mark_headings(page: str, bookmarks: Sequence[tuple[int, str]]) -> str:
    """Mark the lines that are titles of bookmarks of this page."""
    if not bookmarks or not page:
        return page
    wanted = [(level, _heading_keys(title)) for level, title in bookmarks]
    lines = page.split("\n")
    at = 0
    while at < len(lines):
        for size in (1, 2):  # a title may be broken in two
            line = " ".join(lines[at : at + size])
            if 0 < len(line) < 200 and (level := _take_level(wanted, line)):
                heading = f"{'#' * min(level + 1, 6)} {' '.join(line.split())}"
                marked = ["", heading, ""] if at else [heading, ""]
                lines[at : at + size] = marked
                at += len(marked) - 1
                break
        at += 1
    return "\n".join(lines)


def _take_level(wanted: list[tuple[int, Set[str]]], line: str) -> int:
    """Return the level of the bookmark that a line is, and take it out; 0 if it is none."""
    keys = _heading_keys(line)
    for at, (level, titles) in enumerate(wanted):
        if not keys.isdisjoint(titles):
            del wanted[at]
            return level
    return 0


def _heading_keys(line: str) -> Set[str]:
    """Return what headings are compared by: the letters with and without the number before them."""
    bare = line.strip()
    found = {_LETTERS.sub("", bare).casefold()}
    found.add(_LETTERS.sub("", _HEADING_NUMBER.sub("", bare, count=1)).casefold())
    return found - {""}


def _title_and_author(reader: Any) -> tuple[str, str]:
    info = reader.metadata
    named = (str(value or "") for value in (info and info.title, info and info.author))
    title, author = ("" if _PLACEHOLDER_TITLE.match(one) else one for one in named)
    return title, author


def _assemble_document(source: SourceFile, pages: list[str], title: str, author: str) -> Document:
    if not any(pages):
        raise InputError(_NO_TEXT if _find_tesseract() else _NO_PROGRAM)
    text, starts = join_pages(pages, PAGE_BREAK)
    title = " ".join(clean(title).split())
    metadata: dict[str, Any] = {"format": "pdf", "pages": len(pages)}
    if author:
        metadata["author"] = clean(author)
    return Document(digest(title, text), text, title, (source.name,), metadata, tuple(starts))


def _short_message(error: BaseException) -> str:
    return " ".join(str(error).split())[:100] or type(error).__name__
