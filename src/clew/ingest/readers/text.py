"""Reads Markdown, with labelled rows, source code and other text unchanged; finds their titles."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import PurePosixPath

from clew.errors import InputError
from clew.ingest.readers.decode import decode
from clew.ingest.readers.html import tokenize_html
from clew.ingest.readers.links import leave_out_contents, leave_out_link_targets
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, make_document, read_bytes
from clew.ingest.readers.table_text import label_rows
from clew.text.code_outline import CODE_FORMAT
from clew.text.names import tokenize
from clew.text.structure import find_headings
from clew.text.unicode import clean
from clew.types import Document

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
_FRONT_MATTER_LIST = re.compile(
    r"^([A-Za-z][\w-]{0,40}):[ \t]*\n((?:[ \t]*-[ \t]+\S.*(?:\n|\Z))+)", re.MULTILINE
)
# What a reader may ask about a work itself; other fields are metadata.
_WORK_FIELDS = ("subtitle", "author", "authors", "creator", "date", "description", "summary")
_FENCE = re.compile(r"[ \t]{0,3}(```|~~~)")
_COMMENT_END = "-->"
# Code in a line stays as it is; comments and tags that only arrange or fold a text are no text.
_UNSEEN = re.compile(
    r"(?P<code>`[^`\n]+`)|<!--.*?-->|^[ \t]*\[(?:TOC|\[_TOC_\])\][ \t]*$|^\[//\]:[ \t]*#.*$"
    r"|</?(?:details|summary|div|center|span|font|p)(?:[ \t][^<>\n]{0,400})?>",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_UNDERLINE = re.compile(r"^([=\-~^*+\"'`#])\1{2,}[ \t]*$")
_LONGEST_TITLE = 120


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


def read_unknown(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read any other text without a title: code, settings, logs."""
    text, encoding = decode(read_bytes(source, budget))
    yield make_document(text, "", source.name, text_metadata("text", encoding))


def read_code(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read source code or settings; its classes and functions are its sections."""
    text, encoding = decode(read_bytes(source, budget))
    yield make_document(text, "", source.name, text_metadata(CODE_FORMAT, encoding))


def read_markdown(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read Markdown; the title is the front matter's, a heading, or the file's name."""
    text, encoding = decode(read_bytes(source, budget))
    text = leave_out_unseen(clean(text))
    if not text.strip():
        raise InputError("has no text besides comments and tags")
    fields = dict[str, str]()
    if (fenced := _FRONT_MATTER.match(text)) and text[fenced.end() :].strip():
        fields = _parse_front_matter(fenced[1])
        text = text[fenced.end() :].lstrip("\n")
    linked = leave_out_contents(text)
    text = leave_out_link_targets(linked)
    bare = None if fenced else _BARE_FRONT_MATTER.match(text)
    body = text[bare.end() if bare else 0 :]
    title = fields.pop("title", "") or heading_title(body)
    if title is None:  # links before a heading say nothing, their labels alone might
        title = heading_title(linked)
        title = title and leave_out_link_targets(title)
    if title is None:
        title = file_title(source.name, body)
    metadata = fields | text_metadata("markdown", encoding)
    text = describe_work(fields) + label_rows(text)
    yield make_document(text, title, source.name, metadata)


def leave_out_unseen(text: str) -> str:
    """Leave out of Markdown what a page does not show: comments, marks of contents, folding tags.

    Code stays as it is.
    """
    if "<" not in text and "[" not in text:
        return text
    pieces: list[list[str]] = [[]]
    fence, in_comment = "", False
    for line in text.split("\n"):
        opened = None if in_comment else _FENCE.match(line)
        if opened and not fence:
            pieces.append([])
        pieces[-1].append(line)
        if opened and (not fence or fence == opened[1]):
            fence = "" if fence else opened[1]
            pieces += [] if fence else [[]]
        begin, end = line.rfind("<!--"), line.rfind(_COMMENT_END)
        if not fence and begin != end:
            in_comment = begin > end
    return "\n".join(_show("\n".join(piece)) for piece in pieces if piece)


def _show(piece: str) -> str:
    if _FENCE.match(piece):
        return piece
    # A comment that is not closed is text, and its end is not looked for again and again.
    end = piece.find("<!--", piece.rfind(_COMMENT_END) + 1)
    end = end if end >= 0 else len(piece)
    return _UNSEEN.sub(lambda found: found["code"] or "", piece[:end]) + piece[end:]


def describe_work(fields: Mapping[str, str]) -> str:
    """Return lines with the author, the date and the like of a work, for its beginning."""
    lines = [f"{name.capitalize()}: {fields[name]}" for name in _WORK_FIELDS if fields.get(name)]
    return "\n".join(lines) + "\n\n" if lines else ""


def text_metadata(kind: str, encoding: str) -> dict[str, str]:
    """Return the metadata of a text file."""
    return {"format": kind, "encoding": encoding}


def _parse_front_matter(front_matter: str) -> dict[str, str]:
    """Parse the plain `key: value` lines and lists, without a YAML parser."""
    fields = {
        key.lower(): _join_list(value) for key, value in _FRONT_MATTER_FIELD.findall(front_matter)
    }
    for key, items in _FRONT_MATTER_LIST.findall(front_matter):
        values = (item.strip().removeprefix("-").strip(" \t\"'") for item in items.split("\n"))
        fields[key.lower()] = ", ".join(filter(None, values))
    return fields


def _join_list(value: str) -> str:
    value = value.strip()
    if value.startswith("[") and value.endswith("]"):
        value = ", ".join(part.strip(" \t\"'") for part in value[1:-1].split(","))
    return value.strip(" \t\"'")


def first_line_title(text: str) -> str:
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
