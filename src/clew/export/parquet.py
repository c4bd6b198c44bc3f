"""Export Parquet (extra `parquet`): facts in FILE, entities in FILE's `.entities.parquet`."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from clew.errors import ConfigError
from clew.export.graph import Graph, Stated
from clew.types import Entity
from clew.version import pip_install

_BLOCK = 20_000  # rows per row group


async def write_parquet(graph: Graph, file: Path) -> int:
    """Write both tables; return 0, since every fact can be written."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ConfigError(f"Parquet needs pyarrow; `{pip_install('parquet')}`") from error
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
    await _table(facts, file, _facts(graph))
    await _table(entities, entities_beside(file), _entities(graph))
    return 0


def entities_beside(file: Path) -> Path:
    """Return the path of the entity table of an export."""
    return file.with_name(f"{file.stem}.entities{file.suffix}")


async def _table(schema: Any, file: Path, rows: AsyncIterator[dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    block: list[dict[str, Any]] = []
    with pq.ParquetWriter(file, schema) as out:
        async for row in rows:
            block.append(row)
            if len(block) >= _BLOCK:
                out.write_table(pa.Table.from_pylist(block, schema))
                block = []
        out.write_table(pa.Table.from_pylist(block, schema))


async def _facts(graph: Graph) -> AsyncIterator[dict[str, Any]]:
    async for fact in graph.facts():
        yield _fact(fact)


async def _entities(graph: Graph) -> AsyncIterator[dict[str, Any]]:
    async for _, entity in graph.entities():
        yield _entity(entity)


def _fact(stated: Stated) -> dict[str, Any]:
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
        "said": [{"doc": p.doc, "start": p.start, "end": p.end} for p in stated.said],
    }


def _entity(entity: Entity) -> dict[str, Any]:
    return {
        "id": entity.id,
        "name": entity.name,
        "type": entity.type,
        "description": entity.description,
        "attributes": json.dumps(dict(entity.attributes), ensure_ascii=False),
        "aliases": list(entity.aliases),
        "support": entity.support,
    }
