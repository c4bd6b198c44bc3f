"""Recall of recipes on every data set of a folder: does a recipe hold on corpora of other kinds?

`python -m bench.generalise --data DIR [--kbs DIR] [--recipes naive,clew] [--wordings plain,lower]
[--sample 30] [--table] [--out FILE]`, `python -m bench.generalise --read FILE ... --table`.
Every folder of `--data` with `corpus.jsonl` and `questions.jsonl` is a set, and so is every folder
with a graph (`kb.tsv` or `kb.txt`) and questions with `answers`. A knowledge base of the same name
under `--kbs` is used if it is there, otherwise one is built there. Reported are recall@2 and
recall@5 of the gold documents, by question type where a set has several, the share of the
statements of a summary that one of the first ten passages covers, and processor time beyond
embedding; on a graph the share of questions whose first ranked entity is an answer (hits@1).
A recipe that cannot run (it needs a model, or a tree) is left out with the reason. `--table` also
prints all sets as one Markdown table. `--out` keeps the figures, and `--read` puts kept ones
together, so that sets and recipes can be measured by several processes at once.
"""

import argparse
import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from bench.machine import print_result, read_jsonl, require_path
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import ClewError, InputError
from clew.evaluate.build import build_if_empty
from clew.evaluate.datasets import load_dataset, parse_question, to_corpus_id
from clew.evaluate.metrics.registry import recall
from clew.evaluate.runner import rank_answers
from clew.llm.embed import Embedder, EmbedRole, Vectors
from clew.retrieve.question import QUESTION_WORDS
from clew.text.names import name_key
from clew.text.unicode import split_words
from clew.types import Evidence, Passage

GRAPH_FILES = ("kb.tsv", "kb.txt")
DEPTH = 20  # passages fetched, as `clew eval` does
SUMMARY_DEPTH = 10  # passages in which the statements of a summary are looked for
COVERED = 0.6  # share of a statement's content words that one passage must have
WORDINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "lower": str.lower,
    "no mark": lambda text: text.rstrip("?. "),
    "polite": lambda text: f"Could you please tell me the following: {text} Thank you!",
}


@dataclass
class CountingEmbedder:
    """Embeds every text once and counts the processor time that this takes."""

    embed: Embedder
    seconds: float = 0.0
    known: dict[tuple[str, str], Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The wrapped embedder's name."""
        return self.embed.name

    @property
    def dim(self) -> int:
        """The wrapped embedder's dimensions."""
        return self.embed.dim

    def measure_known(self, text: str) -> float:
        """How far the wrapped embedder knows the words of a text; 1 if it cannot tell."""
        measure = getattr(self.embed, "measure_known", None)
        share: float = measure(text) if measure else 1.0
        return share

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        """Embed what is new."""
        began = process_time()
        new = [text for text in dict.fromkeys(texts) if (role, text) not in self.known]
        if new:
            vectors = await self.embed(new, role=role)
            self.known.update({(role, t): v for t, v in zip(new, vectors, strict=True)})
        found = np.array([self.known[role, text] for text in texts], np.float32)
        self.seconds += process_time() - began
        return found.reshape(len(texts), self.dim)


@dataclass(frozen=True)
class Asked:
    """A question with its gold documents, its type and the statements of its summary."""

    text: str
    gold: tuple[str, ...]
    type: str
    statements: tuple[str, ...]
    answers: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    """Of a graph: the names that answer it, and those that it is about."""


def read_questions(folder: Path, sample: int) -> list[Asked]:
    """Read the questions with gold or answers, or a fixed random sample of them."""
    rows = [row for path in sorted(folder.glob("*.jsonl")) for row in _read_asking(path)]
    found = [
        Asked(
            row["question"],
            tuple(map(str, row.get("gold") or ())),
            str(row.get("type") or "") if row.get("gold") else f"{row.get('hops', '')}hop",
            tuple(row.get("statements") or ()),
            tuple(row.get("answers") or ()) if not row.get("gold") else (),
            tuple(row.get("entities") or ()),
        )
        for row in rows
        if row.get("answerable", True)
    ]
    return random.Random(0).sample(found, sample) if 0 < sample < len(found) else found


def _read_asking(path: Path) -> list[dict[str, Any]]:
    rows = read_jsonl(path) if path.name != "corpus.jsonl" else []
    return [row for row in rows if row.get("question") and (row.get("gold") or row.get("answers"))]


def count_covered(statements: Sequence[str], passages: Sequence[Passage]) -> float:
    """Share of the statements whose content words mostly occur in one passage."""
    have = [set(split_words(passage.text)) for passage in passages]
    covered = 0
    for statement in statements:
        words = {word for word in split_words(statement) if word not in QUESTION_WORDS}
        covered += any(len(words & text) >= COVERED * len(words) for text in have)
    return covered / len(statements)


async def measure_recipe(
    kb: KnowledgeBase, recipe: str, asked: Sequence[Asked], reword: Callable[[str], str]
) -> dict[str, Any]:
    """Run a recipe over the questions; values by metric, also by question type."""
    embed = kb.embed
    values: dict[str, list[float]] = defaultdict(list)
    for question in asked:
        embedding = embed.seconds if isinstance(embed, CountingEmbedder) else 0.0
        began = process_time()
        names = question.entities if question.answers else ()
        evidence = await _find_evidence(kb, recipe, reword(question.text), names)
        spent = process_time() - began
        if isinstance(embed, CountingEmbedder):
            spent -= embed.seconds - embedding
        values["ms"].append(1000 * spent)
        if question.answers:
            asking = parse_question({"question": question.text, "entities": question.entities}, 0)
            ranked = rank_answers(evidence, asking)[:1]
            hit = float(bool(set(map(name_key, ranked)) & set(map(name_key, question.answers))))
            values["hits@1"].append(hit)
            values[f"{question.type} hits@1"].append(hit)
            continue
        passages = evidence.chunks
        documents = list(dict.fromkeys(to_corpus_id(passage.doc) for passage in passages))
        for depth in (2, 5):
            value = recall(documents[:depth], question.gold)
            values[f"recall@{depth}"].append(value)
            values[f"{question.type} recall@{depth}"].append(value)
        if question.statements:
            share = count_covered(question.statements, passages[:SUMMARY_DEPTH])
            values["statements"].append(share)
    figures = {name: round(float(np.mean(some)), 4) for name, some in sorted(values.items())}
    return figures | {"ms p95": round(float(np.quantile(values["ms"], 0.95)), 1), "n": len(asked)}


async def _find_evidence(
    kb: KnowledgeBase, recipe: str, question: str, names: tuple[str, ...]
) -> Evidence:
    """Search; a recipe that must begin at a name and is given none finds nothing."""
    try:
        return (await kb.search(question, recipe=recipe, k=DEPTH, entities=names)).evidence
    except InputError:
        return Evidence()


async def measure_set(
    folder: Path, kbs: Path, recipes: Sequence[str], wordings: Sequence[str], sample: int
) -> dict[str, Any]:
    """Open or build the knowledge base of a set, and run all recipes and wordings."""
    kb = await KnowledgeBase.open(Settings(kb=kbs / folder.name), create=True)
    try:
        await _build(kb, folder)
        if kb.embed is not None:
            kb = replace(kb, embed=CountingEmbedder(kb.embed))
        asked = read_questions(folder, sample)
        figures: dict[str, Any] = {}
        for recipe in recipes:
            try:
                # Loads everything that is cached on first use, so that it is not counted as time.
                await _find_evidence(kb, recipe, asked[0].text, ())
            except ClewError as error:
                figures[recipe] = {"left out": str(error)}
                continue
            for wording in wordings:
                name = recipe if wording == "plain" else f"{recipe}, {wording}"
                figures[name] = await measure_recipe(kb, recipe, asked, WORDINGS[wording])
        return figures
    finally:
        await kb.close()


async def _build(kb: KnowledgeBase, folder: Path) -> None:
    if (folder / "corpus.jsonl").exists():
        await build_if_empty(kb, load_dataset(folder), None)
    elif not (await kb.store.counts()).facts:
        await kb.import_graph(find_graph(folder))


def find_graph(folder: Path) -> Path:
    """Return the graph file of a set that has no corpus."""
    return next(path for name in GRAPH_FILES if (path := folder / name).exists())


def find_sets(data: Path, chosen: Sequence[str]) -> list[Path]:
    """Return the folders with questions over a corpus or a graph."""
    files = (path for name in ("corpus.jsonl", *GRAPH_FILES) for path in data.glob(f"*/{name}"))
    folders = sorted({path.parent for path in files})
    return [
        folder
        for folder in folders
        if (not chosen or folder.name in chosen)
        and any(path.name != "corpus.jsonl" for path in folder.glob("*.jsonl"))
    ]


def format_row(recipe: str, figures: dict[str, Any]) -> str:
    """Format one line of a set's table."""
    if "left out" in figures:
        return f"  {recipe:24} left out: {figures['left out']}"
    kinds = sorted({name.rpartition(" ")[0] for name in figures if "@" in name} - {""})
    by_type = [f"{kind} {_format_figures(figures, f'{kind} ')}" for kind in kinds if len(kinds) > 1]
    if "statements" in figures:
        by_type.append(f"statements {figures['statements']:.3f}")
    times = f"{figures['ms']:.0f} / {figures['ms p95']:.0f} ms"
    return f"  {recipe:24} {_format_figures(figures):15} {times:14} {'; '.join(by_type)}"


def _format_figures(figures: dict[str, Any], prefix: str = "") -> str:
    """Format recall@2 and @5, or hits@1, without the leading zero."""
    names = [f"{prefix}{name}" for name in ("recall@2", "recall@5", "hits@1")]
    values = [figures[name] for name in names if name in figures]
    return " / ".join(f"{value:.3f}".removeprefix("0") for value in values) or "–"


def format_table(figures: dict[str, dict[str, Any]]) -> str:
    """Format all sets as one Markdown table: a row for each recipe, the best of each set bold."""
    recipes = list(dict.fromkeys(name for rows in figures.values() for name in rows))
    lines = ["| | " + " | ".join(figures) + " |", "|---" * (len(figures) + 1) + "|"]
    best = {name: max(map(_sum_of, rows.values()), default=0.0) for name, rows in figures.items()}
    for recipe in recipes:
        cells = []
        for name, rows in figures.items():
            row = rows.get(recipe, {})
            cell = _format_figures(row)
            cells.append(f"**{cell}**" if row and 0 < best[name] == _sum_of(row) else cell)
        lines.append(f"| `{recipe}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _sum_of(row: dict[str, Any]) -> float:
    return float(sum(row.get(name, 0.0) for name in ("recall@2", "recall@5", "hits@1")))


def read_kept(paths: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Put together the figures that `--out` wrote: by set, then by recipe."""
    figures: dict[str, dict[str, Any]] = {}
    for path in paths:
        for name, rows in json.loads(path.read_text("utf-8")).items():
            figures.setdefault(name, {}).update(rows)
    return figures


def parse_arguments() -> argparse.Namespace:
    """Parse the command line; data and knowledge bases are needed unless figures are read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--kbs", type=Path)
    parser.add_argument("--sets", default="", help="names of sets; all if left out")
    parser.add_argument("--recipes", default="naive,bm25,hybrid,hipporag2,clew")
    parser.add_argument("--wordings", default="plain", help=", ".join(WORDINGS))
    parser.add_argument("--sample", type=int, default=0, help="questions of each set; 0 for all")
    parser.add_argument("--table", action="store_true", help="also print a Markdown table")
    parser.add_argument("--out", type=Path, help="file that keeps the figures")
    parser.add_argument("--read", type=Path, nargs="+", help="print figures kept by --out")
    given = parser.parse_args()
    if not given.read and (given.data is None or given.kbs is None):
        parser.error("--data and --kbs are needed, or --read")
    return given


async def measure_sets(given: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Measure every chosen set and print its lines as they come."""
    data = require_path(given.data, "--data")
    chosen = [name for name in given.sets.split(",") if name]
    figures = {}
    for folder in find_sets(data, chosen):
        recipes, wordings = given.recipes.split(","), given.wordings.split(",")
        figures[folder.name] = await measure_set(folder, given.kbs, recipes, wordings, given.sample)
        print_set(folder.name, figures[folder.name])
    return figures


def print_set(name: str, rows: dict[str, Any]) -> None:
    """Print the lines of one set."""
    print(name)
    for recipe, row in rows.items():
        print(format_row(recipe, row), flush=True)


async def main() -> None:
    """Measure every set or read what was kept, and print the lines and the table."""
    given = parse_arguments()
    if given.read:
        figures = read_kept(given.read)
        for name, rows in figures.items():
            print_set(name, rows)
    else:
        figures = await measure_sets(given)
    if given.out:
        given.out.write_text(json.dumps(figures, default=float), "utf-8")
    if given.table:
        print(format_table(figures))
    if not given.read:
        print_result("generalise", figures, {"sample": given.sample})


if __name__ == "__main__":
    asyncio.run(main())
