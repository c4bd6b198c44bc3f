"""Reads DOCX: paragraphs, headings and tables in document order, streamed from the zip's XML.

Tables are written row by row with the labels of their columns.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from clew.errors import InputError
from clew.ingest.readers.archive import Archive, get_attribute, open_archive
from clew.ingest.readers.docx_lists import (
    BULLET,
    ListPlace,
    NumberingHandler,
    read_level,
    write_item,
)
from clew.ingest.readers.markup import describe_image
from clew.ingest.readers.office_charts import read_charts
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, make_document
from clew.ingest.readers.table_text import write_table
from clew.types import Document

_BODY = "word/document.xml"
_STYLES = "word/styles.xml"
_NUMBERING = "word/numbering.xml"
_NOTES = ("word/footnotes.xml", "word/endnotes.xml")
_NOTE_REFERENCES = {"footnoteReference": "footnote", "endnoteReference": "endnote"}
_PROPERTIES = "docProps/core.xml"
_HEADING_NAME = re.compile(r"heading ([1-9])", re.IGNORECASE)
_LIST_NAME = re.compile(r"list (?P<kind>bullet|number)(?: (?P<level>[1-9]))?", re.IGNORECASE)
_LIST_INDENT = "    "
_MARK = re.compile(r"-|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{2,5})[.)]")  # of an item
_TITLE_LEVEL = 0
# Compatibility copies of adjacent content, and text and formats replaced by tracked changes.
_DROPPED_TAGS = frozenset({"Fallback", "del", "moveFrom", "pPrChange", "rPrChange"})
_TABLE_TAGS = frozenset({"tbl", "tr", "tc"})
_MAX_DEPTH = 12  # of tables in tables: deeper ones are read as text of the cell they are in
_OFF = frozenset({"0", "false", "off"})
_RUN_CHARACTERS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011"}


def read_docx(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a Word document; its title is the first title or heading, else the title property."""
    with open_archive(source, budget, "Word document") as archive:
        styles, properties = StyleHandler(), PropertiesHandler()
        for part, handler in ((_STYLES, styles), (_NUMBERING, styles.numbering)):
            if part in archive.names:
                archive.parse(part, handler)
        notes = _parse_notes(archive, styles)
        body = BodyHandler(styles, notes, read_charts(archive, _BODY))
        archive.parse(_BODY, body)
        body.write_notes()
        if not body.title and _PROPERTIES in archive.names:
            archive.parse(_PROPERTIES, properties)
    text = "\n\n".join([*body.blocks, *body.notes.values()])
    if not text.strip():
        raise InputError("has no text")
    title = body.title or properties.title.strip()
    yield make_document(text, title, source.name, {"format": "docx"})


def _parse_notes(archive: Archive, styles: "StyleHandler") -> dict[tuple[str, str], str]:
    """Return the text of each note, by its kind and number."""
    notes = NotesHandler(styles)
    for part in _NOTES:
        if part in archive.names:
            archive.parse(part, notes)
    return notes.found


_NO_PLACE = ListPlace("")


class StyleHandler:
    """Finds which style ids are headings and lists: ids are localised, style names are not."""

    def __init__(self) -> None:
        self.levels: dict[str, int] = {}
        self.lists: dict[str, tuple[str, int]] = {}
        """Of the styles that are called lists, `bullet` or `number` and the level from 0."""
        self.places: dict[str, ListPlace] = {}
        """The lists that styles belong to."""
        self.numbering = NumberingHandler()
        self._style = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Record a style's id, its name, and the style it is based on."""
        if tag == "style":
            self._style = get_attribute(attributes, "styleId")
        elif tag == "name":
            name = get_attribute(attributes)
            found = _HEADING_NAME.fullmatch(name)
            if found or name.casefold() == "title":
                self.levels[self._style] = int(found[1]) if found else _TITLE_LEVEL
            if listed := _LIST_NAME.fullmatch(name):
                level = int(listed["level"] or 1) - 1
                self.lists[self._style] = (listed["kind"].casefold(), level)
        elif tag == "basedOn":
            self._inherit(get_attribute(attributes))
        elif tag == "ilvl":
            number = self.places.get(self._style, _NO_PLACE).number
            self.places[self._style] = ListPlace(number, read_level(get_attribute(attributes)))
        elif tag == "numId":
            level = self.places.get(self._style, _NO_PLACE).level
            self.places[self._style] = ListPlace(get_attribute(attributes), level)

    def _inherit(self, base: str) -> None:
        if base in self.levels:
            self.levels.setdefault(self._style, self.levels[base])
        if base in self.lists:
            self.lists.setdefault(self._style, self.lists[base])
        if base in self.places:
            self.places.setdefault(self._style, self.places[base])

    def place_of(self, style: str) -> ListPlace | None:
        """Return the list that paragraphs of a style belong to."""
        place = self.places.get(style)
        level = self.numbering.style_levels.get(style)
        return place if place is None or level is None else ListPlace(place.number, level)

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
    list_kind: str = ""
    list_level: int = 0
    place: ListPlace | None = None

    def text(self) -> str:
        return "".join(self.pieces).strip()


class BodyHandler:
    """Converts the body to blocks of text, in document order."""

    def __init__(
        self,
        styles: StyleHandler,
        notes: dict[tuple[str, str], str],
        charts: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.blocks: list[str] = []
        self.notes = dict(notes)
        """Notes that nothing has referred to yet."""
        self._noted = 0  # notes that were referred to
        self._section_notes: list[str] = []  # they are written where their section ends
        self.title = ""
        self._title_level: int | None = None
        self._styles = styles
        self._charts = charts
        self._steps: dict[int, int] = {}  # numbered paragraphs in a row, by level
        self._dropped = 0
        self._runs: list[bool] = []  # those that are open, and whether they are hidden
        self._in_text = False
        # Stacks, because cells hold tables and paragraphs hold text boxes.
        self._paragraphs: list[_Paragraph] = []
        self._tables: list[list[list[str]]] = []
        self._rows: list[list[str]] = []
        self._cells: list[list[str]] = []
        self._depth = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Open a paragraph, a table, or an element inside them."""
        if tag in _DROPPED_TAGS:
            self._dropped += 1
        if self._dropped:
            return
        if tag == "p":
            self._paragraphs.append(_Paragraph())
        elif tag == "r":
            self._runs.append(False)
        elif tag == "t":
            self._in_text = True
        elif tag in _TABLE_TAGS:
            self._open_table_part(tag)
        elif self._paragraphs:
            self._apply_property(self._paragraphs[-1], tag, attributes)

    def end(self, tag: str) -> None:
        """Close an element and pass its text to the enclosing one."""
        if self._dropped:
            self._dropped -= tag in _DROPPED_TAGS
        elif tag == "t":
            self._in_text = False
        elif tag == "r":
            self._runs.pop()
        elif tag == "p":
            self._close_paragraph(self._paragraphs.pop())
        elif tag in _TABLE_TAGS:
            self._close_table_part(tag)

    def _open_table_part(self, tag: str) -> None:
        self._depth += tag == "tbl"
        if self._depth > _MAX_DEPTH:
            return
        if tag == "tbl":
            self._tables.append([])
        else:
            {"tr": self._rows, "tc": self._cells}[tag].append([])

    def _close_table_part(self, tag: str) -> None:
        if self._depth > _MAX_DEPTH:
            self._depth -= tag == "tbl"
        elif tag == "tc":
            self._rows[-1].append(" ".join(self._cells.pop()))
        elif tag == "tr":
            self._tables[-1].append(self._rows.pop())
        else:
            self._depth -= 1
            rows = self._tables.pop()
            inner = [", ".join(row) for row in rows] if self._cells else write_table(rows)
            self._append_block("\n".join(inner))

    def characters(self, text: str) -> None:
        """Collect a run's text."""
        hidden = self._runs and self._runs[-1]
        if self._in_text and not self._dropped and self._paragraphs and not hidden:
            self._paragraphs[-1].pieces.append(text)

    def _apply_property(self, paragraph: _Paragraph, tag: str, attributes: dict[str, str]) -> None:
        if tag == "pStyle":
            style = get_attribute(attributes)
            paragraph.level = self._styles.levels.get(style)
            paragraph.list_kind, paragraph.list_level = self._styles.lists.get(style, ("", 0))
            paragraph.place = self._styles.place_of(style)
        elif tag == "outlineLvl" and paragraph.level is None:
            level = get_attribute(attributes)
            paragraph.level = int(level) + 1 if level in set("012345678") else None
        elif tag == "numPr":
            paragraph.list_kind = paragraph.list_kind or "bullet"
        elif tag == "ilvl":
            number = paragraph.place.number if paragraph.place else ""
            paragraph.place = ListPlace(number, read_level(get_attribute(attributes)))
        elif tag == "numId":
            at = paragraph.place.level if paragraph.place else 0
            paragraph.place = ListPlace(get_attribute(attributes), at)
        else:
            self._add_from_run(paragraph, tag, attributes)

    def _add_from_run(self, paragraph: _Paragraph, tag: str, attributes: dict[str, str]) -> None:
        """Add what a run holds beside its text: a note, a chart, an image, a tab."""
        if tag in _NOTE_REFERENCES:
            self._refer_to_note(paragraph, tag, get_attribute(attributes, "id"))
        elif tag == "vanish" and self._runs:  # outside a run it hides the mark of the paragraph
            self._runs[-1] = get_attribute(attributes) not in _OFF
        elif tag == "chart" and (chart := self._charts.get(get_attribute(attributes, "id"))):
            self._append_block(chart)
        elif tag == "docPr":
            paragraph.pieces.append(describe_image(get_attribute(attributes, "descr")))
        elif self._runs and tag in _RUN_CHARACTERS:  # outside a run, `tab` is a tab stop
            paragraph.pieces.append(_RUN_CHARACTERS[tag])

    def _refer_to_note(self, paragraph: _Paragraph, tag: str, number: str) -> None:
        """Mark where a note is referred to; the same mark stands before its text."""
        if note := self.notes.pop((_NOTE_REFERENCES[tag], number), ""):
            self._noted += 1
            self._section_notes.append(f"[^{self._noted}]: {note}")
            paragraph.pieces.append(f"[^{self._noted}]")

    def _close_paragraph(self, paragraph: _Paragraph) -> None:
        text = paragraph.text()
        if not text:
            return
        level = paragraph.level
        mark = self._mark(paragraph)
        if level is None:
            depth = max(paragraph.place.level if paragraph.place else 0, paragraph.list_level)
            indent = _LIST_INDENT * depth if _MARK.fullmatch(mark) else ""
            self._append_block(f"{indent}{mark} {text}" if mark else text)
            return
        text = f"{mark} {text}" if mark not in ("", BULLET) else text
        self.write_notes()
        if not self.title or (level == _TITLE_LEVEL and self._title_level != _TITLE_LEVEL):
            self.title, self._title_level = text, level
        self._append_block(f"{'#' * min(max(level, 1), 6)} {' '.join(text.split())}")

    def _mark(self, paragraph: _Paragraph) -> str:
        """Return what Word shows before a paragraph: the number or the bullet of its list."""
        if paragraph.place:
            counted = self._styles.numbering.count(paragraph.place)
            if counted is not None or paragraph.place.number == "0":
                return counted or ""
        if not paragraph.list_kind:
            self._steps.clear()
        if paragraph.list_kind != "number":
            return BULLET if paragraph.list_kind and paragraph.level is None else ""
        at = paragraph.list_level
        self._steps = {level: count for level, count in self._steps.items() if level <= at}
        self._steps[at] = self._steps.get(at, 0) + 1
        return write_item(self._steps[at])

    def _append_block(self, text: str) -> None:
        if self._cells:
            self._cells[-1].append(" ".join(text.split()))
        else:
            self.blocks.append(text)

    def write_notes(self) -> None:
        """Write the notes of the section that ends here."""
        if not self._cells:
            self.blocks += self._section_notes
            self._section_notes = []


class NotesHandler(BodyHandler):
    """Collects the text of footnotes and endnotes."""

    def __init__(self, styles: StyleHandler) -> None:
        super().__init__(styles, {})
        self.found: dict[tuple[str, str], str] = {}
        self._number = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Begin a note, or an element in it."""
        if tag in _NOTE_REFERENCES.values():
            self._number = get_attribute(attributes, "id")
        super().start(tag, attributes)

    def end(self, tag: str) -> None:
        """End a note, or an element in it."""
        super().end(tag)
        if tag in _NOTE_REFERENCES.values() and self.blocks:
            key = (tag, self._number or f"unnumbered {len(self.found)}")
            self.found[key] = "\n\n".join(self.blocks)
            self.blocks = []
