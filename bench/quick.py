"""Answers without a model: F1 on passage sets, and processor time of an answer.

`python -m bench.quick --data DIR --kbs DIR [--sets hotpotqa100,musique100,2wiki:0:150]`. A set may
name a range of its questions; its knowledge base is built where it is missing. F1 is that of the
answers as given, and `f1 of guesses` that of the best span read, named or not. Told means a
confidence of at least .5, wrong an F1 below .5. `python -m bench.independent` counts what is told
of questions by independent authors.
"""

import argparse
import asyncio
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from bench.machine import print_result, read_jsonl, require_path
from clew.agents.ask import Asking, answer_with
from clew.agents.quick import Quick
from clew.agents.tools import Toolbox
from clew.config import load_settings
from clew.engine import KnowledgeBase
from clew.evaluate.build import build_if_empty
from clew.evaluate.datasets import load_dataset
from clew.evaluate.metrics.answers import f1
from clew.recipes.default import CLEW

TOLD = RIGHT = 0.5


async def ask(kb: KnowledgeBase, row: dict[str, Any]) -> dict[str, Any]:
    """Answer one question as it is answered, and once more whatever its confidence."""
    async with kb.store.snapshot() as snapshot:
        ctx = await kb.context(snapshot, row["question"], "clew")
        used = process_time()
        given = await answer_with(ctx, Asking(Quick(), CLEW))
        used = process_time() - used
        guess = await Quick(least=0.0)(ctx, Toolbox(ctx, CLEW), "open")
    golds = row.get("answers") or [row.get("answer", ""), *row.get("aliases", ())]
    golds = golds if row.get("answerable", True) else []
    return {
        "answerable": bool(golds),
        "f1": f1(given.candidate, golds) if golds else 0.0,
        "guess": f1(guess.candidate, golds) if golds else 0.0,
        "told": bool(given.candidate) and given.confidence >= TOLD,
        "ms": 1000 * used,
    }


async def measure(data: Path, folder: Path, bounds: list[str]) -> dict[str, float]:
    """Ask the questions of a set."""
    settings = load_settings().model_copy(update={"kb": folder})
    kb = await KnowledgeBase.open(settings, create=True)
    try:
        await build_if_empty(kb, load_dataset(data), None)
        first, last = map(int, bounds) if bounds else (0, None)
        questions = read_jsonl(data / "questions.jsonl")[first:last]
        rows = [await ask(kb, row) for row in questions]
    finally:
        await kb.close()
    known = [row for row in rows if row["answerable"]]
    return {
        "f1": 100 * float(np.mean([row["f1"] for row in known])),
        "f1 of guesses": 100 * float(np.mean([row["guess"] for row in known])),
        "right, told": sum(row["told"] and row["f1"] >= RIGHT for row in known),
        "wrong, told": sum(row["told"] and row["f1"] < RIGHT for row in known),
        "unanswerable, told": sum(row["told"] and not row["answerable"] for row in rows),
        "processor ms": float(np.median([row["ms"] for row in rows])),
        "n": len(rows),
    }


def main() -> None:
    """Parse the arguments, and print the figures of each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--kbs", type=Path, required=True)
    parser.add_argument("--sets", default="hotpotqa100,musique100,2wiki:0:150")
    given = parser.parse_args()
    figures = {}
    for spec in given.sets.split(","):
        name, *bounds = spec.split(":")
        data = require_path(given.data / name, "--data")
        figures[spec] = asyncio.run(measure(data, given.kbs / name, bounds))
        print(spec, {key: round(value, 1) for key, value in figures[spec].items()}, flush=True)
    print_result("quick", figures, {"sets": given.sets})


if __name__ == "__main__":
    main()
