"""The export story: which format, into a fresh file, moved into place when it is whole."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from clew.errors import InputError
from clew.export.cypher import write_cypher
from clew.export.graph import Graph
from clew.export.graphml import write_graphml
from clew.export.html import Page
from clew.export.jsonl import write_jsonl
from clew.export.parquet import entities_beside, write_parquet
from clew.export.tables import write_csv, write_tsv

Write = Callable[[Graph, Path], Awaitable[int]]
"""Writes a graph to a file; returns how many elements it has no place for."""

FORMATS: dict[str, Write] = {
    "graphml": write_graphml,
    "jsonl": write_jsonl,
    "parquet": write_parquet,
    "cypher": write_cypher,
    "html": Page(),
    "tsv": write_tsv,
    "csv": write_csv,
}
_SUFFIXES = {".ndjson": "jsonl", ".cql": "cypher", ".htm": "html"}


@dataclass(frozen=True)
class Exported:
    """What was written."""

    file: Path
    format: str
    entities: int
    facts: int
    left_out: int = 0
    """Facts (in a page: entities) that the format or its bounds have no place for."""
    bytes: int = 0


async def export(
    graph: Graph, file: Path, form: str | None = None, page: Page | None = None
) -> Exported:
    """Write the graph; `page` bounds the HTML view."""
    name = form or _SUFFIXES.get(file.suffix.lower(), file.suffix.lower().removeprefix("."))
    if name not in FORMATS:
        raise InputError(
            f"cannot tell a format from {file.name!r}; name a file that ends in "
            f"{', '.join(f'.{one}' for one in FORMATS)}, or give --format"
        )
    write = page if name == "html" and page is not None else FORMATS[name]
    fresh = file.with_name(f".{file.stem}.new{file.suffix}")
    _make_folder(file)
    try:
        left_out = await write(graph, fresh)
        size = _moved(fresh, file, name)
    except OSError as error:
        why = (error.strerror or str(error)).replace(str(fresh), str(file))
        raise InputError(f"cannot write {file}: {why}") from error
    finally:
        fresh.unlink(missing_ok=True)
    view = graph.view
    sizes = view.count("entity"), view.count("fact")
    return Exported(file, name, *sizes, left_out, size)


def _make_folder(file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror or error}") from error


def _moved(fresh: Path, file: Path, name: str) -> int:
    """Put what was written in its place; return its size."""
    size = fresh.stat().st_size
    if name == "parquet":
        size += entities_beside(fresh).stat().st_size
        entities_beside(fresh).replace(entities_beside(file))
    fresh.replace(file)
    return size
