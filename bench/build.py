"""Build cost by number of passages, without a model.

`python -m bench.build [--data DIR] [--sizes 1000,2000,4000,6000] [--embed hash|local]`. With `hash`
(the default) vectors cost next to nothing, so what is measured is Clew's own work.
"""

import argparse
import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from bench.machine import print_result, require_path
from clew.config import Settings, load_settings
from clew.engine import KnowledgeBase
from clew.ingest.files import read
from clew.ingest.readers.source import Skipped
from clew.llm.embed import Embedder, EmbedRole, Vectors
from clew.llm.factory import create_embedder
from clew.store.sqlite.store import SqliteStore
from clew.text.unicode import hash64
from clew.types import Document

UPDATE_SIZE = 10  # documents added after the build, to time an update


class RandomEmbed:
    """Embeds texts as pseudo-random unit vectors at almost no cost."""

    name, dim = "cheap", 384

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        """Return one vector per text."""
        rng = np.random.default_rng(hash64(texts[0]) if texts else 0)
        found = rng.standard_normal((len(texts), self.dim), np.float32)
        return found / np.linalg.norm(found, axis=1, keepdims=True)


async def read_documents(path: Path, count: int) -> list[Document]:
    """Read so many documents."""
    found = []
    async for item in read([path], row_names="id"):
        if isinstance(item, Document):
            found.append(item)
        if len(found) == count:
            break
    return found


async def iter_documents(documents: Sequence[Document]) -> AsyncIterator[Document | Skipped]:
    """Yield documents as a reader would."""
    for document in documents:
        yield document


async def _measure_build(documents: list[Document], embed: Embedder) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(kb=Path(folder) / "kb")
        base = KnowledgeBase(SqliteStore(settings.kb, create=True), settings, embed)
        stages: dict[str, float] = {}
        began = last = perf_counter()

        def tell(stage: str, done: int, total: int) -> None:
            nonlocal last
            now = perf_counter()
            stages[stage] = stages.get(stage, 0.0) + now - last
            last = now

        cpu = process_time()
        added = await base.take(iter_documents(documents[:-UPDATE_SIZE]), progress=tell)
        row = {"passages": len(documents), "seconds": round(perf_counter() - began, 2)}
        row["cpu"] = round(process_time() - cpu, 2)
        row |= {stage: round(seconds, 2) for stage, seconds in stages.items()}
        began = perf_counter()
        await base.take(iter_documents(documents[-UPDATE_SIZE:]))
        row["add_10"] = round(perf_counter() - began, 3)
        began = perf_counter()
        await base.remove(list(documents[0].names))
        row["remove_1"] = round(perf_counter() - began, 3)
        began = perf_counter()
        await base.take(iter_documents(documents[1:]))
        row["add_unchanged"] = round(perf_counter() - began, 3)
        row["mb"] = round((await base.store.counts()).bytes / 1e6, 1)
        row |= {"entities": added.counts.entities, "facts": added.counts.facts}
        await base.close()
        return row


def main() -> None:
    """Measure every size and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.build", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/2wiki"))
    parser.add_argument("--sizes", default="1000,2000,4000,6000")
    parser.add_argument("--embed", choices=("hash", "local"), default="hash")
    given = parser.parse_args()
    require_path(given.data, "--data")
    sizes = [int(size) for size in given.sizes.split(",")]
    settings = load_settings()
    embed = (
        create_embedder(settings.embed, settings.cache) if given.embed == "local" else RandomEmbed()
    )
    documents = asyncio.run(read_documents(given.data / "corpus.jsonl", max(sizes)))
    rows = [asyncio.run(_measure_build(list(islice(documents, size)), embed)) for size in sizes]
    columns = list(rows[0])
    print("  ".join(f"{name:>10}" for name in columns))
    for row in rows:
        print("  ".join(f"{row[name]:>10}" for name in columns))
    per = [row["cpu"] / row["passages"] for row in rows]
    print(f"cpu seconds per passage, largest against smallest: {per[-1] / per[0]:.2f}×")
    figures = {"rows": rows, "growth": round(per[-1] / per[0], 3), "embed": given.embed}
    print_result("build", figures, {"passages": sizes})


if __name__ == "__main__":
    main()
