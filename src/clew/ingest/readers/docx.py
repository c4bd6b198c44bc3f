"""Reads DOCX: paragraphs, headings and tables in document order, streamed from the zip's XML.

No tree is built and nothing is unpacked beyond its budget, so that a zip bomb costs no more than
any other file.
"""

import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Protocol
from xml.parsers import expat

from clew.errors import InputError
from clew.ingest.readers.source import (
    ReadBudget,
    Skipped,
    SourceFile,
    format_megabytes,
    make_document,
)
from clew.types import Document

try:
    from lzma import LZMAError
except ImportError:  # a Python built without it cannot unpack such parts either
    LZMAError = zipfile.BadZipFile  # type: ignore[misc,assignment]

_BODY = "word/document.xml"
_STYLES = "word/styles.xml"
_NOTES = ("word/footnotes.xml", "word/endnotes.xml")
_PROPERTIES = "docProps/core.xml"
_PIECE = 65_536
_MAX_COMPRESSION_RATIO = 200  # of prose it is 3 to 10, of the emptiest XML about 100
_ALWAYS_ALLOWED_BYTES = 20_000_000  # unpacked size at which the ratio is not checked
_READ_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, LZMAError, EOFError),
    *(NotImplementedError, RuntimeError),
    UnicodeDecodeError,  # names within the archive
)
_HEADING_NAME = re.compile(r"heading ([1-9])", re.IGNORECASE)
_TITLE_LEVEL = 0
# Compatibility copies of adjacent content, and text deleted by tracked changes.
_DROPPED_TAGS = frozenset({"Fallback", "del", "moveFrom"})
_RUN_CHARACTERS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011"}


def read_docx(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a Word document; its title is the first title or heading, else the title property."""
    size = source.path.stat().st_size
    if size > budget.file_bytes:
        raise InputError(
            f"is larger than the limit of {format_megabytes(budget.file_bytes)}; split it"
        )
    if not size:
        raise InputError("is empty")
    if not zipfile.is_zipfile(source.path):
        raise InputError("is not a DOCX, or is encrypted; save it as an unprotected DOCX")
    limit = min(budget.file_bytes, max(_ALWAYS_ALLOWED_BYTES, size * _MAX_COMPRESSION_RATIO))
    try:
        with zipfile.ZipFile(source.path) as archive:
            body = BodyHandler(_heading_levels(archive, limit))
            for part in (_BODY, *_NOTES):
                _parse_part(archive, part, limit, body)
            title = body.title or _property_title(archive, limit)
    except KeyError as error:
        raise InputError("is a zip archive but not a Word document") from error
    except _READ_ERRORS as error:
        raise InputError(f"is not a Word document that can be read ({error})") from error
    except (expat.ExpatError, IndexError) as error:
        raise InputError(f"is a broken Word document ({error})") from error
    text = "\n\n".join(body.blocks)
    if not text.strip():
        raise InputError("has no text")
    yield make_document(text, title, source.name, {"format": "docx"})


def _parse_part(archive: zipfile.ZipFile, part: str, limit: int, handler: "XmlHandler") -> None:
    if part != _BODY and part not in archive.namelist():
        return
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = lambda tag, attributes: handler.start(
        strip_namespace(tag), attributes
    )
    parser.EndElementHandler = lambda tag: handler.end(strip_namespace(tag))
    parser.CharacterDataHandler = handler.characters
    parser.StartDoctypeDeclHandler = _refuse_doctype
    with archive.open(part) as stream:
        for piece in _read_bounded(stream, limit):
            parser.Parse(piece)
        parser.Parse(b"", True)


def _read_bounded(stream: IO[bytes], limit: int) -> Iterator[bytes]:
    """Unpack block by block; the sizes the archive declares are not trusted."""
    unpacked = 0
    while piece := stream.read(_PIECE):
        unpacked += len(piece)
        if unpacked > limit:
            raise InputError(
                f"unpacks to more than {format_megabytes(limit)}: it may be a zip bomb"
            )
        yield piece


def _refuse_doctype(*_: object) -> None:
    raise InputError("declares XML entities, which no Word document does")


def _heading_levels(archive: zipfile.ZipFile, limit: int) -> dict[str, int]:
    styles = StyleHandler()
    _parse_part(archive, _STYLES, limit, styles)
    return styles.levels


def _property_title(archive: zipfile.ZipFile, limit: int) -> str:
    properties = PropertiesHandler()
    _parse_part(archive, _PROPERTIES, limit, properties)
    return properties.title.strip()


class XmlHandler(Protocol):
    """Receives a stream of elements and text; tags come without their namespace."""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""

    def end(self, tag: str) -> None:
        """Handle the end of an element."""

    def characters(self, text: str) -> None:
        """Handle text between elements."""


def strip_namespace(tag: str) -> str:
    """Remove the namespace from a tag."""
    return tag.rpartition(" ")[2]


def _attribute(attributes: dict[str, str], name: str = "val") -> str:
    return next((value for key, value in attributes.items() if strip_namespace(key) == name), "")


class StyleHandler:
    """Finds the heading level of each style id: ids are localised, style names are not."""

    def __init__(self) -> None:
        self.levels: dict[str, int] = {}
        self._style = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Record a style's id, its name, and the style it is based on."""
        if tag == "style":
            self._style = _attribute(attributes, "styleId")
        elif tag == "name":
            name = _attribute(attributes)
            found = _HEADING_NAME.fullmatch(name)
            if found or name.casefold() == "title":
                self.levels[self._style] = int(found[1]) if found else _TITLE_LEVEL
        elif tag == "basedOn" and _attribute(attributes) in self.levels:
            self.levels.setdefault(self._style, self.levels[_attribute(attributes)])

    def end(self, tag: str) -> None:
        """Do nothing: styles are described by attributes."""

    def characters(self, text: str) -> None:
        """Do nothing: styles have no text."""


class PropertiesHandler:
    """Finds the title in the document's properties."""

    def __init__(self) -> None:
        self.title = ""
        self._inside = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Enter the title element."""
        self._inside = tag == "title"

    def end(self, tag: str) -> None:
        """Leave the title element."""
        self._inside = False

    def characters(self, text: str) -> None:
        """Collect the title."""
        if self._inside:
            self.title += text


@dataclass(slots=True)
class _Paragraph:
    pieces: list[str] = field(default_factory=list)
    level: int | None = None
    is_list_item: bool = False

    def text(self) -> str:
        return "".join(self.pieces).strip()


class BodyHandler:
    """Converts the body to blocks of text, in document order."""

    def __init__(self, levels: dict[str, int]) -> None:
        self.blocks: list[str] = []
        self.title = ""
        self._title_level: int | None = None
        self._levels = levels
        self._dropped = 0
        self._runs = 0
        self._in_text = False
        # Stacks, because cells hold tables and paragraphs hold text boxes.
        self._paragraphs: list[_Paragraph] = []
        self._tables: list[list[str]] = []
        self._rows: list[list[str]] = []
        self._cells: list[list[str]] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Open a paragraph, a table, or an element inside them."""
        if tag in _DROPPED_TAGS:
            self._dropped += 1
        if self._dropped:
            return
        if tag == "p":
            self._paragraphs.append(_Paragraph())
        elif tag == "r":
            self._runs += 1
        elif tag == "t":
            self._in_text = True
        elif tag in {"tbl", "tr", "tc"}:
            {"tbl": self._tables, "tr": self._rows, "tc": self._cells}[tag].append([])
        elif self._paragraphs:
            self._apply_property(self._paragraphs[-1], tag, attributes)

    def end(self, tag: str) -> None:
        """Close an element and pass its text to the enclosing one."""
        if self._dropped:
            self._dropped -= tag in _DROPPED_TAGS
        elif tag == "t":
            self._in_text = False
        elif tag == "r":
            self._runs -= 1
        elif tag == "p":
            self._close_paragraph(self._paragraphs.pop())
        elif tag == "tc":
            self._rows[-1].append(" ".join(self._cells.pop()))
        elif tag == "tr":
            self._tables[-1].append(" | ".join(self._rows.pop()))
        elif tag == "tbl":
            self._append_block("\n".join(self._tables.pop()))

    def characters(self, text: str) -> None:
        """Collect a run's text."""
        if self._in_text and not self._dropped and self._paragraphs:
            self._paragraphs[-1].pieces.append(text)

    def _apply_property(self, paragraph: _Paragraph, tag: str, attributes: dict[str, str]) -> None:
        if tag == "pStyle":
            paragraph.level = self._levels.get(_attribute(attributes))
        elif tag == "outlineLvl" and paragraph.level is None:
            level = _attribute(attributes)
            paragraph.level = int(level) + 1 if level in set("012345678") else None
        elif tag == "numPr":
            paragraph.is_list_item = True
        elif self._runs and tag in _RUN_CHARACTERS:  # outside a run, `tab` is a tab stop
            paragraph.pieces.append(_RUN_CHARACTERS[tag])

    def _close_paragraph(self, paragraph: _Paragraph) -> None:
        text = paragraph.text()
        if not text:
            return
        level = paragraph.level
        if level is None:
            self._append_block(f"- {text}" if paragraph.is_list_item else text)
            return
        if not self.title or (level == _TITLE_LEVEL and self._title_level != _TITLE_LEVEL):
            self.title, self._title_level = text, level
        self._append_block(f"{'#' * min(max(level, 1), 6)} {' '.join(text.split())}")

    def _append_block(self, text: str) -> None:
        if self._cells:
            self._cells[-1].append(" ".join(text.split()))
        else:
            self.blocks.append(text)
