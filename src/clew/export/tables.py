"""Export triples as TSV or CSV with a header; other facts are left out."""

import csv
from pathlib import Path

from clew.export.graph import ExportGraph

TRIPLE_COLUMNS = ("head", "relation", "tail", "weight", "description", "head_type", "tail_type")
_TSV_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


async def write_tsv(graph: ExportGraph, file: Path) -> int:
    """Write escaped fields separated by tabs; return how many facts were left out."""
    return await _write_triples(graph, file, "\t")


async def write_csv(graph: ExportGraph, file: Path) -> int:
    """Write quoted fields separated by commas; return how many facts were left out."""
    return await _write_triples(graph, file, ",")


async def _write_triples(graph: ExportGraph, file: Path, separator: str) -> int:
    kinds = {at: entity.type async for at, entity in graph.entities() if entity.type}
    left_out = 0
    with file.open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        out.write(separator.join(TRIPLE_COLUMNS) + "\n")
        async for stated in graph.facts():
            if not stated.triple:
                left_out += 1
                continue
            fact, types = stated.fact, [kinds.get(at, "") for at in stated.positions]
            cells = [*stated.triple, repr(fact.weight), fact.description, *types]
            if separator == ",":
                table.writerow(cells)
            else:
                out.write("\t".join(cell.translate(_TSV_ESCAPES) for cell in cells) + "\n")
    return left_out
