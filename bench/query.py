"""How long retrieval takes once the question is embedded, and what it finds.

Wall time says what a user waits; processor time is the fairer figure on a machine that is shared.

`python -m bench.query [--data DIR] [--kb DIR] [--recipe R,R…] [--limit N]`. The knowledge base is
built from the dataset's corpus when the folder holds none.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from bench.machine import last_line, spread
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.evaluate.datasets import Question, load_dataset
from clew.llm.embed import Embed, Role, Vectors

WARM = 20  # questions asked before the clock counts


@dataclass
class Timed:
    """An embedder that keeps count of the seconds spent in it."""

    inner: Embed
    seconds: float = 0.0
    cpu: float = 0.0

    @property
    def name(self) -> str:
        """The inner embedder's."""
        return self.inner.name

    @property
    def dim(self) -> int:
        """The inner embedder's."""
        return self.inner.dim

    async def __call__(self, texts: Sequence[str], /, *, role: Role = "passage") -> Vectors:
        """Embed, and count."""
        began, busy = perf_counter(), process_time()
        try:
            return await self.inner(texts, role=role)
        finally:
            self.seconds += perf_counter() - began
            self.cpu += process_time() - busy


def main() -> None:
    """Measure, print a table, and the figures as the last line."""
    parser = argparse.ArgumentParser(prog="python -m bench.query", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/2wiki"))
    parser.add_argument("--kb", type=Path, default=Path.home() / ".cache/clew/bench/kb-2wiki")
    parser.add_argument("--recipe", default="naive,bm25,hybrid,clew")
    parser.add_argument("--limit", type=int, default=200)
    asyncio.run(measure(parser.parse_args()))


async def measure(given: argparse.Namespace) -> None:
    """Ask the same questions of every recipe."""
    dataset = load_dataset(given.data)
    base = await KnowledgeBase.open(Settings(kb=given.kb), create=True)
    if not (await base.store.counts()).documents and dataset.corpus is not None:
        await base.add([dataset.corpus])
    if base.embed is None:
        raise SystemExit("no embedder; `pip install 'clew[local]'`")
    base.embed = clock = Timed(base.embed)
    questions = dataset.questions[: given.limit]
    figures: dict[str, Any] = {}
    heads = "p50 ms", "p95 ms", "cpu ms", "embed ms", "@2", "@5"
    print(f"{'recipe':<12}", *(f"{head:>8}" for head in heads))
    for name in given.recipe.split(","):
        figures[name] = await one(base, clock, name, questions)
        print(f"{name:<12}", *(f"{value:>8}" for value in figures[name].values()))
    counts = await base.store.counts()
    sizes = {"chunks": counts.chunks, "entities": counts.entities, "facts": counts.facts}
    last_line("query", figures, sizes | {"questions": len(questions)})
    await base.close()


async def one(
    base: KnowledgeBase, clock: Timed, recipe: str, questions: Sequence[Question]
) -> dict[str, Any]:
    """Seconds beyond embedding, and recall, of one recipe."""
    for question in questions[:WARM]:
        await base.search(question.text, recipe=recipe)
    seconds, recall = [], []
    spent, busy = clock.seconds, process_time() - clock.cpu
    for question in questions:
        before, began = clock.seconds, perf_counter()
        found = await base.search(question.text, recipe=recipe)
        seconds.append(perf_counter() - began - (clock.seconds - before))
        docs = list(dict.fromkeys(passage.doc for passage in found.evidence.chunks))
        gold = set(question.gold)
        recall.append([len(gold & set(docs[:k])) / max(1, len(gold)) for k in (2, 5)])
    two, five = np.mean(recall, axis=0)
    busy = (process_time() - clock.cpu - busy) / max(1, len(questions))
    embedding = (clock.seconds - spent) / max(1, len(questions))
    return {
        **spread(seconds),
        "cpu_ms": round(busy * 1000, 2),
        "embed_ms": round(embedding * 1000, 2),
        "recall@2": round(float(two), 4),
        "recall@5": round(float(five), 4),
    }


if __name__ == "__main__":
    main()
