"""Fits the confidence that ships, and reports how well it is calibrated.

`python -m bench.confidence fit --data DIR --kbs DIR --sets 2wiki:150:400,squad2:0:900 --out FILE`
asks training questions: first every candidate is labelled right or wrong and the ranking fitted,
then the answers themselves. Questions about invented names are added: they have no answer.
`python -m bench.confidence report --rows FILE` prints risk-coverage and the expected calibration
error by set, from the rows of `bench.answer_sets --rows FILE`; `fit-written` fits the confidence of
answers that a model wrote to such rows.
"""

import argparse
import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.answer_sets import RIGHT, SHARES, WORDINGS, Asked, read_questions
from bench.machine import require_path
from clew.agents.core import confidence
from clew.agents.core.confidence import (
    LogisticModel,
    fit_logistic,
    format_models,
    load_shipped_models,
    measure_calibration_error,
    risk_coverage,
)
from clew.agents.core.scratchpad import Notebook, RecordingRetriever
from clew.agents.reading.answer import QuestionReader
from clew.agents.rules.question_analysis import find_name_spans
from clew.config import Settings
from clew.context import PassageReader
from clew.engine import KnowledgeBase
from clew.evaluate.datasets import load_dataset
from clew.evaluate.measure import build_if_empty
from clew.evaluate.metrics.answers import f1
from clew.reader.span_reader import ReadSpan
from clew.recipes.registry import resolve_recipe
from clew.retrieve.question import tidy_question

STRANGERS = (
    "Gundula Pfefferkorn",
    "Orrin Vask",
    "Thessaly Quade",
    "Milo Brandtner",
    "Ysolde Krain",
)
STRANGER_SHARE = 0.12  # of the questions are asked again about somebody invented
REWORDED_SHARE = 0.3  # of the questions are put in another wording


@dataclass
class RememberingReader:
    """Reads every question in every passage once, since both passes read the same."""

    inner: PassageReader
    known: dict[Any, list[ReadSpan]] = field(default_factory=dict)

    def read(self, question: str, passages: Sequence[str], **how: Any) -> list[ReadSpan]:
        """Read each passage alone."""
        titles = how.pop("titles", None) or [""] * len(passages)
        found = []
        for number, (text, title) in enumerate(zip(passages, titles, strict=True)):
            key = question, title, text
            if key not in self.known:
                self.known[key] = self.inner.read(question, [text], titles=[title], most=3)
            found += [replace(span, passage=number) for span in self.known[key]]
        return sorted(found, key=lambda span: -span.score)[: how.get("most", 5)]

    def read_together(self, question: str, passages: Sequence[str], **how: Any) -> list[ReadSpan]:
        """Read the passages in one window."""
        key = question, *passages
        if key not in self.known:
            self.known[key] = self.inner.read_together(question, passages, **how)
        return self.known[key]


def sample_questions(folder: Path, first: int, last: int, most: int) -> list[Asked]:
    """Draw training questions of a set, some of them in another wording."""
    rng = random.Random(1)
    asked = read_questions(folder, first, last, "plain")
    asked = rng.sample(asked, min(most, len(asked)))
    ways = [way for way in WORDINGS if way not in ("plain", "swap")]
    return [
        replace(one, text=WORDINGS[rng.choice(ways)](one.text))
        if rng.random() < REWORDED_SHARE
        else one
        for one in asked
    ]


async def add_strangers(kb: KnowledgeBase, asked: Sequence[Asked]) -> list[Asked]:
    """Ask some questions again about names that nobody has."""
    rng = random.Random(2)
    async with kb.store.snapshot() as snapshot:
        view = (await kb.context(snapshot, "x")).view
    made = []
    for one in asked:
        spans = find_name_spans(view, one.text)
        if spans and rng.random() < STRANGER_SHARE:
            text = one.text
            for start, end in reversed(spans):
                text = text[:start] + rng.choice(STRANGERS) + text[end:]
            made.append(Asked(f"{one.id}-stranger", text, ()))
    return [*asked, *made]


async def label_candidates(
    kb: KnowledgeBase, asked: Sequence[Asked], rank: LogisticModel
) -> list[tuple[dict[str, float], bool]]:
    """Return what speaks for every candidate, and whether it is right."""
    rows = []
    retrieve = resolve_recipe("clew", kb.recipes).retrieve
    for one in asked:
        async with kb.store.snapshot() as snapshot:
            text = tidy_question(one.text)
            ctx = await kb.context(snapshot, text, retrieve.name)
            reader = QuestionReader(RecordingRetriever(retrieve, Notebook(), 8), rank)
            for ranked in await reader(ctx, text):
                right = bool(one.golds) and f1(ranked.candidate.text, one.golds) >= RIGHT
                rows.append((ranked.signals, right))
    return rows


async def fit(given: argparse.Namespace) -> None:
    """Fit the ranking, then the answers, and write both."""
    models = dict(load_shipped_models())
    candidates, judged = list[Any](), defaultdict[str, list[Any]](list)
    opened = []
    for spec in given.sets.split(","):
        name, first, last = spec.split(":")
        kb = await KnowledgeBase.open(Settings(kb=given.kbs / name), create=True)
        await build_if_empty(kb, load_dataset(given.data / name), None)
        assert kb.reader is not None
        kb.reader = RememberingReader(kb.reader)
        asked = sample_questions(given.data / name, int(first), int(last), given.most)
        asked = await add_strangers(kb, asked)
        opened.append((spec, kb, asked))
        if not given.keep_rank:
            candidates += await label_candidates(kb, asked, models["rank"])
        print(f"{spec}: {len(asked)} questions, {len(candidates)} candidates so far", flush=True)
    if candidates:
        rows, right = [row for row, _ in candidates], [right for _, right in candidates]
        models["rank"] = fit_logistic(rows, right, models["rank"], 3.0)
    install(models)
    for spec, kb, asked in opened:
        for one in asked:
            answer = await kb.ask(one.text)
            right = bool(one.golds) and f1(answer.candidate, one.golds) >= RIGHT
            kind = "answer" if answer.candidate else "quote"
            judged[kind].append((dict(answer.signals), right, answer.confidence))
        await kb.close()
        print(f"{spec}: answered", flush=True)
    models["answer"] = fit_answers(judged["answer"], models["answer"])
    given.out.write_text(format_models(models) + "\n", encoding="utf-8")
    print(format_models({name: models[name] for name in ("rank", "answer")}))


def fit_answers(rows: Sequence[Any], prior: LogisticModel) -> LogisticModel:
    """Fit the confidence of short answers, and print how it does on held-out halves."""
    signals, right = [row[0] for row in rows], [row[1] for row in rows]
    half = list(range(0, len(rows), 2))
    rest = list(range(1, len(rows), 2))
    model = fit_logistic([signals[i] for i in half], [right[i] for i in half], prior)
    held = [model(signals[i]) for i in rest]
    error = measure_calibration_error(held, [right[i] for i in rest])
    print(f"{len(rows)} answers, {sum(right)} right; held-out calibration error {error:.3f}")
    return fit_logistic(signals, right, prior)


def fit_written(given: argparse.Namespace) -> None:
    """Fit the confidence of answers that a model wrote, from rows of `bench.answer_sets`."""
    models = dict(load_shipped_models())
    rows = [json.loads(line) for line in given.rows.read_text(encoding="utf-8").splitlines()]
    rows = [(row["signals"], row["right"], row["confidence"]) for row in rows if row["signals"]]
    models["written"] = fit_answers(rows, models["written"])
    given.out.write_text(format_models(models) + "\n", encoding="utf-8")


def install(models: dict[str, LogisticModel]) -> None:
    """Use these models for the questions that follow."""
    confidence.load_shipped_models = lambda: models


def report(given: argparse.Namespace) -> None:
    """Print a table of precision at growing coverage, and the calibration error, by set."""
    rows = defaultdict(list)
    for line in given.rows.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        rows[f"{row['set']}, {row['wording']}"].append(row)
    heads = " | ".join(f"best {share:.0%}" for share in SHARES)
    print(f"| set | n | ECE | {heads} |")
    print("|" + "---|" * (3 + len(SHARES)))
    for name, some in rows.items():
        values, right = [r["confidence"] for r in some], [r["right"] for r in some]
        curve = " | ".join(f"{value:.2f}" for value in risk_coverage(values, right, SHARES))
        error = measure_calibration_error(values, right)
        print(f"| {name} | {len(some)} | {error:.3f} | {curve} |")


def main() -> None:
    """Parse the arguments and fit or report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("fit", "fit-written", "report"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--kbs", type=Path)
    parser.add_argument("--sets", default="2wiki:150:400,squad2:0:3000")
    parser.add_argument("--most", type=int, default=250, help="questions of each set")
    parser.add_argument("--keep-rank", action="store_true", help="fit the answers only")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rows", type=Path)
    given = parser.parse_args()
    if given.what != "fit":
        require_path(given.rows, "--rows")
        (report if given.what == "report" else fit_written)(given)
    else:
        require_path(given.data, "--data")
        asyncio.run(fit(given))


if __name__ == "__main__":
    main()
