"""Reads the parts of Office and EPUB files: zip archives of XML, unpacked within a budget.

XML is streamed and nothing is unpacked beyond the budget, so that a zip bomb costs no more than any
other file.
"""

import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from urllib.parse import unquote
from xml.parsers import expat

from clew.errors import InputError
from clew.ingest.readers.source import ReadBudget, SourceFile, format_megabytes

try:
    from lzma import LZMAError
except ImportError:  # a Python built without it cannot unpack such parts either
    LZMAError = zipfile.BadZipFile  # type: ignore[misc,assignment]

_PIECE = 65_536
_MAX_COMPRESSION_RATIO = 200  # of prose it is 3 to 10, of the emptiest XML about 100
_ALWAYS_ALLOWED_BYTES = 20_000_000  # unpacked size at which the ratio is not checked
_READ_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, LZMAError, EOFError),
    *(NotImplementedError, RuntimeError),
    UnicodeDecodeError,  # names within the archive
)


class XmlHandler(Protocol):
    """Receives a stream of elements and text; tags come without their namespace."""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""

    def end(self, tag: str) -> None:
        """Handle the end of an element."""

    def characters(self, text: str) -> None:
        """Handle text between elements."""


class Archive:
    """An open archive; all its parts together may unpack to `limit` bytes."""

    def __init__(self, archive: zipfile.ZipFile, limit: int) -> None:
        self._archive = archive
        self._limit = limit
        self._unpacked = 0
        self.names = frozenset(archive.namelist())

    def parse(self, part: str, handler: XmlHandler) -> None:
        """Stream a part's elements to a handler; a part that is not there is a KeyError."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = lambda tag, attributes: handler.start(
            strip_namespace(tag), attributes
        )
        parser.EndElementHandler = lambda tag: handler.end(strip_namespace(tag))
        parser.CharacterDataHandler = handler.characters
        parser.StartDoctypeDeclHandler = _refuse_doctype
        for piece in self._read_bounded(part):
            parser.Parse(piece)
        parser.Parse(b"", True)

    def read(self, part: str) -> bytes:
        """Return a part's bytes."""
        return b"".join(self._read_bounded(part))

    def _read_bounded(self, part: str) -> Iterator[bytes]:
        """Unpack block by block; the sizes the archive declares are not trusted."""
        with self._archive.open(part) as stream:
            while piece := stream.read(_PIECE):
                self._unpacked += len(piece)
                if self._unpacked > self._limit:
                    raise InputError(
                        f"unpacks to more than {format_megabytes(self._limit)}: "
                        "it may be a zip bomb"
                    )
                yield piece


@contextmanager
def open_archive(source: SourceFile, budget: ReadBudget, what: str) -> Iterator[Archive]:
    """Open a file of this kind (`Word document`); whatever is wrong with it is an `InputError`."""
    size = source.path.stat().st_size
    if size > budget.file_bytes:
        raise InputError(
            f"is larger than the limit of {format_megabytes(budget.file_bytes)}; split it"
        )
    if not size:
        raise InputError("is empty")
    if not zipfile.is_zipfile(source.path):
        suffix = source.path.suffix.lstrip(".").upper()
        raise InputError(f"is not a {suffix}, or is encrypted; save it as an unprotected {suffix}")
    limit = min(budget.file_bytes, max(_ALWAYS_ALLOWED_BYTES, size * _MAX_COMPRESSION_RATIO))
    try:
        with zipfile.ZipFile(source.path) as archive:
            yield Archive(archive, limit)
    except KeyError as error:
        raise InputError(f"is a zip archive but not a {what}") from error
    except _READ_ERRORS as error:
        raise InputError(f"is not a {what} that can be read ({error})") from error
    except (expat.ExpatError, IndexError) as error:
        raise InputError(f"is a broken {what} ({error})") from error


def _refuse_doctype(*_: object) -> None:
    raise InputError("declares XML entities, which no such document does")


def strip_namespace(tag: str) -> str:
    """Remove the namespace from a tag."""
    return tag.rpartition(" ")[2]


def get_attribute(attributes: dict[str, str], name: str = "val") -> str:
    """Return an attribute's value whatever its namespace, or ""."""
    return next((value for key, value in attributes.items() if strip_namespace(key) == name), "")


def resolve_part(base: str, target: str) -> str:
    """Return the name of the part that a link in part `base` leads to."""
    target = unquote(target.split("#")[0])
    if target.startswith("/"):
        return target.lstrip("/")
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), target))


def links_of(archive: Archive, part: str) -> dict[str, str]:
    """Return where the links of a part lead, by their ids."""
    folder, _, name = part.rpartition("/")
    links = LinkHandler("Relationship", "Id", "Target")
    if (relations := f"{folder}/_rels/{name}.rels") in archive.names:
        archive.parse(relations, links)
    return links.links


class LinkHandler:
    """Collects elements of one tag by an id attribute: the relationships of a part."""

    def __init__(self, tag: str, key: str, value: str) -> None:
        self.links: dict[str, str] = {}
        self._tag, self._key, self._value = tag, key, value

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Record a link."""
        if tag == self._tag:
            key = get_attribute(attributes, self._key)
            self.links[key] = get_attribute(attributes, self._value)

    def end(self, tag: str) -> None:
        """Do nothing: links are attributes."""

    def characters(self, text: str) -> None:
        """Do nothing: links have no text."""
