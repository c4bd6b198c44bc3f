"""Recall of recipes on every data set of a folder: does a recipe hold on corpora of other kinds?

`python -m bench.generalise --data DIR [--kbs DIR] [--recipes naive,clew] [--wordings plain,lower]`.
Every folder of `--data` with `corpus.jsonl` and `questions.jsonl` is a set. A knowledge base of the
same name under `--kbs` is used if it is there, otherwise one is built there. Reported are recall@2
and recall@5 of the gold documents, by question type where a set has several, the share of the
statements of a summary that one of the first ten passages covers, and processor time beyond
embedding.
"""

import argparse
import asyncio
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
from clew.evaluate.datasets import load_dataset
from clew.evaluate.measure import build_if_empty
from clew.evaluate.metrics.registry import recall
from clew.llm.embed import Embedder, EmbedRole, Vectors
from clew.retrieve.question import QUESTION_WORDS
from clew.text.unicode import split_words
from clew.types import Passage

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


def read_questions(folder: Path, sample: int) -> list[Asked]:
    """Read the questions with gold, or a fixed random sample of them."""
    rows = read_jsonl(folder / "questions.jsonl")
    found = [
        Asked(
            row["question"],
            tuple(map(str, row["gold"])),
            str(row.get("type") or ""),
            tuple(row.get("statements") or ()),
        )
        for row in rows
        if row.get("gold") and row.get("answerable", True)
    ]
    return random.Random(0).sample(found, sample) if 0 < sample < len(found) else found


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
        found = await kb.search(reword(question.text), recipe=recipe, k=DEPTH)
        spent = process_time() - began
        if isinstance(embed, CountingEmbedder):
            spent -= embed.seconds - embedding
        passages = found.evidence.chunks
        documents = list(dict.fromkeys(passage.doc for passage in passages))
        for depth in (2, 5):
            value = recall(documents[:depth], question.gold)
            values[f"recall@{depth}"].append(value)
            values[f"{question.type} recall@{depth}"].append(value)
        if question.statements:
            share = count_covered(question.statements, passages[:SUMMARY_DEPTH])
            values["statements"].append(share)
        values["ms"].append(1000 * spent)
    figures = {name: round(float(np.mean(some)), 4) for name, some in sorted(values.items())}
    return figures | {"ms p95": round(float(np.quantile(values["ms"], 0.95)), 1), "n": len(asked)}


async def measure_set(
    folder: Path, kbs: Path, recipes: Sequence[str], wordings: Sequence[str], sample: int
) -> dict[str, Any]:
    """Open or build the knowledge base of a set, and run all recipes and wordings."""
    kb = await KnowledgeBase.open(Settings(kb=kbs / folder.name), create=True)
    try:
        await build_if_empty(kb, load_dataset(folder), None)
        if kb.embed is not None:
            kb = replace(kb, embed=CountingEmbedder(kb.embed))
        asked = read_questions(folder, sample)
        # Loads everything that is cached on first use, so that it is not counted as time.
        for recipe in recipes:
            await kb.search(asked[0].text, recipe=recipe, k=DEPTH)
        return {
            f"{recipe}, {wording}" if wording != "plain" else recipe: await measure_recipe(
                kb, recipe, asked, WORDINGS[wording]
            )
            for recipe in recipes
            for wording in wordings
        }
    finally:
        await kb.close()


def format_row(recipe: str, figures: dict[str, Any]) -> str:
    """Format one line of the table."""
    types = sorted({name.split(" ")[0] for name in figures if " recall@" in name})
    by_type = [
        f"{kind} {figures[f'{kind} recall@2']:.3f}/{figures[f'{kind} recall@5']:.3f}"
        for kind in types
        if len(types) > 1
    ]
    if "statements" in figures:
        by_type.append(f"statements {figures['statements']:.3f}")
    whole = f"{figures['recall@2']:.3f} / {figures['recall@5']:.3f}"
    times = f"{figures['ms']:.0f} / {figures['ms p95']:.0f} ms"
    return f"  {recipe:24} {whole}   {times:14} {'; '.join(by_type)}"


async def main() -> None:
    """Parse the arguments, measure every set and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--kbs", type=Path, required=True)
    parser.add_argument("--sets", default="", help="names of sets; all if left out")
    parser.add_argument("--recipes", default="naive,bm25,hybrid,hipporag2,clew")
    parser.add_argument("--wordings", default="plain", help=", ".join(WORDINGS))
    parser.add_argument("--sample", type=int, default=0, help="questions of each set; 0 for all")
    given = parser.parse_args()
    data = require_path(given.data, "--data")
    chosen = [name for name in given.sets.split(",") if name]
    figures = {}
    for folder in sorted(path.parent for path in data.glob("*/corpus.jsonl")):
        if (chosen and folder.name not in chosen) or not (folder / "questions.jsonl").exists():
            continue
        recipes, wordings = given.recipes.split(","), given.wordings.split(",")
        figures[folder.name] = await measure_set(folder, given.kbs, recipes, wordings, given.sample)
        print(folder.name)
        for name, row in figures[folder.name].items():
            print(format_row(name, row), flush=True)
    print_result("generalise", figures, {"sample": given.sample})


if __name__ == "__main__":
    asyncio.run(main())
