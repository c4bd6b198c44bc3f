"""Reads EPUB: the chapters of a book in reading order, as HTML pages of one document."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from clew.errors import InputError
from clew.ingest.readers.archive import Archive, get_attribute, open_archive, resolve_part
from clew.ingest.readers.decode import decode
from clew.ingest.readers.html import read_page
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, make_document
from clew.ingest.readers.text import describe_work
from clew.types import Document

_CONTAINER = "META-INF/container.xml"
_PAGE_TYPES = frozenset({"application/xhtml+xml", "text/html"})
_MAX_TERMS = 400


def read_epub(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a book; its title and author are those of its package."""
    with open_archive(source, budget, "book (EPUB)") as archive:
        container = _Container()
        archive.parse(_CONTAINER, container)
        package = _Package()
        archive.parse(container.package, package)
        texts: list[str] = []
        terms: Counter[str] = Counter()
        for part in package.chapters(container.package):
            if part in archive.names and (page := _read_chapter(archive, part)):
                texts.append(page[0])
                terms.update(page[1])
    if not texts:
        raise InputError("has no text, or is protected")
    metadata: dict[str, Any] = {"format": "epub"}
    if authors := [" ".join(one.split()) for one in package.authors if one.strip()]:
        metadata["author"] = ", ".join(authors)
    if terms:
        metadata["terms"] = dict(terms.most_common(_MAX_TERMS))
    text = describe_work(metadata) + "\n\n".join(texts)
    yield make_document(text, package.title, source.name, metadata)


def _read_chapter(archive: Archive, part: str) -> tuple[str, dict[str, int]] | None:
    page, _ = decode(archive.read(part) or b" ", "utf-8")
    found = read_page(page, is_book=True)
    return (found.text(), found.terms) if found and not found.is_only_index() else None


class _Container:
    """Finds the part that describes the package."""

    def __init__(self) -> None:
        self.package = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Record the first package."""
        if tag == "rootfile" and not self.package:
            self.package = get_attribute(attributes, "full-path")

    def end(self, tag: str) -> None:
        """Do nothing: the package is an attribute."""

    def characters(self, text: str) -> None:
        """Do nothing: the package is an attribute."""


class _Package:
    """Collects the parts of a book, the order in which they are read, and its title."""

    def __init__(self) -> None:
        self.title = ""
        self.authors: list[str] = []
        self._parts: dict[str, str] = {}
        self._spine: list[str] = []
        self._left_out: set[str] = set()
        self._inside = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Record a part, a place in the order, or enter the title."""
        self._inside = tag
        if tag == "item" and get_attribute(attributes, "media-type") in _PAGE_TYPES:
            key = get_attribute(attributes, "id")
            self._parts[key] = get_attribute(attributes, "href")
            if "nav" in get_attribute(attributes, "properties").split():
                self._left_out.add(key)
        elif tag == "creator":
            self.authors.append("")
        elif tag == "itemref":
            self._spine.append(get_attribute(attributes, "idref"))

    def end(self, tag: str) -> None:
        """Leave the title."""
        self._inside = ""

    def characters(self, text: str) -> None:
        """Collect the title and the author."""
        if self._inside == "title":
            self.title += text
        elif self._inside == "creator":
            self.authors[-1] += text

    def chapters(self, base: str) -> Iterator[str]:
        """Yield the chapters' parts in reading order, without the table of contents."""
        for key in dict.fromkeys(self._spine):
            if key in self._parts and key not in self._left_out:
                yield resolve_part(base, self._parts[key])
