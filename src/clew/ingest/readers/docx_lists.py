"""Numbers the paragraphs of a Word document: its lists and, where they are numbered, its headings.

Word stores no number: a paragraph or its style names a list and a level, and a part of its own says
how the levels of the list are written, and where they begin.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from clew.ingest.readers.archive import get_attribute
from clew.ingest.readers.list_numbers import NumberStyle, format_number

BULLET = "-"
_STYLES: dict[str, NumberStyle] = {
    "lowerLetter": "lower letter",
    "upperLetter": "upper letter",
    "lowerRoman": "lower roman",
    "upperRoman": "upper roman",
}
_PLACE = re.compile(r"%([1-9])")
_NO_LIST = "0"
_MAX_LEVEL = 8


class ListPlace(NamedTuple):
    """The list that a paragraph belongs to, and its level from 0."""

    number: str
    level: int = 0


@dataclass(slots=True)
class _Level:
    start: int = 1
    style: str = "decimal"
    text: str = ""


@dataclass(slots=True)
class _List:
    levels: dict[int, _Level] = field(default_factory=lambda: defaultdict(_Level))
    counts: dict[int, int] = field(default_factory=dict)


class NumberingHandler:
    """Reads how lists are numbered, and numbers paragraphs in the order of the document."""

    def __init__(self) -> None:
        self.style_levels: dict[str, int] = {}
        """The levels that lists give to the paragraphs of a style."""
        self._lists: dict[str, _List] = defaultdict(_List)  # by the id of their definition
        self._definitions: dict[str, str] = {}
        self._restarts: dict[str, dict[int, int]] = defaultdict(dict)
        self._definition = self._number = ""
        self._level = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Read a definition, one of its levels, or a list that uses it."""
        value = get_attribute(attributes)
        if tag == "abstractNum":
            self._definition, self._number = get_attribute(attributes, "abstractNumId"), ""
        elif tag == "num":
            self._number = get_attribute(attributes, "numId")
        elif tag == "abstractNumId":
            self._definitions[self._number] = value
        elif tag in ("lvl", "lvlOverride"):
            self._level = read_level(get_attribute(attributes, "ilvl"))
        elif tag == "startOverride" and value.isdigit():
            self._restarts[self._number][self._level] = int(value)
        elif not self._number:
            self._describe_level(tag, value)

    def _describe_level(self, tag: str, value: str) -> None:
        level = self._lists[self._definition].levels[self._level]
        if tag == "start" and value.isdigit():
            level.start = int(value)
        elif tag == "numFmt":
            level.style = value
        elif tag == "lvlText":
            level.text = value
        elif tag == "pStyle":
            self.style_levels[value] = self._level

    def end(self, tag: str) -> None:
        """Do nothing: lists are described by attributes."""

    def characters(self, text: str) -> None:
        """Do nothing: lists have no text."""

    def count(self, place: ListPlace) -> str | None:
        """Return what stands before the next paragraph of a list; None if it is in none."""
        if place.number == _NO_LIST or place.number not in self._definitions:
            return None
        held = self._lists[self._definitions[place.number]]
        for at, start in self._restarts.pop(place.number, {}).items():
            held.counts[at] = start - 1
        level = held.levels[place.level]
        held.counts = {one: count for one, count in held.counts.items() if one <= place.level}
        held.counts[place.level] = held.counts.get(place.level, level.start - 1) + 1
        if level.style in ("bullet", "none"):
            return BULLET if level.style == "bullet" else ""

        def write(found: re.Match[str]) -> str:
            at = int(found[1]) - 1
            number = held.counts.get(at, held.levels[at].start)
            return format_number(number, _STYLES.get(held.levels[at].style, "decimal"))

        return _PLACE.sub(write, level.text).strip() or write_item(held.counts[place.level])


def read_level(value: str) -> int:
    """Return the level that an attribute says, within what Word knows."""
    return min(int(value), _MAX_LEVEL) if value.isdigit() else 0


def write_item(number: int) -> str:
    """Return the mark of an item whose list says nothing about it."""
    return f"{number}."
