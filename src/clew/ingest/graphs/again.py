"""Finds graphs that were imported before, and their parts, so that they can be re-imported."""

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from clew.ingest.build import Added
from clew.ingest.find import name_of
from clew.ingest.intake import GRAPHS
from clew.store.protocol import Counts, Memory

__all__ = ["KNOWN", "added_again", "known_graphs", "name_of", "parts_of"]

KNOWN = GRAPHS


class Done(Protocol):
    """The part of an import result that is needed here."""

    @property
    def counts(self) -> Counts:
        """Counts of the knowledge base after the import."""
        ...

    @property
    def unchanged(self) -> bool:
        """Whether the graph was unchanged."""
        ...


def parts_of(name: str, known: Collection[str]) -> list[str]:
    """Return the document of this name, else the parts of the file of this name, else the name."""
    if name in known:
        return [name]
    return [part for part in known if part.startswith(f"{name}#")] or [name]


async def known_graphs(memory: Memory, paths: Sequence[Path | str]) -> dict[Path | str, str]:
    """Return those of the paths that were imported as graphs, with their formats."""
    names = {path: name_of(Path(path)) for path in paths}
    held = await memory.recall(KNOWN, list(names.values()))
    return {path: json.loads(held[name])["format"] for path, name in names.items() if name in held}


def added_again(done: Sequence[Done], added: Added | None = None) -> Added:
    """Combine the result of an add with the re-imports of graphs among its paths."""
    result = added or Added(done[-1].counts)
    same = sum(one.unchanged for one in done)
    return replace(
        result, unchanged=result.unchanged + same, updated=result.updated + len(done) - same
    )
