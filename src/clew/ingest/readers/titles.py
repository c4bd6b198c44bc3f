"""Finds the title of a Markdown text: one of its headings, or its file name."""

import re
from itertools import islice
from pathlib import PurePosixPath

from clew.ingest.headings import find_headings
from clew.ingest.readers.markup import tokenize_html as markup
from clew.names import tokenize

_TITLE_SEARCH_CHARS = 20_000  # a title is looked for in this many first characters
_MAX_REMARK_CHARS = 400  # longest remark before the title
# Badges and other images, links and URLs: decoration, not content.
_LINK = re.compile(r"!?\[[^\[\]]*+\](?:\([^()]*+\)|\[[^\[\]]*+\])?+|\|[^|\n]*+\||https?://\S++")
_DIRECTIVE = re.compile(r"^\.\.(?:[ \t].*)?$(?:\n[ \t]+.*)*+", re.MULTILINE)
_WORD_CHAR = re.compile(r"\w")
_HEADING_TAGS = frozenset(f"h{level}" for level in range(1, 7))
# Files with these conventional names are about their folder.
_FOLDER_FILE_NAME = re.compile(r"readme(?:[._-]\w{2,5})?|index", re.IGNORECASE)


def heading_title(text: str) -> str | None:
    """Return the title heading: one before any text, or the only one of level 1 if near the start.

    None means that there are headings but none is the title; "" that there are no headings.
    """
    text = text[:_TITLE_SEARCH_CHARS]
    found = list(find_headings(text))
    before = text[: found[0].start] if found else text
    if tagged := _html_heading(before):
        return tagged
    if not found:
        return ""
    if not has_words(before):
        return found[0].title
    highest = [heading for heading in found if heading.level == 1]
    soon = len(highest) == 1 and highest[0].start <= _MAX_REMARK_CHARS
    return highest[0].title if soon else None


def _html_heading(text: str) -> str:
    """Return a leading HTML heading, as in `<h1 align="center">Name</h1>`, or ""."""
    pieces: list[str] | None = None
    for kind, value in markup(text):
        if kind == "text" and pieces is not None:
            pieces.append(value)
        elif kind == "text" and has_words(value):
            return ""
        elif kind == "open" and value in _HEADING_TAGS and pieces is None:
            pieces = []
        elif kind == "close" and value in _HEADING_TAGS and pieces is not None:
            return "".join(pieces).strip()
    return ""


def has_words(text: str) -> bool:
    """Return whether there are words besides tags, badges, links and directives."""
    text = "".join(value for kind, value in markup(text) if kind == "text")
    for _ in range(2):  # a badge is an image in a link
        text = _LINK.sub(" ", text)
    return _WORD_CHAR.search(_DIRECTIVE.sub("", text)) is not None


def file_title(name: str, text: str) -> str:
    """Return the file's stem if the text mentions it more than once, else "".

    A text does not mention `notes` or `2024-05-01`; then its first sentence is more telling.
    """
    path = PurePosixPath(name)
    stem = path.parent.name if _FOLDER_FILE_NAME.fullmatch(path.stem) else path.stem
    wanted = tokenize(stem).keys
    keys = tokenize(text[:_TITLE_SEARCH_CHARS]).keys
    if not any(len(key) > 1 and not key.isdigit() for key in wanted):
        return ""
    mentions = (at for at in range(len(keys)) if keys[at : at + len(wanted)] == wanted)
    return stem if len(list(islice(mentions, 2))) > 1 else ""
