"""Retrieval time without embedding, and recall, per recipe.

Wall time is what a user waits; CPU time is the fairer figure on a shared machine. Every text is
embedded once and cached for all recipes, and embedding is not counted.

`python -m bench.query [--data DIR] [--kb DIR] [--recipe R,R…] [--limit N]`. The knowledge base is
built from the dataset's corpus when the folder holds none. Without `--recipe`, every recipe runs
that needs no tree and no reranker, with `--recipe all` every one; a recipe that the knowledge base
lacks something for is left out with its reason. `--limit 0` asks all questions. `--passages N`
measures over N synthetic passages instead, with random vectors (recall is not measured there).
"""

import argparse
import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from bench import corpus
from bench.machine import percentiles_ms, print_result, require_path
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import ConfigError, InputError
from clew.evaluate.datasets import CORPUS_FILE, Question, load_dataset
from clew.llm.embed import Embedder, EmbedRole, Vectors
from clew.recipes.describe import describe_recipe_needs
from clew.recipes.registry import RECIPES
from clew.text.unicode import hash64
from clew.types import Document
from clew.version import pip_install_command

WARM_UP = 20  # questions asked before timing starts
COLUMNS = "p50 ms", "p95 ms", "cpu p50", "cpu p95", "@2", "@5", "@10"
DEPTHS = (2, 5, 10)
CACHE = Path.home() / ".cache/clew/bench"


@dataclass
class TimedEmbed:
    """Caching embedder that counts the seconds spent in it."""

    inner: Embedder
    seconds: float = 0.0
    cpu: float = 0.0
    cache: dict[str, Vectors] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The inner embedder's."""
        return self.inner.name

    @property
    def dim(self) -> int:
        """The inner embedder's."""
        return self.inner.dim

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        """Embed uncached texts, and count the time."""
        began, busy = perf_counter(), process_time()
        try:
            fresh = [text for text in dict.fromkeys(texts) if text not in self.cache]
            if fresh:
                self.cache |= zip(fresh, await self.inner(fresh, role=role), strict=True)
            return np.stack([self.cache[text] for text in texts])
        finally:
            self.seconds += perf_counter() - began
            self.cpu += process_time() - busy


class HashDirectionEmbed:
    """Embeds each text as a random direction from its hash, in MiniLM's dimension."""

    name, dim = "strewn", 384

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        """Make unit vectors from the texts' hashes."""
        rows = np.empty((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            np.random.Generator(np.random.SFC64(hash64(text))).standard_normal(
                dtype=np.float32, out=row
            )
        found: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return found


def single_shot_recipes() -> str:
    """Return all recipes that need nothing beyond `clew add`."""
    plain = [
        name for name, recipe in RECIPES.items() if _needs_no_extra(describe_recipe_needs(recipe))
    ]
    return ",".join(name for name in plain if not name.startswith(("lego-", "grag-")))


def _needs_no_extra(needs: str) -> bool:
    return "reranker" not in needs and ("a tree" not in needs or "), if grown" in needs)


def main() -> None:
    """Measure and print a table, then the JSON result."""
    parser = argparse.ArgumentParser(prog="python -m bench.query", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/2wiki"))
    parser.add_argument("--kb", type=Path, default=None)
    parser.add_argument("--recipe", default=single_shot_recipes())
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--passages", type=int, default=0)
    asyncio.run(measure(parser.parse_args()))


async def measure(given: argparse.Namespace) -> None:
    """Run the same questions through every recipe."""
    base, questions = await (open_synthetic_kb(given) if given.passages else open_dataset_kb(given))
    if base.embed is None:
        raise SystemExit(f"no embedder; `{pip_install_command('local')}`")
    base.embed = clock = TimedEmbed(base.embed)
    figures: dict[str, Any] = {}
    print(f"{'recipe':<18}", *(f"{head:>8}" for head in COLUMNS))
    for name in RECIPES if given.recipe == "all" else given.recipe.split(","):
        try:
            figures[name] = await measure_recipe(base, clock, name, questions)
        except ConfigError as error:
            print(f"{name:<18} left out: {error}", flush=True)
            continue
        print(f"{name:<18}", *(f"{value:>8}" for value in figures[name].values()), flush=True)
    counts = await base.store.counts()
    sizes = {"chunks": counts.chunks, "entities": counts.entities, "facts": counts.facts}
    print_result("query", figures, sizes | {"questions": len(questions)})
    await base.close()


async def open_dataset_kb(given: argparse.Namespace) -> tuple[KnowledgeBase, Sequence[Question]]:
    """Open a dataset's knowledge base, building it if needed, with its questions."""
    folder = given.kb or CACHE / "kb-2wiki"
    dataset = load_dataset(require_path(given.data, "--data"))
    base = await KnowledgeBase.open(Settings(kb=folder), create=True)
    if not (await base.store.counts()).documents and dataset.corpus is not None:
        await base.add([dataset.corpus])
    return base, dataset.questions[: given.limit or None]


async def open_synthetic_kb(given: argparse.Namespace) -> tuple[KnowledgeBase, Sequence[Question]]:
    """Open a synthetic knowledge base, building it if needed, with its questions."""
    folder = given.kb or CACHE / f"kb-{given.passages}"
    base = await KnowledgeBase.open(Settings(kb=folder), create=True, embed=False)
    base.embed = HashDirectionEmbed()
    if not (await base.store.counts()).documents:
        await base.take(_iter_documents(given.passages), "offline")
    # The first ones warm up data derived once per generation.
    texts = corpus.make_questions(given.limit + WARM_UP)
    return base, [Question(str(n), text) for n, text in enumerate(texts)]


async def _iter_documents(count: int) -> AsyncIterator[Document]:
    for document in corpus.make_documents(count):
        yield document


async def measure_recipe(
    base: KnowledgeBase, clock: TimedEmbed, recipe: str, questions: Sequence[Question]
) -> dict[str, Any]:
    """Measure time without embedding, and recall, of one recipe."""
    for question in questions[:WARM_UP]:
        await search_documents(base, question.text, recipe)
    seconds, cpu, recall = [], [], []
    for question in questions:
        before, began = (clock.seconds, clock.cpu), (perf_counter(), process_time())
        docs = await search_documents(base, question.text, recipe)
        seconds.append(perf_counter() - began[0] - (clock.seconds - before[0]))
        cpu.append(process_time() - began[1] - (clock.cpu - before[1]))
        gold = set(question.gold)
        recall.append([len(gold & set(docs[:k])) / max(1, len(gold)) for k in DEPTHS])
    busy = {f"cpu_{name}": value for name, value in percentiles_ms(cpu).items()}
    if not any(question.gold for question in questions):  # made-up questions
        return {**percentiles_ms(seconds), **busy}
    means = [round(float(mean), 4) for mean in np.mean(recall, axis=0)]
    found = {f"recall@{k}": mean for k, mean in zip(DEPTHS, means, strict=True)}
    return {**percentiles_ms(seconds), **busy, **found}


async def search_documents(base: KnowledgeBase, question: str, recipe: str) -> list[str]:
    """Return the documents found, best first; none if no known entity is named."""
    try:
        found = await base.search(question, recipe=recipe, k=max(DEPTHS))
    except InputError:
        return []
    # A corpus that was added as a file has its rows under the file's path.
    names = (passage.doc.rpartition(f"{CORPUS_FILE}#")[2] for passage in found.evidence.chunks)
    return list(dict.fromkeys(names))


if __name__ == "__main__":
    main()
