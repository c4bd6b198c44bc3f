"""Finds graphs that were imported before, and their parts, so that they can be re-imported."""

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from clew.ingest.build import AddResult
from clew.ingest.find import document_name
from clew.ingest.intake import GRAPHS_KIND
from clew.store.protocol import Counts, KeyValueStore

__all__ = [
    "IMPORTED_GRAPHS",
    "combine_results",
    "find_imported_graphs",
    "document_name",
    "document_parts",
]

IMPORTED_GRAPHS = GRAPHS_KIND


class ImportOutcome(Protocol):
    """The part of an import result that is needed here."""

    @property
    def counts(self) -> Counts:
        """Counts of the knowledge base after the import."""
        ...

    @property
    def unchanged(self) -> bool:
        """Whether the graph was unchanged."""
        ...


def document_parts(name: str, known: Collection[str]) -> list[str]:
    """Return the document of this name, else the parts of the file of this name, else the name."""
    if name in known:
        return [name]
    return [part for part in known if part.startswith(f"{name}#")] or [name]


async def find_imported_graphs(
    memory: KeyValueStore, paths: Sequence[Path | str]
) -> dict[Path | str, str]:
    """Return those of the paths that were imported as graphs, with their formats."""
    names = {path: document_name(Path(path)) for path in paths}
    held = await memory.get(IMPORTED_GRAPHS, list(names.values()))
    return {path: json.loads(held[name])["format"] for path, name in names.items() if name in held}


def combine_results(done: Sequence[ImportOutcome], added: AddResult | None = None) -> AddResult:
    """Combine the result of an add with the re-imports of graphs among its paths."""
    result = added or AddResult(done[-1].counts)
    same = sum(one.unchanged for one in done)
    return replace(
        result, unchanged=result.unchanged + same, updated=result.updated + len(done) - same
    )
