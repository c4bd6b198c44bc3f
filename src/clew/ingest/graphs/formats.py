"""Graph file formats: their readers, and detection by suffix and content."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clew.errors import InputError
from clew.ingest.graphs.delimited import DelimitedReader
from clew.ingest.graphs.graphml import read_graphml
from clew.ingest.graphs.jsonl import read_jsonl
from clew.ingest.graphs.neo4j import csv_files, detect_separator, read_neo4j
from clew.ingest.graphs.rdf import read_ntriples, read_turtle
from clew.ingest.graphs.rows import GraphReader, id_as_label, resource_name

_HEAD_BYTES = 65_536


@dataclass(frozen=True)
class GraphFormat:
    """A graph file format: its reader, and how ids without a name are labelled."""

    name: str
    read: GraphReader
    label: Callable[[str], str] = id_as_label
    suffixes: tuple[str, ...] = ()


FORMATS = {
    one.name: one
    for one in (
        GraphFormat("tsv", DelimitedReader("\t"), suffixes=(".tsv", ".tab")),
        GraphFormat("csv", DelimitedReader(","), suffixes=(".csv",)),
        GraphFormat("pipe", DelimitedReader("|"), suffixes=(".psv",)),
        GraphFormat("ntriples", read_ntriples, resource_name, (".nt", ".nq", ".ntriples")),
        GraphFormat("turtle", read_turtle, resource_name, (".ttl", ".turtle", ".n3")),
        GraphFormat("graphml", read_graphml, suffixes=(".graphml", ".xml")),
        GraphFormat("neo4j", read_neo4j),
        GraphFormat("jsonl", read_jsonl, suffixes=(".jsonl", ".ndjson", ".json")),
    )
}
_BY_SUFFIX = {suffix: one for one in FORMATS.values() for suffix in one.suffixes}


def detect_format(path: Path, wanted: str | None = None) -> GraphFormat:
    """Return the requested format, else the one detected from suffix and first lines."""
    if wanted is not None:
        if wanted not in FORMATS:
            raise InputError(f"unknown graph format {wanted!r}; choose one of {', '.join(FORMATS)}")
        return FORMATS[wanted]
    if not path.exists():
        raise InputError(f"{path}: no such file or folder; check the path")
    found = (
        FORMATS["neo4j"] if path.is_dir() else _format_by_suffix(path) or _format_by_content(path)
    )
    if found is None:
        raise InputError(
            f"{path}: unknown graph format; set it with --format ({', '.join(FORMATS)})"
        )
    return found


def graph_files(path: Path, chosen: GraphFormat) -> list[Path]:
    """Return the files that make up the graph."""
    if path.is_dir() and chosen.name != "neo4j":
        raise InputError(f"{path} is a folder; only a Neo4j export can be a folder: name the file")
    return csv_files(path)


def _format_by_suffix(path: Path) -> GraphFormat | None:
    found = _BY_SUFFIX.get(path.suffix.lower())
    if found is not None and found.name in ("csv", "tsv") and detect_separator(path):
        return FORMATS["neo4j"]
    return found


def _format_by_content(path: Path) -> GraphFormat | None:
    """Detect the format by how the first lines begin, or by the separator of three fields."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    text = head.decode("utf-8", "replace").lstrip("\ufeff").lstrip()
    lines = text.splitlines()[:20]
    lines = [line for line in (lines[:-1] if len(head) == _HEAD_BYTES else lines) if line.strip()]
    if text.startswith("<") and "<graphml" in text:
        return FORMATS["graphml"]
    if text.startswith(("{", "[")):
        return FORMATS["jsonl"]
    if text.startswith(("@prefix", "@base", "PREFIX")):
        return FORMATS["turtle"]
    if lines and all(line.startswith(("<", "_:", "#")) and ">" in line for line in lines[:5]):
        return FORMATS["ntriples"]
    for name, separator in (("tsv", "\t"), ("pipe", "|"), ("csv", ",")):
        if lines and sum(line.count(separator) in (2, 3) for line in lines) * 2 > len(lines):
            return FORMATS[name]
    return None
