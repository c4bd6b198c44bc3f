"""Fits the confidence in graph answers, and reports how it tells right from wrong on other graphs.

`python -m bench.path_confidence --fit KB=QUESTIONS ... --report KB=QUESTIONS ... [--limit 60]`

Questions are lines of JSON with `question` and `answers`. A scorer that is nearly always right
shows few wrong answers, so each question also gives one with the right paths taken away: what is
said when the graph does not hold what is asked for. A question with no `answers` is one that the
graph cannot answer: whatever is named is wrong. Printed are the weights for
`src/clew/agents/core/confidence.json` and, for each graph, the share of right answers, the mean
confidence of right and of wrong ones, and the area under the curve, without what was taken away.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench.machine import print_result, read_jsonl, require_path
from clew.agents.core.confidence import LogisticModel, Signals, fit_logistic
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import InputError
from clew.recipes.registry import RECIPES
from clew.retrieve.paths.ranked import measure_fit
from clew.text.names import name_key
from clew.types import Found

RECIPE = "lego-12"


@dataclass(frozen=True)
class Judged:
    """What was measured of an answer, whether it is right, and whether the right one was there."""

    signals: Signals
    right: bool
    whole: bool


async def collect(kb: Path, questions: Path, limit: int) -> list[Judged]:
    """Search every question, with and without the paths that lead to its answers."""
    base = await KnowledgeBase.open(Settings(kb=kb))
    rows = list(read_jsonl(questions))
    found = []
    for row in rows[:: max(1, len(rows) // limit)][:limit]:
        found += await judge(base, row["question"], row["answers"])
    await base.close()
    return found


async def judge(base: KnowledgeBase, question: str, answers: Sequence[str]) -> list[Judged]:
    """Return what is measured of the first path, and of the first that leads elsewhere."""
    async with base.store.snapshot() as now:
        ctx = await base.context(now, question)
        got = Found()
        try:
            for step in RECIPES[RECIPE].steps:
                got = await step(ctx, got)
        except InputError:
            return []  # no name of the graph in it
        ends = [int(ctx.view.keys("entity")[path.entities[-1]]) for path in got.paths]
        named = await ctx.snapshot.entities(ends)
        gold = {name_key(answer) for answer in answers}
        right = [name_key(named[end].name) in gold for end in ends]
        judged = []
        if got.paths:
            judged.append(Judged(await measure_fit(ctx, got), right[0], True))
        wrong = [path for path, good in zip(got.paths, right, strict=True) if not good]
        if wrong and right[0]:
            mass = sum({path.entities[-1]: path.score for path in wrong}.values())
            scaled = [replace(path, score=path.score / max(mass, 1e-9)) for path in wrong]
            less = replace(got, paths=tuple(scaled))
            judged.append(Judged(await measure_fit(ctx, less), False, False))
        return [one for one in judged if one.signals]


def describe(model: LogisticModel, judged: Sequence[Judged]) -> dict[str, float]:
    """Return how the confidence tells right from wrong among what was answered."""
    whole = [one for one in judged if one.whole]
    confidence = np.array([model(one.signals) for one in whole])
    right = np.array([one.right for one in whole], np.bool_)
    pairs = confidence[right][:, None] - confidence[~right][None, :]
    area = float((pairs > 0).mean() + (pairs == 0).mean() / 2) if pairs.size else 1.0
    return {
        "n": len(whole),
        "right": float(right.mean()),
        "confidence when right": float(confidence[right].mean()) if right.any() else 0.0,
        "confidence when wrong": float(confidence[~right].mean()) if (~right).any() else 0.0,
        "right at or above .5": float((confidence[right] >= 0.5).mean()) if right.any() else 0.0,
        "wrong at or above .5": float((confidence[~right] >= 0.5).mean()) if pairs.size else 0.0,
        "area": area,
    }


async def main(given: argparse.Namespace) -> None:
    """Fit on some graphs, report them and the others."""
    sets = {}
    for text in [*given.fit, *given.report]:
        kb, _, questions = text.partition("=")
        require_path(Path(kb), "--fit")
        sets[text] = await collect(Path(kb), Path(questions), given.limit)
    # What was given counts twice: a graph that is asked mostly holds the answer. Every graph counts
    # about the same, however few questions it has.
    most = max(len(sets[text]) for text in given.fit)
    rows = [
        one
        for text in given.fit
        for one in sets[text]
        for _ in range((1 + one.whole) * round(most / max(1, len(sets[text]))))
    ]
    model = fit_logistic([one.signals for one in rows], [one.right for one in rows])
    figures = {Path(t.partition("=")[0]).name: describe(model, found) for t, found in sets.items()}
    print({"bias": model.bias, "weights": model.weights})
    for name, figure in figures.items():
        print(f"{name:20}", {key: round(value, 3) for key, value in figure.items()})
    print_result("path_confidence", figures, {"limit": given.limit})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", nargs="+", required=True)
    parser.add_argument("--report", nargs="*", default=[])
    parser.add_argument("--limit", type=int, default=60)
    asyncio.run(main(parser.parse_args()))
