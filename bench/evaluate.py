"""Overhead of the evaluation harness, and time of the bootstrap.

`python -m bench.evaluate [--data DIR] [--kb DIR]`. With a dataset and a knowledge base the default
recipe is also run over all questions, retrieval only, and its wall time reported.
"""

import argparse
import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from bench.machine import print_result
from clew.agents.base import Results
from clew.config import Settings
from clew.context import TraceStep
from clew.engine import KnowledgeBase
from clew.evaluate.compare import compare
from clew.evaluate.datasets import Question, load_dataset
from clew.evaluate.record import Record
from clew.evaluate.runner import RecipeRunner
from clew.evaluate.summary import RecipeReport
from clew.store.memory import MemoryStore
from clew.types import Evidence, Passage

METRICS = ["recall@2", "recall@5", "recall@10", "recall@20", "mrr", "ndcg@10"]


@dataclass
class InstantKnowledgeBase(KnowledgeBase):
    """A knowledge base with instant search: the time left is the harness's."""

    async def search(self, question: str, **how: Any) -> Results:  # type: ignore[override]
        """Return twenty passages of 400 characters and a trace of four steps."""
        passages = tuple(
            Passage(f"c{n}", f"d{n}", "A title", 1 / (n + 1), "words " * 66, 0, 396)
            for n in range(20)
        )
        trace = tuple(TraceStep(f"Step(n={n})", "chunks=0", "chunks=20", 0.001) for n in range(4))
        return Results(question, "clew", Evidence(chunks=passages), trace, 0.0)


async def measure_overhead(questions: int, folder: Path) -> float:
    """Return seconds per question beyond the recipe: records and metrics."""
    base = InstantKnowledgeBase(MemoryStore(), Settings(kb=folder), None)
    asked = [Question(f"q{n}", f"Question {n}?", ("x",), ("d3", "d7")) for n in range(questions)]
    began = perf_counter()
    report = await RecipeRunner(base, METRICS, folder=folder / "runs").run_recipe("clew", asked)
    total = perf_counter() - began
    return (total - sum(record.seconds for record in report.records)) / questions


def time_bootstrap(recipes: int, questions: int) -> float:
    """Return the seconds to compute intervals and p-values of all metrics and recipes."""
    rng = np.random.default_rng(0)
    reports = []
    for recipe in range(recipes):
        values = rng.random((questions, len(METRICS)))
        records = tuple(
            Record(f"r{recipe}", str(n), dict(zip(METRICS, row, strict=True)))
            for n, row in enumerate(values.tolist())
        )
        reports.append(RecipeReport(f"r{recipe}", records))
    began = perf_counter()
    compare(reports)
    return perf_counter() - began


async def time_dataset(data: Path, kb: Path) -> dict[str, float]:
    """Time all questions of a dataset with the default recipe."""
    dataset = load_dataset(data)
    base = await KnowledgeBase.open(Settings(kb=kb))
    try:
        began = perf_counter()
        report = await RecipeRunner(base, METRICS).run_recipe("clew", dataset.questions)
        seconds = perf_counter() - began
    finally:
        await base.close()
    summary = report.summary()
    kept = {name: summary[name] for name in ("recall@2", "recall@5", "seconds_p50", "seconds_p95")}
    return {"questions": len(dataset.questions), "seconds": round(seconds, 2), **kept}


def main() -> None:
    """Measure and print a table, then the JSON result."""
    parser = argparse.ArgumentParser(prog="python -m bench.evaluate", description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--kb", type=Path)
    given = parser.parse_args()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        per_question = min(asyncio.run(measure_overhead(1000, Path(folder))) for _ in range(3))
    figures["overhead_ms_per_question"] = round(1000 * per_question, 3)
    figures["bootstrap_10x1000_s"] = round(min(time_bootstrap(10, 1000) for _ in range(3)), 3)
    print(f"harness beyond the recipe: {figures['overhead_ms_per_question']} ms per question")
    print(f"bootstrap, 10 recipes × 1,000 questions × {len(METRICS)} metrics: ", end="")
    print(f"{figures['bootstrap_10x1000_s']} s")
    if given.data and given.kb:
        figures["whole"] = asyncio.run(time_dataset(given.data, given.kb))
        print(f"whole data set: {figures['whole']}")
    print_result("evaluate", figures, {"questions": 1000, "recipes": 10, "metrics": len(METRICS)})


if __name__ == "__main__":
    main()
