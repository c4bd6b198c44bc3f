"""LEGO-GraphRAG instances on MetaQA without a model: quality, subgraphs, and milliseconds.

`python -m bench.paths [--limit 100] [--questions ../shared/data/metaqa] [--kb DIR] [--tuned]
[--only NAME,NAME]`

`--limit` is the number of questions of each of the three files, evenly spread. Times are CPU time
of the steps alone (independent of other load): the question's words are embedded before timing
starts. `--tuned` trains on every second question in a copy of the knowledge base and tests on the
others.
"""

import argparse
import asyncio
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from bench.machine import print_result, require_path
from clew.config import Settings
from clew.context import Context
from clew.engine import KnowledgeBase
from clew.errors import InputError
from clew.evaluate.datasets import Question, load_dataset
from clew.graph.csr import build_csr
from clew.graph.paths import shortest_paths
from clew.graph.traverse import FactGraph, extend_relation_paths, start_relation_paths
from clew.recipes.registry import RECIPES
from clew.retrieve.labels import embed_cached
from clew.retrieve.linking.link_entities import LinkEntities
from clew.retrieve.paths.beam import BeamPaths
from clew.retrieve.paths.ranked import RankAnswers, RankedPaths, StructuralPaths
from clew.retrieve.question import locate_names, remove_names
from clew.retrieve.step import Step
from clew.retrieve.subgraph.extract import (
    AdaptiveSubgraph,
    EgoSubgraph,
    PprSubgraph,
    WalkedSubgraph,
)
from clew.text.names import name_key, tokenize_question
from clew.tune.run import tune
from clew.types import Found

HOPS = (1, 2, 3)
_PATHS = (RankedPaths(), RankAnswers())
_PPR = PprSubgraph()
CHAINS: dict[str, tuple[Step, ...]] = {
    **{name: RECIPES[name].steps for name in ("lego-1", "lego-2", "lego-6", "lego-10")},
    **{name: RECIPES[name].steps for name in ("lego-12", "lego-14")},
    "lego-12, 4 hops": (LinkEntities(), _PPR, RankedPaths(max_hop=4), RankAnswers()),
    "lego-14 triple": (LinkEntities(), _PPR, BeamPaths(scoring="triple"), RankAnswers()),
    "lego-14 dynamic": (LinkEntities(), _PPR, BeamPaths(pruning="dynamic"), RankAnswers()),
    "simple paths": (
        *(LinkEntities(), _PPR, StructuralPaths("simple", max_hop=3)),
        RankAnswers(),
    ),
    "exact ppr": (LinkEntities(), PprSubgraph(exact=True), *_PATHS),
    "ego 2": (LinkEntities(), EgoSubgraph(hops=2), *_PATHS),
    "random walk": (LinkEntities(), WalkedSubgraph(), *_PATHS),
    "adaptive": (LinkEntities(), AdaptiveSubgraph(), *_PATHS),
    "whole graph": (LinkEntities(), *_PATHS),
}
_EXTRACT_SUFFIXES = ("Subgraph", "Prune")
_FIND_SUFFIXES = ("Paths",)


@dataclass
class ChainScores:
    """Scores and times of one chain on one file."""

    hits: list[bool] = field(default_factory=list)
    linked: list[bool] = field(default_factory=list)
    recall: list[float] = field(default_factory=list)
    f1: list[float] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def to_row(self) -> dict[str, float]:
        """Return mean scores and median times."""
        found = {"hits@1": float(np.mean(self.hits)), "linked": float(np.mean(self.linked))}
        if self.recall:
            found |= {"recall": float(np.mean(self.recall)), "f1": float(np.mean(self.f1))}
        found |= {f"{name}_ms": median(times) * 1000 for name, times in self.seconds.items()}
        return {name: round(value, 4) for name, value in found.items()}


@dataclass(frozen=True)
class BenchKb:
    """A knowledge base with the normalised names of all its entities."""

    kb: KnowledgeBase
    keys: list[str]

    async def run_chain(
        self, steps: Sequence[Step], questions: Sequence[Question], *, link: bool
    ) -> ChainScores:
        """Run a chain over questions."""
        tally = ChainScores()
        async with self.kb.store.snapshot() as now:
            ctx = await self.kb.context(now, "bench")
            for question in questions:
                asked = replace(ctx, question=question.text, trace=[])
                if not link:
                    asked = replace(asked, given_entities=tuple(question.entities))
                await _warm_up(asked, question)
                try:
                    await self._run_question(asked, steps, question, tally)
                except InputError:  # no known entity is named: a miss
                    tally.hits.append(False)
                    tally.linked.append(False)
        return tally

    async def _run_question(
        self, ctx: Context, steps: Sequence[Step], question: Question, tally: ChainScores
    ) -> None:
        gold = {name_key(answer) for answer in question.answers}
        found, spent = Found(), defaultdict(float)
        for step in steps:
            kind = type(step).__name__
            started = process_time()
            found = await step(ctx, found)
            part = "extract" if kind.endswith(_EXTRACT_SUFFIXES) else "find"
            part = "link" if kind == "LinkEntities" else part if kind != "ChunksOf" else "cite"
            spent[part] += process_time() - started
            if kind == "LinkEntities":
                names = {self.keys[hit.at] for hit in found.entities}
                tally.linked.append(name_key(question.entities[0]) in names)
            if kind.endswith(_FIND_SUFFIXES) and found.facts:
                self._score_subgraph(ctx, found, gold, tally)
        first = found.paths[0].entities[-1] if found.paths else -1
        tally.hits.append(first >= 0 and self.keys[first] in gold)
        for part, seconds in spent.items():
            tally.seconds[part].append(seconds)

    def _score_subgraph(
        self, ctx: Context, found: Found, gold: set[str], tally: ChainScores
    ) -> None:
        """Record recall and F1 of the answers in the subgraph."""
        members = ctx.view.links("fact_entity")
        facts = np.array([hit.at for hit in found.facts], np.int64)
        inside = {self.keys[at] for at in np.unique(members.columns[members.edges_of(facts)[1]])}
        got = len(inside & gold)
        tally.recall.append(got / len(gold))
        tally.f1.append(2 * got / (len(inside) + len(gold)))


async def _warm_up(ctx: Context, question: Question) -> None:
    """Embed what the steps need, so that only the steps are timed."""
    spans = locate_names(question.text, question.entities)
    rest = remove_names(question.text, tokenize_question(question.text), spans)
    await ctx.vectors([question.text, rest or question.text])
    await embed_cached(ctx, [rest or question.text])


async def _open_kb(folder: Path, graph: Path) -> BenchKb:
    """Open the knowledge base, importing the graph first if it is missing."""
    missing = not (folder / "kb.sqlite").exists()
    kb = await KnowledgeBase.open(Settings(kb=folder), create=True)
    if missing:
        await kb.import_graph(graph)
    async with kb.store.snapshot() as now:
        ctx = await kb.context(now, "bench")
        keys = ctx.view.keys("entity").tolist()
        entities = await now.entities(keys)
    return BenchKb(kb, [name_key(entities[key].name) for key in keys])


def _load_questions(folder: Path, limit: int) -> dict[int, list[Question]]:
    found = {}
    for hops in HOPS:
        rows = load_dataset(folder / f"{hops}hop.dev.jsonl").questions
        found[hops] = list(rows[:: max(1, len(rows) // limit)][:limit])
    return found


async def _compare_chains(
    ground: BenchKb, questions: dict[int, list[Question]], names: Sequence[str], link: bool = False
) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name in names:
        # Warm up with one question: data derived once per generation is not timed.
        await ground.run_chain(CHAINS[name], questions[1][:1], link=link)
        rows = {}
        for hops, asked in questions.items():
            rows[hops] = (await ground.run_chain(CHAINS[name], asked, link=link)).to_row()
        figures[name] = rows
        _print_row(name + (" linked" if link else ""), rows)
    return figures


def _print_row(name: str, rows: dict[int, dict[str, float]]) -> None:
    def each(key: str, form: str) -> str:
        return " / ".join(form.format(row[key]) for row in rows.values() if key in row) or "–"

    print(
        f"{name:20s} hits@1 {each('hits@1', '{:.3f}')}  subgraph recall {each('recall', '{:.2f}')}"
        f" f1 {each('f1', '{:.3f}')}  extract {each('extract_ms', '{:.1f}')} ms"
        f"  find {each('find_ms', '{:.1f}')} ms",
        flush=True,
    )


async def _measure_tuned(args: argparse.Namespace) -> dict[str, Any]:
    """Tune on every second question, test on the others."""
    all_questions = {h: load_dataset(args.questions / f"{h}hop.dev.jsonl").questions for h in HOPS}
    train = [question for rows in all_questions.values() for question in rows[::2]]
    step = max(1, 1000 // args.limit)
    test = {hops: list(rows[1::2][::step][: args.limit]) for hops, rows in all_questions.items()}
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "kb"
        shutil.copytree(args.kb, copy)
        ground = await _open_kb(copy, args.questions / "kb.txt")
        before = await _compare_chains(ground, test, ("lego-12", "lego-14"))
        tuned = await tune(ground.kb, train, lambda stage, done, total: None)
        print(f"learnt from {tuned.paths} questions: {tuned.seconds}", flush=True)
        after = await _compare_chains(ground, test, ("lego-12", "lego-14"))
        linked = await _compare_chains(ground, test, ("lego-12",), link=True)
        await ground.kb.close()
    return {"before": before, "after": after, "linked": linked, "seconds": tuned.seconds}


def _time_hub() -> dict[str, float]:
    """Time path search from a hub with a million neighbours, in milliseconds."""
    count = 1_000_000
    fact = np.arange(count)
    entity = np.concatenate([np.zeros(count, np.int64), fact + 1])
    both = np.concatenate([fact, fact])
    roles = np.repeat(np.array([2, 3], np.float32), count)
    labels = (fact % 5).astype(np.int32)
    ways = FactGraph(
        build_csr(count + 1, entity, both, roles), build_csr(count, both, entity, roles), labels, 5
    )
    start = np.array([0])
    began = perf_counter()
    extend_relation_paths(ways, extend_relation_paths(ways, start_relation_paths(start)))
    trails = perf_counter()
    shortest_paths(ways, 0, 4)
    ended = perf_counter()
    return {"trails_ms": (trails - began) * 1000, "shortest_ms": (ended - trails) * 1000}


async def _run(args: argparse.Namespace) -> None:
    ground = await _open_kb(args.kb, args.questions / "kb.txt")
    questions = _load_questions(args.questions, args.limit)
    names = args.only.split(",") if args.only else list(CHAINS)
    figures = {"given": await _compare_chains(ground, questions, names)}
    figures["linked"] = await _compare_chains(ground, questions, ("lego-12",), link=True)
    await ground.kb.close()
    if args.tuned:
        figures["tuned"] = await _measure_tuned(args)
    figures["hub_with_a_million_neighbours"] = _time_hub()
    print_result(
        "paths", figures, {"questions": args.limit * len(HOPS), "entities": len(ground.keys)}
    )


def main() -> None:
    """Parse the options and run."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--limit", type=int, default=100)
    options.add_argument("--questions", type=Path, default=Path("../shared/data/metaqa"))
    options.add_argument("--kb", type=Path, default=Path(".bench/metaqa"))
    options.add_argument("--only", default="")
    options.add_argument("--tuned", action="store_true")
    args = options.parse_args()
    require_path(args.questions, "--questions")
    asyncio.run(_run(args))


if __name__ == "__main__":
    main()
