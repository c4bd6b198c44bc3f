"""Wrappers of extractors: rows of tables by code, and by rules the chunks that a model fails on.

A row is a fact whose members are its values, each with its type and its column as role.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clew.extract.model_extractors import DocumentExtractor
from clew.store.merge import embedded_text
from clew.store.packed import PACK_FROM, PackedExtractions
from clew.store.protocol import BY_RULES
from clew.text.tables import Row, Table, read_tables
from clew.types import SUBJECT, Chunk, Document, Extraction, RawEntity, RawFact

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
        tables = read_tables(document.text, document.metadata)
        if not tables:
            return await self.inner(document, chunks)
        found = _extract_rows(document, tables, chunks)
        return PackedExtractions(found) if len(chunks) >= PACK_FROM else list(found)


def _extract_rows(
    document: Document, tables: Sequence[Table], chunks: Sequence[Chunk]
) -> Iterator[Extraction]:
    """Yield what each chunk says; chunks and rows come in the order of the text."""
    rows = ((table, row) for table in tables for row in table.rows())
    table, row = next(rows)
    for chunk in chunks:
        while row.end <= chunk.start:
            table, row = next(rows)
        yield _extract_row(row.cells.get(table.label) or table.name or document.title, row, chunk)


def _extract_row(name: str, row: Row, chunk: Chunk) -> Extraction:
    """Return the row, its values that are names or literals, and one fact: a role per column.

    One fact per row rather than one per cell: a table of 100,000 rows has a million cells.
    """
    entities = {name: RawEntity(name, "row", about=1.0)}
    members = [(name, SUBJECT)]
    for column, value in row.cells.items():
        start, end = row.spans[column]
        if not chunk.start <= start < end <= chunk.end:
            continue  # the cell is in another chunk
        if value == name:
            entities[name] = RawEntity(name, column, about=1.0, spans=((start, end),))
        elif len(value) <= _MAX_NAME:
            kind = _value_type(value) or column
            entities.setdefault(value, RawEntity(value, kind, spans=((start, end),)))
            members.append((value, column))
    # As the passage is embedded, so that the same vector serves both.
    fact = RawFact(
        embedded_text(chunk), tuple(dict.fromkeys(members)), span=(chunk.start, chunk.end)
    )
    return Extraction(tuple(entities.values()), (fact,) if len(members) > 1 else ())


def _value_type(shown: str) -> str:
    """Return "number" or "date" for a literal value, else ""."""
    if shown.replace(",", "").replace(".", "", 1).lstrip("+-").isdigit():
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
