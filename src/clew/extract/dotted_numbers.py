"""What numbers with stops are, told by the document: sections, versions, or plain numbers.

A number stands for a section where headings or the lines of a contents count so far: `3.7.4.1`
below `3.7.4`. A version has three parts (`3.2.0`), or is called one somewhere (`version 0.90`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from clew.text.code_names import ADDRESS, SECTION, VERSION, CodeName

_DOTTED = re.compile(r"(?<![\w.,:/@-])\d{1,4}(?:\.\d{1,3}){1,4}(?![\w@]|[.,:/-]\d|%)")
_COUNTED = re.compile(
    r"^[ \t\f]*(?:#{1,6}[ \t]+)?(\d{1,3}(?:\.\d{1,3})+)\.?[ \t]+(?=[^\s\d.])", re.MULTILINE
)
_CALLED = re.compile(
    r"(?:\b(?:versions?|versione?n?|versión|versões|versão|release|verze|верси\w)|版本|バージョン)"
    r"[ \t\n]{0,2}(\d{1,4}(?:\.\d{1,3}){1,3})(?![\w.]\d)",
    re.IGNORECASE,
)
_LEAST_COUNTED = 3  # numbers of sections that follow one another
_LEAST_VERSION, _SECTION_PARTS = 3, 3  # parts of a version, and of a number that is no decimal


@dataclass(frozen=True, slots=True)
class DottedNumbers:
    """The sections that a document counts, and what it calls versions."""

    sections: frozenset[str] = frozenset()
    versions: frozenset[str] = frozenset()

    def find(self, text: str) -> Iterator[CodeName]:
        """Yield the sections and versions of a text."""
        for found in _DOTTED.finditer(text):
            kind = self._tell(found[0])
            if kind:
                yield CodeName(found.start(), found.end(), found[0], kind)

    def is_section(self, one: CodeName) -> bool:
        """Whether what looks like an address of four numbers counts a section."""
        return one.type == ADDRESS and one.name in self.sections

    def _tell(self, number: str) -> str:
        parts = number.split(".")
        if number in self.sections:
            return SECTION if len(parts) >= _SECTION_PARTS else ""
        if number in self.versions or (len(parts) == _LEAST_VERSION and not _is_grouped(parts)):
            return VERSION
        return ""


def learn_numbers(text: str) -> DottedNumbers:
    """Learn from a document which numbers count its sections, and which are versions."""
    listed = set(_COUNTED.findall(text)) if "." in text else set()
    sections = frozenset(one for one in listed if _has_neighbour(one, listed))
    sections = sections if len(sections) >= _LEAST_COUNTED else frozenset()
    called = set(_CALLED.findall(text)) - sections
    return DottedNumbers(sections, frozenset(called))


def _has_neighbour(number: str, listed: set[str]) -> bool:
    """Whether the section before it, the one above it or its first part is counted, too."""
    above, _, last = number.rpartition(".")
    return not {above, f"{above}.{int(last) - 1}", f"{number}.1"}.isdisjoint(listed)


def _is_grouped(parts: list[str]) -> bool:
    """Whether stops only part the digits of a number: 1.250.000."""
    return all(len(part) == 3 for part in parts[1:])
