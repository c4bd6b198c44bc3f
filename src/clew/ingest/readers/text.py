"""Reads plain text, Markdown and reStructuredText unchanged; finds their titles and sections."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath

from clew.ingest.readers.decode import decode
from clew.ingest.readers.html import tokenize_html
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, make_document, read_bytes
from clew.text.names import tokenize
from clew.text.unicode import clean
from clew.types import Document

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(\S.*))?")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_UNDERLINE_LEVELS = {"=": 1, "-": 2, "~": 3}
_LONGEST_HEADING_LINE = 200
_TITLE_SEARCH_CHARS = 20_000  # a title is looked for in this many first characters
_MAX_REMARK_CHARS = 400  # longest remark before the title
# Badges and other images, links and URLs: decoration, not content.
_LINK = re.compile(r"!?\[[^\[\]]*+\](?:\([^()]*+\)|\[[^\[\]]*+\])?+|\|[^|\n]*+\||https?://\S++")
_DIRECTIVE = re.compile(r"^\.\.(?:[ \t].*)?$(?:\n[ \t]+.*)*+", re.MULTILINE)
_WORD_CHAR = re.compile(r"\w")
_HEADING_TAGS = frozenset(f"h{level}" for level in range(1, 7))
# Files with these conventional names are about their folder.
_FOLDER_FILE_NAME = re.compile(r"readme(?:[._-]\w{2,5})?|index", re.IGNORECASE)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.{0,20000}?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
# Front matter without a fence (MultiMarkdown, mail): two fields or more, then a blank line.
_BARE_FRONT_MATTER = re.compile(
    r"\A(?:[A-Za-z][\w-]{0,40}+:(?:[ \t].*)?\n(?:[ \t]+.*\n)*+){2,}+(?:[ \t]*\n|\Z)"
)
_FRONT_MATTER_FIELD = re.compile(r"^([A-Za-z][\w-]{0,40}):[ \t]+(\S.*)$", re.MULTILINE)
_UNDERLINE = re.compile(r"^([=\-~^*+\"'`#])\1{2,}[ \t]*$")
_LONGEST_TITLE = 120


@dataclass(frozen=True, slots=True)
class Section:
    """A span that begins with its headings; `heading` is its heading path, `A > B`."""

    start: int
    end: int
    heading: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of one line (two if underlined) with its level from 1."""

    start: int
    end: int
    level: int
    title: str


def split_sections(text: str) -> list[Section]:
    """Split a text before each heading; a heading without a body joins the next section."""
    found: list[Section] = []
    path: list[tuple[int, str]] = []
    start = 0
    body = 0  # where the text after the last heading begins
    for heading in find_headings(text):
        if text[body : heading.start].strip():
            found.append(Section(start, heading.start, _join_path(path)))
            start = heading.start
        path = [(level, title) for level, title in path if level < heading.level]
        path.append((heading.level, heading.title))
        body = heading.end
    found.append(Section(start, len(text), _join_path(path)))
    return found


def _join_path(path: list[tuple[int, str]]) -> str:
    return " > ".join(title for _, title in path)


def find_headings(text: str) -> Iterator[Heading]:
    """Yield the headings outside of code blocks."""
    at = before_at = 0
    before = fence = ""
    for line in text.split("\n"):
        end = at + len(line) + 1
        opened = _FENCE.match(line)
        if opened and (not fence or fence == opened[1]):
            fence = "" if fence else opened[1]
        if fence or opened:
            before = ""
        elif (atx := _ATX.fullmatch(line)) and len(line) <= _LONGEST_HEADING_LINE:
            yield Heading(at, end, len(atx[1]), (atx[2] or "").rstrip("# \t"))
            before = ""
        elif level := _underline_level(before, line):
            yield Heading(before_at, end, level, before.strip())
            before = ""
        else:
            before, before_at = line, at
        at = end


def _underline_level(title: str, line: str) -> int:
    mark = line.strip()[:1]
    level = _UNDERLINE_LEVELS.get(mark, 0)
    if (
        not level
        or len(line) > _LONGEST_HEADING_LINE
        or line.strip().strip(mark)
        or len(line.strip()) < 3
    ):
        return 0
    title = title.strip()
    prose = title and title[0] not in "|>-*+=~" and len(title) <= _LONGEST_HEADING_LINE // 2
    return level if prose else 0


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
    for kind, value, _ in tokenize_html(text):
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
    text = "".join(value for kind, value, _ in tokenize_html(text) if kind == "text")
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
