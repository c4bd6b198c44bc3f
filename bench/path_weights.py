"""Weights of the path scorer: fitted on one graph, tested on it and on the others.

`python -m bench.path_weights [--limit 200] [--data ../shared/data] [--kbs .bench]
[--also NAME=GRAPH:QUESTIONS …]`

Questions are split by the relations of their right path: a sequence that is fitted on is not
tested. Every question that is fitted on counts a second time with one of its words made unknown,
so that the fit does not rely on every word being understood. A graph named by `--also` is only
tested. Figures are the share of questions whose right relation path is ranked first.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.machine import print_result, require_path
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.evaluate.datasets import Question, load_dataset
from clew.graph.csr import Floats
from clew.retrieve.path_scores import FEATURE_WEIGHTS, FEATURES
from clew.retrieve.question import locate_names, parse_question
from clew.text.unicode import hash64
from clew.tune.examples import PathTrainingQuestion, collect_path_examples
from clew.tune.fit import PathExample, fit_feature_weights

_UNKNOWN_WORD = "zorvik"
_MAX_CANDIDATES = 400  # paths of one question that are fitted on: the right and the best wrong ones


@dataclass(frozen=True)
class GraphQuestions:
    """A graph, and its files of questions by name."""

    name: str
    graph: Path
    questions: dict[str, Path]


@dataclass(frozen=True)
class SplitExamples:
    """The examples of one file: to fit on, the same with an unknown word, and to test on."""

    fit: list[PathExample]
    unknown: list[PathExample]
    test: list[PathExample]


def _list_graphs(data: Path) -> list[GraphQuestions]:
    metaqa, path_question = data / "metaqa", data / "pathquestion"
    hops = {f"metaqa {n}": metaqa / f"{n}hop.dev.jsonl" for n in (1, 2, 3)}
    return [
        GraphQuestions("metaqa", metaqa / "kb.txt", hops),
        GraphQuestions(
            "pathquestion",
            path_question / "kb.tsv",
            {"pathquestion": path_question / "questions.jsonl"},
        ),
    ]


def _hide_word(question: Question) -> Question:
    """Replace one word of the question by one that nothing is known about."""
    shape = parse_question(question.text, locate_names(question.text, question.entities))
    if not shape.words:
        return question
    word = shape.words[hash64(question.text) % len(shape.words)]
    return replace(question, text=question.text.replace(word, _UNKNOWN_WORD, 1))


def _is_fitted(example: PathTrainingQuestion) -> bool:
    """Tell by its right path's relations whether a question is fitted on."""
    row = example.path.codes[int(example.path.is_right.argmax())]
    return bool(hash64(" ".join(map(str, row[row >= 0].tolist()))) % 2)


def _keep_candidates(example: PathExample) -> PathExample:
    order = np.argsort(-np.where(example.is_right, np.inf, example.features @ FEATURE_WEIGHTS))
    keep = order[:_MAX_CANDIDATES]
    return PathExample(
        example.question, example.codes[keep], example.features[keep], example.is_right[keep]
    )


async def _collect(kb: KnowledgeBase, questions: Sequence[Question]) -> SplitExamples:
    async with kb.store.snapshot() as snapshot:
        ctx = await kb.context(snapshot, "fit")
        found = [one async for one in collect_path_examples(ctx, questions, FEATURE_WEIGHTS)]
        asked = [
            _hide_word(question)
            for question, one in zip(questions, found, strict=True)
            if one is not None and _is_fitted(one)
        ]
        hidden = [one async for one in collect_path_examples(ctx, asked, FEATURE_WEIGHTS)]
    known = [one for one in found if one is not None]
    return SplitExamples(
        [_keep_candidates(one.path) for one in known if _is_fitted(one)],
        [_keep_candidates(one.path) for one in hidden if one is not None],
        [one.path for one in known if not _is_fitted(one)],
    )


async def _collect_graph(graph: GraphQuestions, kbs: Path, limit: int) -> dict[str, SplitExamples]:
    folder = kbs / graph.name
    missing = not (folder / "kb.sqlite").exists()
    kb = await KnowledgeBase.open(Settings(kb=folder), create=True)
    if missing:
        await kb.import_graph(graph.graph)
    found = {}
    for name, path in graph.questions.items():
        rows = load_dataset(path).questions
        found[name] = await _collect(kb, rows[:: max(1, len(rows) // limit)][:limit])
        print(
            f"{name}: {len(found[name].fit)} to fit on, {len(found[name].test)} to test", flush=True
        )
    await kb.close()
    return found


def _rank_first(examples: Sequence[PathExample], weights: Floats) -> float:
    hits = [one.is_right[int((one.features @ weights).argmax())] for one in examples]
    return float(np.mean(hits)) if hits else float("nan")


def _print_table(rows: dict[str, dict[str, float]]) -> None:
    names = list(next(iter(rows.values())))
    print(f"{'fitted on':24s}" + "".join(f"{name:>15s}" for name in names))
    for fitted, row in rows.items():
        print(f"{fitted:24s}" + "".join(f"{row[name]:15.3f}" for name in names))


async def _run(args: argparse.Namespace) -> None:
    graphs = _list_graphs(args.data)
    for text in args.also:
        name, _, files = text.partition("=")
        graph, _, questions = files.partition(":")
        graphs.append(GraphQuestions(name, Path(graph), {name: Path(questions)}))
    splits: dict[str, dict[str, SplitExamples]] = {}
    for one in graphs:
        require_path(one.graph, "--data")
        splits[one.name] = await _collect_graph(one, args.kbs, args.limit)
    fitted = {
        "metaqa": ("metaqa",),
        "pathquestion": ("pathquestion",),
        "metaqa + pathquestion": ("metaqa", "pathquestion"),
    }
    rows: dict[str, dict[str, float]] = {}
    weights: dict[str, Floats] = {"as shipped": FEATURE_WEIGHTS}
    for name, sources in fitted.items():
        files = [split for source in sources for split in splits[source].values()]
        weights[name] = fit_feature_weights([one.fit + one.unknown for one in files])
    for name, fit in weights.items():
        rows[name] = {
            file: _rank_first(split.test, fit)
            for files in splits.values()
            for file, split in files.items()
        }
    _print_table(rows)
    best = weights["metaqa + pathquestion"]
    print("weights:", dict(zip(FEATURES, np.round(best, 1).tolist(), strict=True)))
    figures: dict[str, Any] = {"ranked_first": rows, "weights": best.round(2).tolist()}
    print_result("path_weights", figures, {"questions_per_file": args.limit})


def main() -> None:
    """Parse the options and run."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--limit", type=int, default=200)
    options.add_argument("--data", type=Path, default=Path("../shared/data"))
    options.add_argument("--kbs", type=Path, default=Path(".bench"))
    options.add_argument("--also", action="append", default=[])
    asyncio.run(_run(options.parse_args()))


if __name__ == "__main__":
    main()
