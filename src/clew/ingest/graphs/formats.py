"""Graph file formats: their readers, and detection by suffix and content."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clew.errors import InputError
from clew.ingest.graphs.delimited import Delimited
from clew.ingest.graphs.graphml import read_graphml
from clew.ingest.graphs.jsonl import read_jsonl
from clew.ingest.graphs.neo4j import files_of, read_neo4j, separator_of
from clew.ingest.graphs.rdf import read_ntriples
from clew.ingest.graphs.rows import Reader
from clew.ingest.graphs.turtle import read_turtle
from clew.ingest.graphs.words import resource_name, same

_HEAD = 65_536


@dataclass(frozen=True)
class Format:
    """A graph file format: its reader, and how ids without a name are labelled."""

    name: str
    read: Reader
    label: Callable[[str], str] = same
    suffixes: tuple[str, ...] = ()


FORMATS = {
    one.name: one
    for one in (
        Format("tsv", Delimited("\t"), suffixes=(".tsv", ".tab")),
        Format("csv", Delimited(","), suffixes=(".csv",)),
        Format("pipe", Delimited("|"), suffixes=(".psv",)),
        Format("ntriples", read_ntriples, resource_name, (".nt", ".nq", ".ntriples")),
        Format("turtle", read_turtle, resource_name, (".ttl", ".turtle", ".n3")),
        Format("graphml", read_graphml, suffixes=(".graphml", ".xml")),
        Format("neo4j", read_neo4j),
        Format("jsonl", read_jsonl, suffixes=(".jsonl", ".ndjson", ".json")),
    )
}
_BY_SUFFIX = {suffix: one for one in FORMATS.values() for suffix in one.suffixes}


def format_of(path: Path, wanted: str | None = None) -> Format:
    """Return the requested format, else the one detected from suffix and first lines."""
    if wanted is not None:
        if wanted not in FORMATS:
            raise InputError(f"no graph format {wanted!r}; have {', '.join(FORMATS)}")
        return FORMATS[wanted]
    found = FORMATS["neo4j"] if path.is_dir() else _by_suffix(path) or _by_looks(path)
    if found is None:
        raise InputError(
            f"{path}: cannot tell what format this is; say it with --format ({', '.join(FORMATS)})"
        )
    return found


def files(path: Path, chosen: Format) -> list[Path]:
    """Return the files that make up the graph."""
    if path.is_dir() and chosen.name != "neo4j":
        raise InputError(f"{path} is a folder; only a Neo4j export may be one, name the file")
    return files_of(path)


def _by_suffix(path: Path) -> Format | None:
    found = _BY_SUFFIX.get(path.suffix.lower())
    if found is not None and found.name in ("csv", "tsv") and separator_of(path):
        return FORMATS["neo4j"]
    return found


def _by_looks(path: Path) -> Format | None:
    """Detect the format by how the first lines begin, or by the separator of three fields."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    text = head.decode("utf-8", "replace").lstrip("\ufeff").lstrip()
    lines = text.splitlines()[:20]
    lines = [line for line in (lines[:-1] if len(head) == _HEAD else lines) if line.strip()]
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
