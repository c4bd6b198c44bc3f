"""Graphs that are here already: their names, their parts, and taking them in anew."""

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
    """What of an import matters here."""

    @property
    def counts(self) -> Counts:
        """How much there is now."""
        ...

    @property
    def unchanged(self) -> bool:
        """Whether nothing had to be done."""
        ...


def parts_of(name: str, known: Collection[str]) -> list[str]:
    """The document of this name, or else the parts of the file of this name, or else the name."""
    if name in known:
        return [name]
    return [one for one in known if one.startswith(f"{name}#")] or [name]


async def known_graphs(memory: Memory, paths: Sequence[Path | str]) -> dict[Path | str, str]:
    """Those of the paths that were imported as graphs, each with its format."""
    names = {path: name_of(Path(path)) for path in paths}
    held = await memory.recall(KNOWN, list(names.values()))
    return {path: json.loads(held[name])["format"] for path, name in names.items() if name in held}


def added_again(done: Sequence[Done], added: Added | None = None) -> Added:
    """What an add did that met imported graphs."""
    found = added or Added(done[-1].counts)
    same = sum(one.unchanged for one in done)
    return replace(
        found, unchanged=found.unchanged + same, updated=found.updated + len(done) - same
    )
