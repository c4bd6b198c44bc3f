"""Reads HTML: the visible text in the markup of `clew.text.structure`.

Menus, footers and the like are left out (`navigation`). Everything takes time linear in the page's
length.
"""

import html
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from clew.errors import InputError
from clew.ingest.readers.decode import decode
from clew.ingest.readers.list_numbers import NumberStyle
from clew.ingest.readers.markup import describe_image
from clew.ingest.readers.navigation import (
    CODE_TAGS,
    NAVIGATION_TAGS,
    WHOLE_PAGE,
    PageParts,
    find_parts,
)
from clew.ingest.readers.page_text import PLAIN_NUMBER, ListNumber, PageText
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, make_document, read_bytes
from clew.types import Document

# Quotes count only after `=`. All quantifiers are possessive: nothing is scanned twice.
_TAG = re.compile(
    r"<(/?)([a-zA-Z][^\s/>]*+)(?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+'|))*+>", re.DOTALL
)
_RAW_TEXT_ENDS = {
    name: re.compile(rf"</{name}(?![\w-])", re.IGNORECASE)
    for name in ("script", "style", "title", "textarea")
}
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class HtmlToken(NamedTuple):
    """A tag name, or the text between tags with its entities decoded."""

    kind: Literal["open", "close", "text"]
    value: str
    source: str = ""
    """The whole opening tag, with its attributes."""


def tokenize_html(page: str) -> Iterator[HtmlToken]:
    """Yield the tokens of a page; a truncated tag at its end is left out."""
    at = 0
    raw = dict(_RAW_TEXT_ENDS)  # the elements whose content is not markup
    while at < len(page):
        sign = page.find("<", at)
        following = page[sign + 1 : sign + 2] if sign >= 0 else ""
        if sign < 0:
            yield HtmlToken("text", html.unescape(page[at:]))
            return
        if sign > at:
            yield HtmlToken("text", html.unescape(page[at:sign]))
        if following in _LETTERS or following == "/":
            tag = _TAG.match(page, sign)
            if tag:
                name = tag[2].lower()
                yield HtmlToken("close", name) if tag[1] else HtmlToken("open", name, tag[0])
                at = tag.end()
                if name in raw and not tag[1]:
                    end = _find_raw_end(page, at, name, raw)
                    yield HtmlToken("text", html.unescape(page[at:end]))
                    at = end
                continue
        at = _skip_non_tag(page, sign, following)
        if at == sign + 1:
            yield HtmlToken("text", "<")


def _find_raw_end(page: str, at: int, name: str, raw: dict[str, re.Pattern[str]]) -> int:
    """Find the end of a raw-text element; an unclosed title ends at the next tag."""
    end = raw[name].search(page, at)
    if end:
        return end.start()
    del raw[name]  # a later one is not closed either: do not search again
    following = page.find("<", at) if name == "title" else -1
    return following if following >= 0 else len(page)


def _skip_non_tag(page: str, sign: int, following: str) -> int:
    """Skip a comment, a declaration or an unterminated tag; else only the `<` itself."""
    if page.startswith("<!--", sign):
        end = page.find("-->", sign + 2)
        return end + 3 if end >= 0 else len(page)
    if following in {"!", "?", "/"}:
        end = page.find(">", sign)
        return end + 1 if end >= 0 else len(page)
    return len(page) if following in _LETTERS else sign + 1


_NOTE_REFERENCE = re.compile(r"\bnoteref\b|\bfootnote-?ref(?:erence)?\b", re.IGNORECASE)
_PAGE_LINK = re.compile(
    r"\bhref\s{0,9}=\s{0,9}[\"']?[^\"'\s>#]{0,200}#([^\"'\s>]{0,200})", re.IGNORECASE
)
_ID = re.compile(r"\sid\s{0,9}=\s{0,9}[\"']?([^\"'\s>]{1,200})", re.IGNORECASE)
_BACK_LINK = re.compile("[↩⤴↑]\ufe0e?")
_MAX_NOTE_MARK = 6  # characters
_MAX_SYMBOL = 3  # letters of a unit or a variable that has a power
_MAX_WORD = 8
_SENTENCE_ENDS = frozenset('.,;:!?)"”’»。，')
_CELL_TAGS = frozenset({"td", "th"})
_SPAN = re.compile(r"\b(colspan|rowspan)\s{0,9}=\s{0,9}[\"']?(\d{1,3})", re.IGNORECASE)
_ALT = re.compile(r"\salt\s{0,9}=\s{0,9}(?:\"([^\"]*+)\"|'([^']*+)')", re.IGNORECASE)
_NUMBERED_TAGS = frozenset({"ol", "li"})
_NUMBER = re.compile(r"\s(?:start|value)\s{0,9}=\s{0,9}[\"']?(-?\d{1,5})", re.IGNORECASE)
_NUMBER_TYPE = re.compile(r"\stype\s{0,9}=\s{0,9}[\"']?([aAiI])\b")
_NUMBER_STYLES: dict[str, NumberStyle] = {
    "a": "lower letter",
    "A": "upper letter",
    "i": "lower roman",
    "I": "upper roman",
}
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)


def read_html(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a page's title, and its text without scripts, menus and footers."""
    raw = read_bytes(source, budget)
    declared = _CHARSET.search(raw[:4096])
    page, encoding = decode(raw, declared[1].decode("ascii", "replace") if declared else "")
    page_text = read_page(page)
    if page_text is None:
        raise InputError("has no text")
    if page_text.is_only_index():
        raise InputError("is only an index or a table of contents of other pages")
    metadata: dict[str, Any] = {"format": "html", "encoding": encoding}
    if page_text.terms:
        metadata["terms"] = page_text.terms
    yield make_document(page_text.text(), page_text.title(), source.name, metadata)


def read_page(page: str, is_book: bool = False) -> PageText | None:
    """Return the text of a page; None if it has none. What stands aside in a book is its text."""
    parts = find_parts(tokenize_html(page), is_book)
    page_text = extract_page(page, CODE_TAGS | NAVIGATION_TAGS, parts)
    # An unclosed menu would swallow the page: then keep what looks like menus.
    if not page_text.text() and not page_text.is_only_index():
        page_text = extract_page(page, CODE_TAGS | NAVIGATION_TAGS)
    if not page_text.text() and not page_text.is_only_index():
        page_text = extract_page(page, CODE_TAGS - {"head"})
    return page_text if page_text.text() or page_text.is_only_index() else None


def extract_page(page: str, dropped: frozenset[str], parts: PageParts = WHOLE_PAGE) -> PageText:
    """Return the text of the parts of a page without the dropped elements."""
    page_text = PageText(dropped)
    notes = _NoteMarks()
    in_title = False
    for at, (kind, value, source) in enumerate(tokenize_html(page)):
        in_title |= kind == "open" and value == "title"
        if not (in_title or parts.reads(at)):
            continue
        if kind == "text":
            page_text.add_text(notes.mark_text(value))
        elif kind == "open":
            spans = _cell_spans(source) if value in _CELL_TAGS else (1, 1)
            mark = notes.open_tag(value, source)
            numbered = _list_number(source, mark) if value in _NUMBERED_TAGS else PLAIN_NUMBER
            page_text.open_tag(value, parts.menus.get(at, ""), spans, numbered)
            if value == "img" and (alt := _ALT.search(source)):
                page_text.add_text(describe_image(html.unescape(alt[1] or alt[2] or "")))
        else:
            notes.close_tag(value)
            page_text.close_tag(value)
            in_title &= value != "title"
    return page_text


class _NoteMarks:
    """Sets references to notes, and exponents, apart from the words they stand at.

    A note that has no mark itself gets that of the reference to it.
    """

    def __init__(self) -> None:
        self._raised = False
        self._refers = False
        self._before = ""  # the text before, as far as one word may reach
        self._target = ""  # where the link leads that we are in
        self._marks: dict[str, str] = {}  # of notes by their ids
        self._due = ""  # the mark of the note that begins

    def open_tag(self, tag: str, source: str) -> str:
        """Note a raised text, or a link from it; return the mark of an item that is a note."""
        if tag == "sup":
            self._raised = True
        elif tag == "a":
            link = _PAGE_LINK.search(source)
            self._target = link[1] if link else ""
            to_page = self._raised and link is not None
            self._refers = to_page or _NOTE_REFERENCE.search(source) is not None
        found = _ID.search(source) if self._marks and "id" in source else None
        mark = self._marks.pop(found[1], "") if found else ""
        if mark and tag != "li":
            self._due = mark
        return mark if tag == "li" else ""

    def close_tag(self, tag: str) -> None:
        """Leave a raised text or a link."""
        self._raised &= tag != "sup"
        self._refers &= tag != "a"

    def mark_text(self, text: str) -> str:
        """Return a text with its mark: `[1]` of a note, `^6` of a number."""
        bare = text.strip()
        word, self._before = self._before, (self._before + text)[-_MAX_WORD:]
        before = word[-1:]
        if _BACK_LINK.fullmatch(bare):
            return ""
        if bare and self._due:
            mark, self._due = self._due, ""
            has_own = bare[0] in "[(" or re.match(rf"{re.escape(mark)}(?!\w)", bare)
            return text if has_own else f"[{mark}] {text.lstrip()}"
        if not (self._refers or self._raised) or not bare or len(bare) > _MAX_NOTE_MARK:
            return text
        ends = before in _SENTENCE_ENDS or word[-_MAX_SYMBOL - 1 :].isalpha()
        is_note = self._refers or (ends and len(word) > _MAX_SYMBOL and bare.isdigit())
        if self._refers and self._target:
            self._marks.setdefault(self._target, bare.strip("[]()"))
        if is_note and bare[0] not in "[(":
            return f"[{bare}]"
        return f"^{bare}" if self._raised and not self._refers and _is_power(word, bare) else text


def _is_power(before: str, raised: str) -> bool:
    """Whether what is raised is a power: `10⁶`, `2ⁿ`, `m²`; not `1ˢᵗ`, nor a note at a word."""
    number = raised.lstrip("+-−").isdigit()
    if before[-1:].isdigit():
        return number or len(raised) == 1
    word = re.search(r"[^\W\d_]*+\Z", before)
    return number and word is not None and 0 < len(word[0]) <= _MAX_SYMBOL


def _list_number(source: str, mark: str) -> ListNumber:
    number, kind = _NUMBER.search(source), _NUMBER_TYPE.search(source)
    style = _NUMBER_STYLES[kind[1]] if kind else "decimal"
    return ListNumber(int(number[1]) if number else None, style, mark)


def _cell_spans(source: str) -> tuple[int, int]:
    spans = {name.lower(): int(count) for name, count in _SPAN.findall(source)}
    return max(1, spans.get("colspan", 1)), max(1, spans.get("rowspan", 1))
