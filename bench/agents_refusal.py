"""Refusal: questions whose gold passages were removed, against as many that can be answered.

`python -m bench.agents_refusal --data DIR --kb DIR --recipes clew -n 50` with a model configured.
The knowledge base is copied, and the gold passages of n questions are removed from the copy.
"""

import argparse
import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.agents_table import AgentTable
from bench.machine import print_result
from clew.engine import KnowledgeBase
from clew.evaluate.datasets import Question, load_dataset


def split_questions(questions: Sequence[Question], n: int) -> tuple[list[Question], list[Question]]:
    """Return the last n questions, which lose their gold, and n others that keep theirs."""
    lost = list(questions[-n:])
    removed = {one for question in lost for one in question.gold}
    kept = [q for q in questions[:-n] if q.gold and not removed & set(q.gold)]
    return lost, kept[:n]


async def measure(table: AgentTable, n: int) -> dict[str, Any]:
    """Measure refusals among both kinds, per recipe."""
    lost, kept = split_questions(load_dataset(table.data).questions[: table.limit], n)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "kb"
        shutil.copytree(table.kb, copy)
        settings = replace(table, kb=copy).settings()
        base = await KnowledgeBase.open(settings)
        await base.remove(sorted({one for question in lost for one in question.gold}))
        for name in table.recipes:
            bad = await table.ask_all(base, name, lost)
            good = await table.ask_all(base, name, kept)
            figures[name] = score_refusals(bad, good)
            print(name, figures[name], flush=True)
        await base.close()
    return figures


def score_refusals(bad: Sequence[dict[str, Any]], good: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return precision and recall of refusals, and SubEM of the answerable questions."""
    true = sum(bool(row.get("refused")) for row in bad)
    false = sum(bool(row.get("refused")) for row in good)
    # A question may be answered correctly from a non-gold passage: then no refusal is due.
    right = sum(row["subem-short"] > 0 for row in bad)
    return {
        "recall": round(true / max(1, len(bad)), 3),
        "precision": round(true / max(1, true + false), 3),
        "answered rightly without gold": right,
        "subem-short of the answerable": round(
            sum(r["subem-short"] for r in good) / max(1, len(good)), 3
        ),
        "n": [len(bad), len(good)],
    }


def main() -> None:
    """Parse the options and measure."""
    parser = argparse.ArgumentParser(prog="bench.agents_refusal")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--kb", type=Path, required=True)
    parser.add_argument("--recipes", default="clew")
    parser.add_argument("-n", type=int, default=50)
    parser.add_argument("--limit", type=int, default=250)
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    table = AgentTable(
        *(given.data, given.kb, tuple(given.recipes.split(",")), given.limit),
        concurrency=given.concurrency,
        out=given.out,
    )
    figures = asyncio.run(measure(table, given.n))
    print_result("agents_refusal", figures, {"n": given.n})


if __name__ == "__main__":
    main()
