"""Wrappers of extractors: rows of tables by code, and by rules the chunks that a model fails on.

A row is a fact whose members are its values, each with its type and its column as role.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from clew.extract.model_extractors import DocumentExtractor
from clew.store.merge import embedded_text
from clew.store.protocol import BY_RULES
from clew.types import SUBJECT, Chunk, Document, Extraction, RawEntity, RawFact

_CELLS = "cells"  # metadata of a row's document
_MAX_NAME = 80  # characters of a cell that is taken for a name


@dataclass(frozen=True, eq=False, repr=False)
class WithTableRows:
    """Extracts rows of tables by code, and everything else by `inner`; its `repr` is `inner`'s.

    So documents that were extracted before there were tables stay unchanged.
    """

    inner: DocumentExtractor

    def __repr__(self) -> str:
        return repr(self.inner)

    @property
    def dropped(self) -> Any:
        """What the inner extractor dropped."""
        return getattr(self.inner, "dropped", None)

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk."""
        if not isinstance(document.metadata.get(_CELLS), dict):
            return await self.inner(document, chunks)
        return [_extract_row(document, chunk) for chunk in chunks]


def _extract_row(document: Document, chunk: Chunk) -> Extraction:
    """Return the row, its values that are names or literals, and one fact: a role per column.

    One fact per row rather than one per cell: a table of 100,000 rows has a million cells.
    """
    row = document.title
    entities = {row: RawEntity(row, "row", about=1.0)}
    members = [(row, SUBJECT)]
    at = chunk.start
    for column, value in document.metadata[_CELLS].items():
        name = _show(value)
        start = document.text.find(f"{column}: {name}", at, chunk.end)
        if start < 0:
            continue  # the cell is in another chunk
        at = start + len(column) + 2 + len(name)
        spans = ((at - len(name), at),)
        if name == row:
            entities[row] = RawEntity(row, column, about=1.0, spans=spans)
        elif len(name) <= _MAX_NAME:
            kind = _value_type(value, name) or column
            entities.setdefault(name, RawEntity(name, kind, spans=spans))
            members.append((name, column))
    # As the passage is embedded, so that the same vector serves both.
    fact = RawFact(
        embedded_text(chunk), tuple(dict.fromkeys(members)), span=(chunk.start, chunk.end)
    )
    return Extraction(tuple(entities.values()), (fact,) if len(members) > 1 else ())


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(str(value).split())


def _value_type(value: Any, shown: str) -> str:
    """Return "number" or "date" for a literal value, else ""."""
    if isinstance(value, bool):
        return ""
    digits = shown.replace(",", "").replace(".", "", 1).lstrip("+-")
    if isinstance(value, int | float) or digits.isdigit():
        return "number"
    parts = shown.replace("/", "-").split("T")[0].split(" ")[0].split("-")
    is_date = len(parts) == 3 and all(part.isdigit() for part in parts) and len(parts[0]) == 4
    return "date" if is_date else ""


@dataclass(frozen=True, eq=False, repr=False)
class WithFallback:
    """Extracts by `other` the chunks that `inner` failed on; its `repr` is `inner`'s.

    They still count as failed, so that `clew add --retry` asks the model again.
    """

    inner: DocumentExtractor
    other: DocumentExtractor

    def __repr__(self) -> str:
        return repr(self.inner)

    @property
    def dropped(self) -> Any:
        """What the inner extractor dropped."""
        return getattr(self.inner, "dropped", None)

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk."""
        found = list(await self.inner(document, chunks))
        if not any(one.failed for one in found):
            return found
        # Of all chunks: rules learn names from the whole document.
        instead = await self.other(document, chunks)
        for at, one in enumerate(found):
            if one.failed:
                found[at] = replace(instead[at], failed=one.failed.rstrip(".") + BY_RULES)
        return found
