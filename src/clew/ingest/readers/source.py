"""Types shared by file readers: source file, read budget, skipped items, document creation."""

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from clew.errors import InputError
from clew.text.unicode import clean, digest
from clew.types import Document

RowNames = Literal["path", "id"]

_MEGABYTE = 1_000_000
_PIECE_BYTES = 1 << 20  # read at a time
_GZIP_MAGIC = b"\x1f\x8b"
_MAX_COMPRESSION_RATIO = 200
_FREE_UNPACKED_BYTES = 20 * _MEGABYTE  # where the ratio is not checked


@dataclass(frozen=True, slots=True)
class ReadBudget:
    """Limits on reading one file; a file or row beyond them is reported as skipped."""

    file_bytes: int = 200 * _MEGABYTE
    row_bytes: int = 16 * _MEGABYTE
    """Files of rows are streamed, so the limit applies to each row, not to the file."""
    pages: int = 5_000
    seconds: float = 120.0
    """Of processor time, for formats with a parser: PDF, DOCX, HTML and others."""
    ocr: str = "auto"
    """Languages of scanned pages for tesseract; auto: English if it is installed; or never."""

    def say_too_slow(self) -> str:
        """Say that a file took too long, and where more time is given."""
        where = "`[read] seconds` in clew.toml sets how long"
        return f"takes longer than {self.seconds:g} s to read ({where})"


DEFAULT_BUDGET = ReadBudget()


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read and the name of its documents."""

    path: Path
    name: str
    row_names: RowNames = "path"


@dataclass(frozen=True, slots=True)
class Skipped:
    """An input that was not read, and why; `line` is its line in a file of rows."""

    name: str
    reason: str
    line: int | None = None
    broken: bool = False
    """Whether it could not be parsed, so that it is unknown which rows the file holds."""
    partly: bool = False
    """Whether it was read but for some cells."""

    def __str__(self) -> str:
        """Return the reason as one sentence."""
        where = f", line {self.line}" if self.line else ""
        return f"{self.name}{where}: {self.reason}."


@dataclass(frozen=True, slots=True)
class FileEnd:
    """Marks the end of a file of rows: known rows of it that were not read have been removed."""

    name: str


DocumentReader = Callable[[SourceFile, ReadBudget], Iterator[Document | Skipped]]


def make_document(
    text: str,
    title: str = "",
    name: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> Document:
    """Make a document from external text: cleaned, with the hash of title and text as its id."""
    text, title = clean(text), " ".join(clean(title).split())
    names = (name,) if name else ()
    return Document(digest(title, text), text, title, names, metadata or {})


def read_bytes(source: SourceFile, budget: ReadBudget) -> bytes:
    """Read the whole file, but never more than the budget."""
    # A reported size over the limit saves reading; the read itself is bounded all the same.
    size = source.path.stat().st_size
    with source.path.open("rb") as file:
        raw = _read_at_most(file, budget.file_bytes + 1) if size <= budget.file_bytes else b""
    if max(size, len(raw)) > budget.file_bytes:
        raise InputError(
            f"is larger than the limit of {format_megabytes(budget.file_bytes)}; split it"
        )
    if not raw:
        raise InputError("is empty")
    is_packed = source.path.suffix.lower() == ".gz" and raw.startswith(_GZIP_MAGIC)
    return _unpack_gzip(raw, budget) if is_packed else raw


def _read_at_most(file: BinaryIO, most: int) -> bytes:
    """Read a file in pieces: asked for all at once, Python reserves as much as it may become."""
    pieces: list[bytes] = []
    left = most
    while left and (piece := file.read(min(left, _PIECE_BYTES))):
        pieces.append(piece)
        left -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _unpack_gzip(raw: bytes, budget: ReadBudget) -> bytes:
    """Unpack within the budget: a bomb costs no more than any other file."""
    limit = min(budget.file_bytes, max(_FREE_UNPACKED_BYTES, len(raw) * _MAX_COMPRESSION_RATIO))
    try:
        unpacked = zlib.decompressobj(wbits=31).decompress(raw, limit + 1)
    except zlib.error as error:
        raise InputError(f"is a broken gzip file ({error})") from error
    if len(unpacked) > limit:
        raise InputError(f"unpacks to more than {format_megabytes(limit)}")
    if not unpacked:
        raise InputError("is empty")
    return unpacked


def content_suffix(path: Path) -> str:
    """Return the suffix that says what a file holds: of `page.html.gz` it is `.html`."""
    suffix = path.suffix.lower()
    return path.with_suffix("").suffix.lower() if suffix == ".gz" else suffix


def format_megabytes(size: int) -> str:
    """Format a size in megabytes."""
    return f"{size / _MEGABYTE:g} MB"
