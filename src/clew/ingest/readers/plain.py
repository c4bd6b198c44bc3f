"""Reads plain text, Markdown and reStructuredText unchanged, and finds their titles."""

import re
from collections.abc import Iterator

from clew.ingest.readers.decode import decode
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, make_document, read_bytes
from clew.ingest.readers.titles import file_title, has_words, heading_title
from clew.text import clean
from clew.types import Document

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.{0,20000}?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
# Front matter without a fence (MultiMarkdown, mail): two fields or more, then a blank line.
_BARE_FRONT_MATTER = re.compile(
    r"\A(?:[A-Za-z][\w-]{0,40}+:(?:[ \t].*)?\n(?:[ \t]+.*\n)*+){2,}+(?:[ \t]*\n|\Z)"
)
_FRONT_MATTER_FIELD = re.compile(r"^([A-Za-z][\w-]{0,40}):[ \t]+(\S.*)$", re.MULTILINE)
_UNDERLINE = re.compile(r"^([=\-~^*+\"'`#])\1{2,}[ \t]*$")
_LONGEST_TITLE = 120


def read_plain_text(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a text; a short first line on its own is its title."""
    text, encoding = decode(read_bytes(source, budget))
    text = clean(text)
    yield make_document(text, _first_line_title(text), source.name, _metadata("text", encoding))


def read_rst(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read reStructuredText, where images and other directives may precede the title."""
    text, encoding = decode(read_bytes(source, budget))
    text = clean(text)
    title = _first_line_title(text) or heading_title(text) or ""
    yield make_document(text, title, source.name, _metadata("text", encoding))


def read_unknown(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read any other text without a title: code, settings, logs."""
    text, encoding = decode(read_bytes(source, budget))
    yield make_document(text, "", source.name, _metadata("text", encoding))


def read_markdown(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read Markdown; the title is the front matter's, a heading, or the file's name."""
    text, encoding = decode(read_bytes(source, budget))
    text = clean(text)
    front = _FRONT_MATTER.match(text)
    fields = _parse_front_matter(front[1]) if front else {}
    front = front or _BARE_FRONT_MATTER.match(text)
    body = text[front.end() if front else 0 :]
    title = fields.pop("title", "") or heading_title(body)
    if title is None:
        title = file_title(source.name, body)
    yield make_document(text, title, source.name, fields | _metadata("markdown", encoding))


def _metadata(kind: str, encoding: str) -> dict[str, str]:
    return {"format": kind, "encoding": encoding}


def _parse_front_matter(front_matter: str) -> dict[str, str]:
    """Parse the plain `key: value` lines, without a YAML parser."""
    return {
        key.lower(): value.strip(" \t\"'")
        for key, value in _FRONT_MATTER_FIELD.findall(front_matter)
    }


def _first_line_title(text: str) -> str:
    """Return the first line if it is underlined, or short, alone and without final punctuation."""
    lines = [line.strip() for line in text[:2000].lstrip().split("\n", 4)[:4]] + [""] * 3
    if _UNDERLINE.match(lines[0]) and lines[0] == lines[2]:  # over- and underlined (rst)
        return lines[1]
    first, second = lines[0], lines[1]
    if len(first) > _LONGEST_TITLE or first[:1] in "#/<-[{`" or not has_words(first):
        return ""
    if _UNDERLINE.match(second):
        return first
    alone = not second and "\n" in text.strip()
    return first if alone and first[-1] not in ".!?:;,。！？；，…" else ""
