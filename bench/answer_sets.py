"""Answers on every set side by side, as asked and reworded: F1, precision in `reject`, calibration.

`python -m bench.answer_sets --data DIR --kbs DIR [--sets hotpotqa100,2wiki:0:150] [--recipe clew]
[--wordings plain,lower,polite,hand,stranger]`. A set may name a range of its questions. Wordings
are general transformations; `hand` and `fresh`: the questions of `bench/rewordings.jsonl`, put in
other words for the same ids (`fresh`: those that nothing was built with); or `stranger`: the names
replaced by invented ones, so that no answer exists; or `sibling`: the one name replaced by another
that the same page mentions, so that most have none; or `hidden`: the passages that have the answer
are not shown.

Reported are F1 and SubEM of the named answer in open mode, precision and coverage at the threshold,
the expected calibration error and what it would be by chance, with these confidences and so few
questions, if every confidence were exactly right; and the milliseconds of a question: by the clock,
and of the processor where one is asked at a time. By default the questions whose misses were read
while the agents were built are reported apart from the rest, which nobody looked at.
"""

import argparse
import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from clew.agents.core.confidence import measure_calibration_error, risk_coverage
from clew.agents.core.scratchpad import Notebook, RecordingRetriever
from clew.agents.judge import judged_kind
from clew.agents.rules.question_analysis import find_question_name_spans

from bench.hidden import hide_answers
from bench.machine import print_result, read_jsonl, require_path
from clew.config import load_settings
from clew.engine import KnowledgeBase
from clew.evaluate.build import build_if_empty
from clew.evaluate.datasets import load_dataset
from clew.evaluate.metrics.answers import f1, sub_exact_match
from clew.index.view import View
from clew.recipes.registry import resolve_recipe

REWORDINGS = Path(__file__).with_name("rewordings.jsonl")
LOOKED_AT = "hotpotqa100:0:40,musique100:0:40,2wiki:0:50"
UNSEEN = "hotpotqa100:40:100,musique100:40:100,2wiki:50:150"
RIGHT = 0.5  # F1 from which an answer counts as right
PASSAGES = 8  # in which a sibling of what a question names is looked for
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
STRANGERS = (
    "Gundula Pfefferkorn",
    "Orrin Vask",
    "Thessaly Quade",
    "Milo Brandtner",
    "Ysolde Krain",
)
WORDINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "stranger": lambda text: text,
    "hidden": lambda text: text,
    "sibling": lambda text: text,
    "lower": str.lower,
    "no mark": lambda text: text.rstrip("?. "),
    "polite": lambda text: f"Could you please tell me: {text}",
    "thanks": lambda text: f"Hi! {text} Thank you!",
    "swap": lambda text: swap_options(text),
}


def swap_options(text: str) -> str:
    """Exchange the two things around the last "or", where that is what a question ends with."""
    found = re.search(r"[,:]\s*([^,:]+?)\s+or\s+([^,:?]+?)\s*\?*$", text)
    return text if found is None else f"{text[: found.start(1)]}{found[2]} or {found[1]}?"


@dataclass(frozen=True)
class Asked:
    """One question with its golds; none where it has no answer in the corpus."""

    id: str
    text: str
    golds: tuple[str, ...]


def read_questions(folder: Path, first: int, last: int | None, wording: str) -> list[Asked]:
    """Read the questions of a set in one wording."""
    rows = read_jsonl(folder / "questions.jsonl")[first:last]
    by_hand = {
        row["id"]: row["question"]
        for row in read_jsonl(REWORDINGS)
        if row["set"] == folder.name and row.get("part", "hand") == wording
    }
    found = []
    for row in rows:
        golds = row.get("answers") or [row.get("answer", ""), *row.get("aliases", ())]
        golds = tuple(golds) if row.get("answerable", True) else ()
        known = wording in WORDINGS
        text = WORDINGS[wording](row["question"]) if known else by_hand.get(row["id"])
        if text and (wording != "swap" or text != row["question"]):
            found.append(Asked(str(row["id"]), text, golds))
    return found


async def replace_names(kb: KnowledgeBase, asked: list[Asked]) -> list[Asked]:
    """Return the questions that name something, asked about names that nobody has."""
    async with kb.store.snapshot() as snapshot:
        view = (await kb.context(snapshot, "x")).view
    made = []
    for number, one in enumerate(asked):
        text, spans = one.text, find_question_name_spans(view, one.text)
        for at, (start, end) in reversed(list(enumerate(spans))):
            text = text[:start] + STRANGERS[(number + at) % len(STRANGERS)] + text[end:]
        if spans:
            made.append(Asked(f"{one.id}-stranger", text, ()))
    return made


async def ask_of_siblings(kb: KnowledgeBase, asked: list[Asked]) -> list[Asked]:
    """Return the questions about one name, asked about another name of the page that answers."""
    made = []
    async with kb.store.snapshot() as snapshot:
        for one in asked:
            ctx = await kb.context(snapshot, one.text, "clew")
            spans = find_question_name_spans(ctx.view, one.text)
            if len(spans) != 1:
                continue
            retrieve = resolve_recipe("clew", kb.recipes).retrieve
            retriever = RecordingRetriever(retrieve, Notebook(), PASSAGES)
            passages = (await retriever(ctx, one.text)).evidence.chunks
            home = next((p for p in passages if any(g in p.text for g in one.golds)), None)
            other = _find_sibling(ctx.view, one, home.text) if home else ""
            if other:
                text = one.text[: spans[0][0]] + other + one.text[spans[0][1] :]
                made.append(Asked(f"{one.id}-sibling", text, ()))
    return made


def _find_sibling(view: View, one: Asked, text: str) -> str:
    """Return the last name of a page that neither the question nor an answer has."""
    told = " ".join((one.text, *one.golds))
    names = [text[start:end] for start, end in find_question_name_spans(view, text)]
    others = (name for name in reversed(names) if not any(w in told for w in name.split()))
    return next((name for name in others if not name[:1].isdigit()), "")


async def open_set(given: argparse.Namespace, name: str) -> KnowledgeBase:
    """Open the knowledge base of a set, built if it is empty."""
    settings = load_settings().model_copy(update={"kb": given.kbs / name})
    kb = await KnowledgeBase.open(settings, create=True)
    await build_if_empty(kb, load_dataset(given.data / name), None)
    return kb


async def ask_all(
    kb: KnowledgeBase,
    asked: list[Asked],
    given: argparse.Namespace,
    keep: Callable[[dict[str, Any]], None],
    *,
    hidden: bool = False,
) -> list[dict[str, Any]]:
    """Ask every question in open mode, and keep each answer at once; `hidden` hides the golds."""
    slots = asyncio.Semaphore(given.at_once)

    async def ask(one: Asked) -> dict[str, Any]:
        async with slots:
            began, used = perf_counter(), process_time()
            recipe = hide_answers(one.golds) if hidden else given.recipe
            answer = await kb.ask(one.text, recipe=recipe)
        short = answer.candidate
        score = f1(short, one.golds) if one.golds else float(not short)
        row = {
            "id": one.id,
            "question": one.text,
            "golds": one.golds,
            "short": short,
            "f1": score,
            "subem": sub_exact_match(short, one.golds) if one.golds else score,
            "right": bool(one.golds) and f1(short, one.golds) >= RIGHT,
            "confidence": answer.confidence,
            "signals": dict(answer.signals),
            "kind": judged_kind(answer, by_model=kb.models.has("answer")),
            "ms": 1000 * (perf_counter() - began),
            "cpu ms": 1000 * (process_time() - used),
            "calls": answer.usage.calls,
        }
        keep(row)
        return row

    return list(await asyncio.gather(*map(ask, asked)))


def append_row(file: Path | None, spec: str, wording: str, row: dict[str, Any]) -> None:
    """Append an answer to the file of rows, if there is one."""
    if file is not None:
        with file.open("a", encoding="utf-8") as opened:
            opened.write(json.dumps({"set": spec, "wording": wording, **row}) + "\n")


def measure_chance_error(confidences: list[float], draws: int = 500) -> float:
    """Return the mean calibration error if each answer were right with its own confidence.

    Of few questions it is far from 0: a set of 60 has about 0.12.
    """
    rng, chances = np.random.default_rng(0), np.array(confidences)
    drawn = [rng.random(len(chances)) < chances for _ in range(draws)]
    return float(np.mean([measure_calibration_error(confidences, one.tolist()) for one in drawn]))


def summarise(rows: list[dict[str, Any]], threshold: float) -> dict[str, float]:
    """Return the figures of one set in one wording."""
    confidences = [row["confidence"] for row in rows]
    right = [row["right"] for row in rows]
    kept = [row["right"] for row in rows if row["confidence"] >= threshold]
    answerable = [row for row in rows if row["golds"]]
    overall = [
        (row["f1"] if row["golds"] else 0.0)
        if row["confidence"] >= threshold
        else float(not row["golds"])
        for row in rows
    ]
    figures = {
        "f1": 100 * float(np.mean([row["f1"] for row in answerable])) if answerable else 0.0,
        "subem": 100 * float(np.mean([row["subem"] for row in answerable])) if answerable else 0.0,
        "precision": float(np.mean(kept)) if kept else 0.0,
        "coverage": len(kept) / max(1, len(rows)),
        "ece": measure_calibration_error(confidences, right),
        "ece by chance": measure_chance_error(confidences),
        "overall": 100 * float(np.mean(overall)),
        "ms": float(np.median([row["ms"] for row in rows])),
        "cpu ms": float(np.median([row["cpu ms"] for row in rows])),
        "n": len(rows),
    }
    curve = risk_coverage(confidences, right, SHARES)
    figures |= {f"precision@{share}": value for share, value in zip(SHARES, curve, strict=True)}
    return {name: round(value, 3) for name, value in figures.items()}


async def measure_set(given: argparse.Namespace, spec: str) -> dict[str, dict[str, float]]:
    """Measure one set in all wordings."""
    name, *bounds = spec.split(":")
    first, last = (int(bounds[0]), int(bounds[1])) if bounds else (0, None)
    kb = await open_set(given, name)
    figures = {}
    try:
        for wording in given.wordings.split(","):
            asked = read_questions(given.data / name, first, last, wording)
            if wording == "stranger":
                asked = await replace_names(kb, asked)
            if wording == "sibling":
                asked = await ask_of_siblings(kb, asked)
            if not asked:
                continue
            keep = partial(append_row, given.rows, spec, wording)
            rows = await ask_all(kb, asked, given, keep, hidden=wording == "hidden")
            figures[wording] = summarise(rows, given.threshold)
            print(f"{spec:24} {wording:8} {format_row(figures[wording])}", flush=True)
    finally:
        await kb.close()
    return figures


def format_row(figures: dict[str, float]) -> str:
    """Format one line of the table."""
    return (
        f"n {figures['n']:4.0f}  F1 {figures['f1']:5.1f}  SubEM {figures['subem']:5.1f}  "
        f"reject {figures['precision']:.2f} at {figures['coverage']:.2f}  ECE {figures['ece']:.3f} "
        f"({figures['ece by chance']:.3f} by chance) overall {figures['overall']:5.1f}  "
        f"{figures['ms']:4.0f} ms, processor {figures['cpu ms']:4.0f}"
    )


async def main() -> None:
    """Parse the arguments, measure every set and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--kbs", type=Path, required=True)
    parser.add_argument("--sets", default=f"{UNSEEN},{LOOKED_AT}")
    parser.add_argument("--recipe", default=None)
    parser.add_argument("--wordings", default="plain", help=f"{', '.join(WORDINGS)}, hand, fresh")
    parser.add_argument("--threshold", type=float, default=0.5)
    parser.add_argument("--at-once", type=int, default=1, help="questions asked at once")
    parser.add_argument("--rows", type=Path, help="append every answer to this file")
    given = parser.parse_args()
    require_path(given.data, "--data")
    figures = {spec: await measure_set(given, spec) for spec in given.sets.split(",")}
    print_result("answer_sets", figures, {"recipe": given.recipe or "clew"})


if __name__ == "__main__":
    asyncio.run(main())
