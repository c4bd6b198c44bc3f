"""Fits the confidence in graph answers, and reports how it tells right from wrong on other graphs.

`python -m bench.path_confidence --small FOLDER [--fit KB=QUESTIONS ...] [--report KB=QUESTIONS ...]
[--limit 60]`

`--small` takes the graphs of `bench/query_scorer` that its training leaves out, imported into
FOLDER, also those with divided relations, where counts, yes or no, two conditions, comparisons and
extremes are asked for; a sixth of their questions cannot be answered, and whatever is told there is
wrong. As many again ask the same of something that lacks what is asked, though its neighbours may
have it. Further questions are lines of JSON with `question` and `answers`. An answer is right if it
names just the answers of the question, or has the number, yes or no that is asked for. Printed are
the weights for `src/clew/agents/core/confidence.json` and, for each graph, the share of right
answers and how many right and wrong ones are told at .5.
"""

import argparse
import asyncio
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.machine import print_result, read_jsonl, require_path
from bench.query_scorer.asked import (
    DIVIDED_GRAPHS,
    GRAPHS,
    SmallGraph,
    Step,
    is_held,
    read_lines,
    read_path,
)
from bench.query_scorer.divided import (
    Unfounded,
    find_ends,
    list_right,
    order_compared,
    read_meaning,
)
from clew.agents.core.confidence import LogisticModel, Signals, fit_logistic, load_shipped_models
from clew.agents.base import Answer
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import InputError
from clew.retrieve.paths.ranked import UNCLEAR
from clew.text.names import name_key

_MARKS = re.compile(r"(?:\s*\[\d+\])+")
_SIGNALS = ("odds", "margin", "chance", "told", "absent", "unspoken", "compared", "checked")
_BOUNDS = (UNCLEAR, "mismatch", "unsaid")  # what keeps a confidence low by itself
_LEAST_NAMED = 0.5
# A question that names what the graph lacks is not among these; such an answer is below .5.
_NAMED = 3.0
# How much a question without an answer counts: most are made for this, and fewer are asked.
_UNANSWERABLE = 0.6
_ASKED = 7  # questions of each small graph that have an answer, and that lack one
_SMALL = "small graphs"


@dataclass(frozen=True)
class Judged:
    """What was measured of an answer, whether it is right, and whether there is a right one."""

    signals: Signals
    right: bool
    answerable: bool
    bounded: bool = False
    """Whether a rule keeps it below .5, whatever the weights."""


@dataclass(frozen=True)
class Asked:
    """A question and its answers, none if the graph does not hold them."""

    question: str
    answers: Sequence[str] = ()
    short: bool = False
    """Whether the answer is a number, a yes or a no, and what is told beside it does not count."""

    def is_right(self, answer: Answer) -> bool:
        """Whether an answer is right."""
        if self.short:
            return answer.candidate.casefold() == self.answers[0]
        return bool(self.answers) and _is_right(answer.answer, self.answers)


async def collect(kb: Path, questions: Sequence[Asked]) -> list[Judged]:
    """Ask every question, and keep what the confidence is computed from."""
    base = await KnowledgeBase.open(Settings(kb=kb))
    found = []
    for asked in questions:
        try:
            answer = await base.ask(asked.question)
        except InputError:
            continue  # no name of the graph in it
        if answer.kind == "path" and "asked" in answer.signals:
            kept = {name: answer.signals.get(name, 0.0) for name in _SIGNALS}
            held = bool(asked.answers)
            bounded = any(answer.signals.get(name) for name in _BOUNDS)
            bounded |= answer.signals["named"] < _LEAST_NAMED
            found.append(Judged(kept, held and asked.is_right(answer), held, bounded))
    await base.close()
    return found


def _is_right(told: str, answers: Sequence[str]) -> bool:
    """Whether a text names just these answers."""
    left = f" {name_key(_MARKS.sub('', told))} "
    for key in sorted({name_key(one) for one in answers}, key=len, reverse=True):
        if key not in left:
            return False
        left = left.replace(key, "", 1)
    return not re.sub(r"\W|\band\b", "", left)


def write_small(folder: Path) -> Iterator[tuple[Path, list[Asked]]]:
    """Write the held-out small graphs; yield each file with one wording of its questions."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [(line, _list_asked) for line in read_lines(GRAPHS)]
    lines += [(line, _list_divided) for line in read_lines(DIVIDED_GRAPHS)]
    for line, list_questions in lines:
        if not is_held(line["graph"]):
            continue
        file = folder / f"{line['graph'].replace(' ', '_')}.tsv"
        rows = ["\t".join(map(str, triple)) for triple in line["triples"]]
        file.write_text("\n".join(rows) + "\n", encoding="utf-8")
        yield file, list_questions(line, random.Random(7))


def _list_asked(line: dict[str, Any], rng: random.Random) -> list[Asked]:
    """Return questions with an answer, without one, and about something that lacks it."""
    graph, held, none, moved = SmallGraph.read(line), list[Asked](), list[Asked](), list[Asked]()
    for number, ask in enumerate(line["asks"]):
        path, topic = read_path(ask), str(ask["topic"])
        question = ask["q"][number % len(ask["q"])]
        routes = graph.follow(topic, path) if path else []
        if path is None:
            none.append(Asked(question))
        elif routes:
            held.append(Asked(question, [route[-1] for route in routes]))
            lacking = [name for name in _list_lacking(graph, topic, path) if name not in question]
            if lacking and topic in question:
                moved.append(Asked(question.replace(topic, rng.choice(lacking))))
    rng.shuffle(held)
    rng.shuffle(moved)
    return [*held[:_ASKED], *none, *moved[:_ASKED]]


def _list_divided(line: dict[str, Any], rng: random.Random) -> list[Asked]:
    """Return the questions over divided relations, and as many about what lacks a path."""
    graph, found, moved = SmallGraph.read(line), list[Asked](), list[Asked]()
    for number, ask in enumerate(line["asks"]):
        question = ask["q"][number % len(ask["q"])]
        try:
            asked = _read_divided(graph, ask, question)
        except Unfounded:
            continue
        found.append(asked)
        topic = str(ask.get("topic", ""))
        if _is_path(ask) and asked.answers and topic in question:
            names = (name for name in graph.steps if name not in question)
            lacking = [name for name in names if _lacks(graph, ask, name)]
            if lacking:
                moved.append(Asked(question.replace(topic, rng.choice(lacking))))
    rng.shuffle(moved)
    return [*found, *moved[:_ASKED]]


def _read_divided(graph: SmallGraph, ask: dict[str, Any], question: str) -> Asked:
    """Return a question over divided relations with its answers."""
    ask = order_compared(ask, question) if "compare" in ask else ask
    meaning, get = read_meaning(graph, ask), ask.get("get", "")
    if meaning is None:
        return Asked(question)
    if "compare" in ask or "extreme" in ask:
        told = meaning.said[0].rpartition(" = ")[2]
        return Asked(question, [told], get.startswith("check"))
    try:
        ends = {
            end for path in list_right(graph, ask) for end in find_ends(graph, ask["topic"], path)
        }
    except Unfounded:
        ends = set()
    if get == "check":
        return Asked(question, ["yes" if str(ask["is"]) in ends else "no"], short=True)
    if get == "count":
        return Asked(question, [str(len(ends))], short=True)
    if "and" in ask:
        return Asked(question, sorted(next(iter(meaning.answers))))
    return Asked(question, sorted(ends))


def _is_path(ask: dict[str, Any]) -> bool:
    """Whether a question asks for the ends of one path and nothing more."""
    return "topic" in ask and ask.keys().isdisjoint(("and", "compare", "extreme", "get"))


def _lacks(graph: SmallGraph, ask: dict[str, Any], name: str) -> bool:
    """Whether something has a relation of the topic's, several in all, and not what is asked."""
    steps, own = graph.steps[name].keys(), graph.steps[str(ask["topic"])].keys()
    if len(steps) <= 1 or not steps & own:
        return False
    try:
        return not list_right(graph, {**ask, "topic": name})
    except Unfounded:
        return True


def _list_lacking(graph: SmallGraph, topic: str, path: Sequence[Step]) -> list[str]:
    """Return what has a relation of the topic's, several in all, and does not have the path."""
    own = graph.steps[topic].keys()
    return [
        name
        for name, steps in graph.steps.items()
        if len(steps) > 1 and steps.keys() & own and not graph.follow(name, path)
    ]


def has_base(kb: Path) -> bool:
    """Whether a graph was imported before."""
    return (kb / "kb.sqlite").exists()


def read_questions(file: Path, limit: int) -> list[Asked]:
    """Return some of the questions of a file, evenly spread."""
    rows = list(read_jsonl(file))
    return [Asked(r["question"], r["answers"]) for r in rows[:: max(1, len(rows) // limit)][:limit]]


def describe(model: LogisticModel, judged: Sequence[Judged]) -> dict[str, float]:
    """Return how the confidence tells right from wrong among what was answered."""
    told = np.array([model(one.signals) >= 0.5 and not one.bounded for one in judged])
    right = np.array([one.right for one in judged], np.bool_)
    held = np.array([one.answerable for one in judged], np.bool_)
    return {
        "n": len(judged),
        "right told": int((right & told).sum()),
        "right below": int((right & ~told).sum()),
        "wrong told": int((~right & held & told).sum()),
        "wrong below": int((~right & held & ~told).sum()),
        "unanswerable told": int((~held & told).sum()),
        "unanswerable below": int((~held & ~told).sum()),
    }


def fit(judged: Sequence[Judged]) -> LogisticModel:
    """Fit the weights of the signals, pulled towards those of the package."""
    shipped = load_shipped_models()["asked path"]
    weights = {name: shipped.weights.get(name, 0.0) for name in _SIGNALS}
    prior = LogisticModel(weights, shipped.bias + _NAMED)
    judged = [one for one in judged if not one.bounded]
    counts = [1.0 if one.answerable else _UNANSWERABLE for one in judged]
    rows, right = [one.signals for one in judged], [one.right for one in judged]
    return fit_logistic(rows, right, prior, counts=counts)


def cross_validate(sets: dict[str, list[Judged]]) -> dict[str, dict[str, float]]:
    """Return how each set fares with the weights that the others give."""
    found = {}
    for name, own in sets.items():
        rows = [one for other, some in sets.items() if other != name for one in some]
        model = fit(rows)
        found[name] = describe(model, own)
    return found


async def main(given: argparse.Namespace) -> None:
    """Fit on some graphs, report them and the others."""
    sets: dict[str, list[Judged]] = {}
    for file, asks in write_small(given.small):
        kb = file.with_suffix("")
        if not has_base(kb):
            base = await KnowledgeBase.open(Settings(kb=kb), create=True)
            await base.import_graph(file)
            await base.close()
        sets[f"{_SMALL} {kb.name}"] = await collect(kb, asks)
    for text in [*given.fit, *given.report]:
        folder, _, questions = text.partition("=")
        require_path(Path(folder), "--fit")
        sets[text] = await collect(Path(folder), read_questions(Path(questions), given.limit))
    fitted = {name: own for name, own in sets.items() if name not in given.report}
    rows = [one for own in fitted.values() for one in own]
    model = fit(rows)
    figures = {"others' weights": _add_up(cross_validate(fitted))}
    figures |= {name: describe(model, own) for name, own in sets.items() if _SMALL not in name}
    weights = {**model.weights, "named": _NAMED}
    print({"bias": round(model.bias - _NAMED, 4), "weights": weights})
    for name, figure in figures.items():
        print(f"{Path(name.partition('=')[0]).name:20}", figure)
    print_result("path_confidence", figures, {"limit": given.limit})


def _add_up(figures: dict[str, dict[str, float]]) -> dict[str, float]:
    names = next(iter(figures.values()))
    return {name: sum(one[name] for one in figures.values()) for name in names}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=Path, required=True)
    parser.add_argument("--fit", nargs="*", default=[])
    parser.add_argument("--report", nargs="*", default=[])
    parser.add_argument("--limit", type=int, default=60)
    asyncio.run(main(parser.parse_args()))
