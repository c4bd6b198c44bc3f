"""Reads DOCX: paragraphs, headings and tables in document order, streamed from the zip's XML.

No tree is built and nothing is unpacked beyond its budget, so that a zip bomb costs no more than
any other file.
"""

import zipfile
import zlib
from collections.abc import Iterator
from typing import IO
from xml.parsers import expat

from clew.errors import InputError
from clew.ingest.readers.docx_stream import (
    BodyHandler,
    PropertiesHandler,
    StyleHandler,
    XmlHandler,
    strip_namespace,
)
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
_MAX_COMPRESSION_RATIO = (
    200  # plain prose deflates three- to tenfold, the emptiest XML about a hundredfold
)
_ALWAYS_ALLOWED_BYTES = 20_000_000  # unpacked size at which the ratio is not checked
_READ_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, LZMAError, EOFError),
    *(NotImplementedError, RuntimeError),
    UnicodeDecodeError,  # names within the archive
)


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


def _parse_part(archive: zipfile.ZipFile, part: str, limit: int, handler: XmlHandler) -> None:
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


def _local_tag(tag: str) -> str:
    return tag.rpartition(" ")[2]


def _heading_levels(archive: zipfile.ZipFile, limit: int) -> dict[str, int]:
    styles = StyleHandler()
    _parse_part(archive, _STYLES, limit, styles)
    return styles.levels


def _property_title(archive: zipfile.ZipFile, limit: int) -> str:
    properties = PropertiesHandler()
    _parse_part(archive, _PROPERTIES, limit, properties)
    return properties.title.strip()
