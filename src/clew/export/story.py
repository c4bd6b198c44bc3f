"""Export a graph: choose the format, write a temporary file, rename it when complete."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from clew.errors import InputError
from clew.export.cypher import write_cypher
from clew.export.graph import ExportGraph
from clew.export.graphml import write_graphml
from clew.export.html import GraphPage
from clew.export.jsonl import write_jsonl
from clew.export.parquet import entities_path, write_parquet
from clew.export.tables import write_csv, write_tsv

GraphWriter = Callable[[ExportGraph, Path], Awaitable[int]]
"""Writes a graph to a file; returns how many elements the format cannot hold."""

FORMATS: dict[str, GraphWriter] = {
    "graphml": write_graphml,
    "jsonl": write_jsonl,
    "parquet": write_parquet,
    "cypher": write_cypher,
    "html": GraphPage(),
    "tsv": write_tsv,
    "csv": write_csv,
}
_SUFFIXES = {".ndjson": "jsonl", ".cql": "cypher", ".htm": "html"}


@dataclass(frozen=True)
class ExportResult:
    """Result of an export."""

    file: Path
    format: str
    entities: int
    facts: int
    left_out: int = 0
    """Facts (in a page: entities) that the format cannot hold or its limits exclude."""
    bytes: int = 0


async def export(
    graph: ExportGraph, file: Path, form: str | None = None, page: GraphPage | None = None
) -> ExportResult:
    """Write the graph; `page` sets the limits of the HTML page."""
    name = form or _SUFFIXES.get(file.suffix.lower(), file.suffix.lower().removeprefix("."))
    if name not in FORMATS:
        raise InputError(
            f"cannot tell a format from {file.name!r}; name a file that ends in "
            f"{', '.join(f'.{one}' for one in FORMATS)}, or give --format"
        )
    write = page if name == "html" and page is not None else FORMATS[name]
    temporary = file.with_name(f".{file.stem}.new{file.suffix}")
    _make_folder(file)
    try:
        left_out = await write(graph, temporary)
        size = _move_into_place(temporary, file, name)
    except OSError as error:
        why = (error.strerror or str(error)).replace(str(temporary), str(file))
        raise InputError(f"cannot write {file}: {why}") from error
    finally:
        temporary.unlink(missing_ok=True)
    view = graph.view
    sizes = view.count("entity"), view.count("fact")
    return ExportResult(file, name, *sizes, left_out, size)


def _make_folder(file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror or error}") from error


def _move_into_place(temporary: Path, file: Path, name: str) -> int:
    """Rename the temporary files to their final names; return their size."""
    size = temporary.stat().st_size
    if name == "parquet":
        size += entities_path(temporary).stat().st_size
        entities_path(temporary).replace(entities_path(file))
    temporary.replace(file)
    return size
