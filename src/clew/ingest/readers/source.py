"""What a reader is given, what it may spend, and what it hands back."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from clew.errors import InputError
from clew.text import clean, digest
from clew.types import Document

RowNames = Literal["path", "id"]

_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that reading one file may take; beyond it the file or row is skipped, visibly."""

    file_bytes: int = 200 * _MEGABYTE
    row_bytes: int = 16 * _MEGABYTE
    """Files of rows are streamed, so each row counts and not the file."""
    pages: int = 5_000
    seconds: float = 120.0
    """For formats that have a parser: PDF, DOCX and HTML."""


BUDGET = Budget()


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read, and the name under which its documents are known."""

    path: Path
    name: str
    row_names: RowNames = "path"


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something asked for that was not read, and why; `line` is where in a file of rows."""

    name: str
    reason: str
    line: int | None = None

    def __str__(self) -> str:
        """Say it in one sentence."""
        where = f", line {self.line}" if self.line else ""
        return f"{self.name}{where}: {self.reason}."


@dataclass(frozen=True, slots=True)
class Ended:
    """A file of rows was read to its end: rows that it had before and were not met are gone."""

    name: str


Reader = Callable[[Source, Budget], Iterator[Document | Skipped]]


def document(
    text: str,
    title: str = "",
    name: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> Document:
    """Make a document of outside text: cleaned, and known by the hash of title and text."""
    text, title = clean(text), " ".join(clean(title).split())
    names = (name,) if name else ()
    return Document(digest(title, text), text, title, names, metadata or {})


def content(source: Source, budget: Budget) -> bytes:
    """Read the whole file, never more of it than the budget."""
    # The size that the system tells spares reading; what is read is bounded all the same.
    size = source.path.stat().st_size
    with source.path.open("rb") as file:
        raw = file.read(budget.file_bytes + 1 if size <= budget.file_bytes else 0)
    if max(size, len(raw)) > budget.file_bytes:
        raise InputError(f"is larger than the limit of {megabytes(budget.file_bytes)}; split it")
    if not raw:
        raise InputError("is empty")
    return raw


def megabytes(size: int) -> str:
    """Write a size for people."""
    return f"{size / _MEGABYTE:g} MB"
