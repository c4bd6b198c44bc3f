"""Export a graph in any format, atomically; JSON lines, which lose nothing, are written here."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clew.errors import InputError
from clew.export.cypher import write_cypher
from clew.export.graph import Community, ExportedFact, ExportGraph
from clew.export.graphml import write_graphml
from clew.export.html import GraphPage
from clew.export.tables import entities_path, write_csv, write_parquet, write_tsv
from clew.types import Entity


async def write_jsonl(graph: ExportGraph, file: Path) -> int:
    """Write everything; return 0, the number of facts left out."""
    with file.open("w", encoding="utf-8", newline="\n") as out:
        out.write(_to_json_line({"kind": "meta", "format": "clew-graph", "version": 1}))
        async for _, entity in graph.entities():
            out.write(_to_json_line(_entity_row(entity)))
        async for fact in graph.facts():
            out.write(_to_json_line(_fact_row(fact)))
        names = await graph.disambiguated_names()
        for community in graph.communities:
            out.write(_to_json_line(_community_row(community, names)))
    return 0


def _to_json_line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"


def _entity_row(entity: Entity) -> dict[str, Any]:
    row: dict[str, Any] = {"kind": "entity", "id": entity.id, "name": entity.name}
    row |= {"type": entity.type, "description": entity.description}
    row |= {"aliases": list(entity.aliases), "attributes": dict(entity.attributes)}
    return row | {"support": entity.support}


def _fact_row(stated: ExportedFact) -> dict[str, Any]:
    fact = stated.fact
    row: dict[str, Any] = {"kind": "fact", "id": fact.id}
    if stated.triple:
        row |= dict(zip(("head", "relation", "tail"), stated.triple, strict=True))
    else:
        row |= {"clew_members": [list(one) for one in stated.members], "relation": fact.relation}
    row |= {"text": fact.text, "weight": fact.weight, "description": fact.description}
    return row | {
        "keywords": list(fact.keywords),
        "support": fact.support,
        "said": [{"doc": p.doc, "start": p.start, "end": p.end} for p in stated.sources],
    }


def _community_row(community: Community, renamed: Mapping[int, str]) -> dict[str, Any]:
    row: dict[str, Any] = {"kind": "community", **asdict(community)}
    if positions := row.pop("at"):
        members = zip(positions, community.members, strict=True)
        row["members"] = [renamed.get(at, name) for at, name in members]
    return row


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
            f"unknown export format of {file.name!r}; use a file name that ends in "
            f"{', '.join(f'.{one}' for one in FORMATS)}, or --format"
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
