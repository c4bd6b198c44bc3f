"""Export tables: triples as TSV or CSV; all facts and entities as Parquet (extra `parquet`)."""

import csv
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from clew.errors import ConfigError
from clew.export.graph import ExportedFact, ExportGraph
from clew.types import Entity
from clew.version import pip_install_command

TRIPLE_COLUMNS = ("head", "relation", "tail", "weight", "description", "head_type", "tail_type")
# What a spreadsheet would run; an apostrophe makes it text. Numbers are left as they are.
FORMULA = re.compile(r"^'*(?:[=@\t\r]|[+-](?![\d.]+$))")
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
            cells = [FORMULA.sub(r"'\g<0>", cell) for cell in cells]
            if separator == ",":
                table.writerow(cells)
            else:
                out.write("\t".join(cell.translate(_TSV_ESCAPES) for cell in cells) + "\n")
    return left_out


_ROW_GROUP_SIZE = 20_000  # rows per row group


async def write_parquet(graph: ExportGraph, file: Path) -> int:
    """Write both tables; return 0, since every fact can be written."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ConfigError(
            f"Parquet needs pyarrow; run `{pip_install_command('parquet')}`"
        ) from error
    text = pa.string()
    member = pa.struct([("name", text), ("role", text)])
    place = pa.struct([("doc", text), ("start", pa.int64()), ("end", pa.int64())])
    facts = pa.schema(
        [
            *((name, text) for name in ("id", "head", "relation", "tail", "text", "description")),
            ("weight", pa.float64()),
            ("keywords", pa.list_(text)),
            ("members", pa.list_(member)),
            ("said", pa.list_(place)),
        ]
    )
    entities = pa.schema(
        [
            *((name, text) for name in ("id", "name", "type", "description", "attributes")),
            ("aliases", pa.list_(text)),
            ("support", pa.int64()),
        ]
    )
    await _write_table(facts, file, _fact_rows(graph))
    await _write_table(entities, entities_path(file), _entity_rows(graph))
    return 0


def entities_path(file: Path) -> Path:
    """Return the path of the entity table of an export."""
    return file.with_name(f"{file.stem}.entities{file.suffix}")


async def _write_table(schema: Any, file: Path, rows: AsyncIterator[dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    block: list[dict[str, Any]] = []
    with pq.ParquetWriter(file, schema) as out:
        async for row in rows:
            block.append(row)
            if len(block) >= _ROW_GROUP_SIZE:
                out.write_table(pa.Table.from_pylist(block, schema))
                block = []
        out.write_table(pa.Table.from_pylist(block, schema))


async def _fact_rows(graph: ExportGraph) -> AsyncIterator[dict[str, Any]]:
    async for fact in graph.facts():
        yield _fact_row(fact)


async def _entity_rows(graph: ExportGraph) -> AsyncIterator[dict[str, Any]]:
    async for _, entity in graph.entities():
        yield _entity_row(entity)


def _fact_row(stated: ExportedFact) -> dict[str, Any]:
    fact = stated.fact
    head, _, tail = stated.triple or (None, None, None)
    return {
        "id": fact.id,
        "head": head,
        "relation": fact.relation,
        "tail": tail,
        "text": fact.text,
        "description": fact.description,
        "weight": fact.weight,
        "keywords": list(fact.keywords),
        "members": [{"name": name, "role": role} for name, role in stated.members],
        "said": [{"doc": p.doc, "start": p.start, "end": p.end} for p in stated.sources],
    }


def _entity_row(entity: Entity) -> dict[str, Any]:
    return {
        "id": entity.id,
        "name": entity.name,
        "type": entity.type,
        "description": entity.description,
        "attributes": json.dumps(dict(entity.attributes), ensure_ascii=False),
        "aliases": list(entity.aliases),
        "support": entity.support,
    }
