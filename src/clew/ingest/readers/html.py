"""Reads HTML: the visible text, with headings and tables in Markdown form.

Menus, footers and the like are left out, recognised by tag, role or class
(docs/decisions/0013-html-boilerplate.md). Everything takes time linear in the page's length.
"""

import html
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from clew.errors import InputError
from clew.ingest.readers.decode import decode
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


_CODE_TAGS = frozenset(
    "script style noscript template svg math iframe object head select textarea".split()
)
_NAVIGATION_TAGS = frozenset("nav footer button".split())
_NAVIGATION_ROLES = frozenset("navigation search banner contentinfo complementary".split())
_NAVIGATION_CLASSES = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navheader|navfooter|menu|topbar|breadcrumbs?|footer|cookies?|consent|"
    r"newsletter|related|headerlink|toplang|bottomlang)(?:$|[\s_-])",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(
    r"([^\s=/>\"']++)\s*+(?:=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s>\"']*+)))?+", re.DOTALL
)
# Never navigation by role or class: the page itself, and elements that need no closing tag.
_NEVER_NAVIGATION = frozenset(
    "html body main br hr img input link meta area base col embed source track wbr "
    "p li dt dd tr td th thead tbody tfoot option".split()
)
_CELL_TAGS = frozenset({"td", "th"})
# Number of line ends that separate an element from its surroundings.
_LINE_BREAKS = dict.fromkeys("br li dt dd tr caption option".split(), 1) | dict.fromkeys(
    "p div section article main header aside blockquote figure figcaption address details summary "
    "ul ol dl table form fieldset hr pre body h1 h2 h3 h4 h5 h6".split(),
    2,
)
_HEADING_MARKS = {f"h{level}": "#" * level for level in range(1, 7)}
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)


def read_html(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a page's title, and its text without scripts, menus and footers."""
    raw = read_bytes(source, budget)
    declared = _CHARSET.search(raw[:4096])
    page, encoding = decode(raw, declared[1].decode("ascii", "replace") if declared else "")
    # An unclosed menu would swallow the page: then keep what looks like menus.
    page_text = (
        _extract_page(page, _CODE_TAGS | _NAVIGATION_TAGS, by_attributes=True)
        or _extract_page(page, _CODE_TAGS | _NAVIGATION_TAGS)
        or _extract_page(page, _CODE_TAGS - {"head"})
    )
    if not page_text:
        raise InputError("has no text")
    metadata = {"format": "html", "encoding": encoding}
    yield make_document(page_text.text(), page_text.title(), source.name, metadata)


def _extract_page(
    page: str, dropped: frozenset[str], by_attributes: bool = False
) -> "_PageText | None":
    page_text = _PageText(dropped)
    for kind, value, source in tokenize_html(page):
        if kind == "text":
            page_text.add_text(value)
        elif kind == "open":
            page_text.open_tag(value, by_attributes and _is_navigation(value, source))
        else:
            page_text.close_tag(value)
    return page_text if page_text.text() else None


def _is_navigation(tag: str, source: str) -> bool:
    """Whether an element is navigation by its role or class; `source` is its opening tag."""
    if tag == "aside":
        return True
    if tag in _NEVER_NAVIGATION or ("class" not in source and "role" not in source):
        return False
    attributes: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(source, len(tag) + 1):
        attributes.setdefault(name.lower(), "".join(values))
    role = attributes.get("role", "").strip().lower()
    if role == "main":
        return False
    return role in _NAVIGATION_ROLES or bool(
        _NAVIGATION_CLASSES.search(attributes.get("class", ""))
    )


class _PageText:
    """Collects a page's text from a token stream: no tree, so nesting costs nothing."""

    def __init__(self, dropped: frozenset[str]) -> None:
        self._dropped = dropped
        self._inside = ""  # the dropped element we are in, and how often it is nested in itself
        self._depth = 0
        self._pre = 0
        self._in_title = False
        self._title: list[str] = []
        self._in_heading = False
        self._heading: list[str] = []
        self._cell = 0  # index of the current cell in its row, from 1
        self._apart = 0  # line ends due before the next text …
        self._marker = ""  # … and the prefix of its line
        self._out: list[str] = []

    def text(self) -> str:
        """Return the page's text with its blocks separated."""
        return re.sub(r"[ \t]+\n", "\n", "".join(self._out)).strip()

    def title(self) -> str:
        """Return the page's title, or its first heading."""
        return "".join(self._title).strip() or "".join(self._heading).strip()

    def open_tag(self, tag: str, is_navigation: bool = False) -> None:
        """Handle an opening tag."""
        self._in_title = tag == "title" and self._inside in {"", "head"} and not self._title
        if tag == "body" and self._inside == "head":  # the head's closing tag is optional
            self._inside = ""
        if self._inside:
            self._depth += tag == self._inside
        elif is_navigation or tag in self._dropped:
            self._inside, self._depth = tag, 1
        else:
            self._begin_tag(tag)

    def close_tag(self, tag: str) -> None:
        """Handle a closing tag."""
        if tag == "title":
            self._in_title = False
        if self._inside:
            self._depth -= tag == self._inside
            if self._depth <= 0:
                self._inside = ""
            return
        if tag in {"tr", "table"}:
            self._cell = 0
        if tag in _HEADING_MARKS or tag == "li":
            self._in_heading = False
            self._marker = ""
        self._pre -= tag == "pre" and self._pre > 0
        self._add_break(tag)

    def add_text(self, text: str) -> None:
        """Handle the text between tags."""
        if self._in_title:
            self._title.append(text)
        elif not self._inside:
            if self._in_heading:
                self._heading.append(text)
            self._append(text if self._pre else re.sub(r"\s+", " ", text))

    def _begin_tag(self, tag: str) -> None:
        if tag in {"tr", "table"}:
            self._cell = 0
        self._add_break(tag)
        self._pre += tag == "pre"
        if tag in _CELL_TAGS:
            self._cell += 1
            if self._cell > 1:
                self._append(" | ")
        elif tag == "li":
            self._marker = "- "
        elif tag in _HEADING_MARKS:
            self._marker += f"{_HEADING_MARKS[tag]} "
            self._in_heading = not self._heading

    def _add_break(self, tag: str) -> None:
        apart = _LINE_BREAKS.get(tag, 0)
        if self._cell and apart:
            self._append(" ")  # a row is one line, whatever its cells contain
        elif not self._marker:
            self._apart = max(self._apart, apart)

    def _append(self, text: str) -> None:
        fresh = self._apart > 0 or not self._out or self._out[-1][-1:] in {" ", "\n"}
        if fresh and not self._pre:
            text = text.removeprefix(" ")
        if text:
            self._out.append("\n" * self._apart + self._marker + text)
            self._apart, self._marker = 0, ""
