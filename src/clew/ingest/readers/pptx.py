"""Reads PPTX: slides in their order, their titles as headings, tables, charts and notes."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from clew.errors import InputError
from clew.ingest.readers.archive import (
    Archive,
    get_attribute,
    links_of,
    open_archive,
    resolve_part,
)
from clew.ingest.readers.office_charts import read_charts
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, make_document
from clew.ingest.readers.table_text import write_table
from clew.text.places import PAGE_BREAK
from clew.types import Document

_PRESENTATION = "ppt/presentation.xml"
_TITLE_TYPES = frozenset({"title", "ctrTitle"})
_LEFT_OUT_TYPES = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})
_LIST_TYPES = frozenset({"body", "obj", "subTitle", ""})
_SLIDE = re.compile(r"ppt/slides/slide(\d+)\.xml")
_NOTES_MARK = "Speaker notes:"
_SEPARATOR = f"\n\n{PAGE_BREAK}"


def read_pptx(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a presentation; the document's pages are its slides."""
    with open_archive(source, budget, "presentation") as archive:
        slides = _list_slides(archive)
        if len(slides) > budget.pages:
            raise InputError(f"has {len(slides)} slides, over the limit of {budget.pages}")
        read = [_read_slide(archive, part) for part in slides]
    texts = [text for text, _ in read]
    if not any(texts):
        raise InputError("has no text")
    title = next((title for _, title in read if title), "")
    metadata = {"format": "pptx", "slides": len(slides)}
    document = make_document(_SEPARATOR.join(texts), title, source.name, metadata)
    starts, at = [], 0
    for text in document.text.split(_SEPARATOR):
        starts.append(at)
        at += len(text) + len(_SEPARATOR)
    yield replace(document, page_starts=tuple(starts))


def _list_slides(archive: Archive) -> list[str]:
    """Return the parts of the slides in the order of the presentation."""
    ids = _SlideIds()
    archive.parse(_PRESENTATION, ids)
    links = links_of(archive, _PRESENTATION)
    slides = [resolve_part(_PRESENTATION, links[key]) for key in ids.found if key in links]
    if slides:
        return [part for part in slides if part in archive.names]
    numbered = [(int(one[1]), part) for part in archive.names if (one := _SLIDE.fullmatch(part))]
    return [part for _, part in sorted(numbered)]


def _read_slide(archive: Archive, part: str) -> tuple[str, str]:
    """Return the text of a slide with its notes, and its title."""
    slide = SlideHandler(read_charts(archive, part))
    archive.parse(part, slide)
    blocks = [f"## {slide.title}"] if slide.title else []
    blocks += slide.blocks
    for target in links_of(archive, part).values():
        notes_part = resolve_part(part, target)
        if "notesSlide" in notes_part and notes_part in archive.names:
            notes = SlideHandler()
            archive.parse(notes_part, notes)
            said = "\n\n".join(block.removeprefix("- ") for block in notes.blocks)
            blocks += [f"{_NOTES_MARK} {said}"] if said else []
    return "\n\n".join(blocks), slide.title


class _SlideIds:
    """Finds the relationship ids of the slides: the second attribute named `id`."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Record a slide's id."""
        if tag == "sldId":
            self.found += [value for key, value in attributes.items() if key.endswith(" id")]

    def end(self, tag: str) -> None:
        """Do nothing: ids are attributes."""

    def characters(self, text: str) -> None:
        """Do nothing: ids have no text."""


@dataclass(slots=True)
class _Shape:
    type: str | None = None  # None: not a placeholder
    paragraphs: list[tuple[int, str]] = field(default_factory=list)


class SlideHandler:
    """Converts one slide to blocks of text, in the order of its shapes."""

    def __init__(self, charts: Mapping[str, str] = MappingProxyType({})) -> None:
        self.title = ""
        self.blocks: list[str] = []
        self._charts = charts
        self._shape = _Shape()
        self._level = 0
        self._pieces: list[str] = []
        self._in_text = False
        self._rows: list[list[str]] | None = None
        self._cell: list[str] | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Open a shape, a table, a paragraph or a run."""
        if tag == "sp":
            self._shape = _Shape()
        elif tag == "ph":
            self._shape.type = get_attribute(attributes, "type")
        elif tag == "p":
            self._pieces, self._level = [], 0
        elif tag == "pPr":
            level = get_attribute(attributes, "lvl")
            self._level = int(level) if level in set("012345678") else 0
        elif tag == "t":
            self._in_text = True
        elif tag == "br":
            self._pieces.append(" ")
        elif tag == "chart" and (chart := self._charts.get(get_attribute(attributes, "id"))):
            self.blocks.append(chart)
        else:
            self._open_table_part(tag)

    def _open_table_part(self, tag: str) -> None:
        if tag == "tbl":
            self._rows = []
        elif tag == "tr" and self._rows is not None:
            self._rows.append([])
        elif tag == "tc":
            self._cell = []

    def end(self, tag: str) -> None:
        """Close an element and keep its text."""
        if tag == "t":
            self._in_text = False
        elif tag == "p":
            self._close_paragraph()
        elif tag == "tc" and self._cell is not None:
            if self._rows:
                self._rows[-1].append(" ".join(self._cell))
            self._cell = None
        elif tag == "tbl" and self._rows is not None:
            self.blocks.append("\n".join(write_table(self._rows)))
            self._rows = None
        elif tag == "sp":
            self._close_shape()

    def characters(self, text: str) -> None:
        """Collect a run's text."""
        if self._in_text:
            self._pieces.append(text)

    def _close_paragraph(self) -> None:
        text = " ".join("".join(self._pieces).split())
        self._pieces = []
        if not text:
            return
        if self._cell is not None:
            self._cell.append(text)
        else:
            self._shape.paragraphs.append((self._level, text))

    def _close_shape(self) -> None:
        shape, self._shape = self._shape, _Shape()
        texts = [text for _, text in shape.paragraphs]
        if not texts or shape.type in _LEFT_OUT_TYPES:
            return
        if shape.type in _TITLE_TYPES and not self.title:
            self.title = " ".join(texts)
        elif shape.type in _LIST_TYPES and len(texts) > 1:
            self.blocks.append("\n".join(f"{'  ' * n}- {text}" for n, text in shape.paragraphs))
        else:
            self.blocks.append("\n".join(texts))
