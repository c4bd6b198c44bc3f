"""HTML tokenizer: the tags and texts of a page in one linear pass.

The standard library's parser takes quadratic time on hostile pages; here every step consumes what
it scanned, so that the time is linear in the page's length.
"""

import html
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

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
                yield HtmlToken("close" if tag[1] else "open", name)
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
