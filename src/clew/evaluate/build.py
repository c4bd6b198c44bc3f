"""Build the knowledge base to measure on: its documents and trees, and what they cost."""

import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

from clew.builder import ignore_progress
from clew.engine import KnowledgeBase
from clew.errors import ConfigError, InputError
from clew.evaluate.datasets import Dataset
from clew.evaluate.grid import Grid, register_variants
from clew.extract.openie import Recorded
from clew.ingest.embedding import ProgressCallback
from clew.ingest.files import read
from clew.llm.openai_api import estimate_tokens
from clew.recipes.chunking import find_shared_chunking
from clew.recipes.describe import required_trees
from clew.recipes.registry import resolve_recipe
from clew.types import Chunking, Document, Usage

_TREES_KEY = "trees"
_CHECKED_DOCUMENTS = 100  # of the corpus: enough to see whether the knowledge base is of it


async def build_if_empty(
    base: KnowledgeBase,
    dataset: Dataset,
    extractor: Recorded | None,
    progress: ProgressCallback = ignore_progress,
    presets: Mapping[str, Chunking | None] | None = None,
) -> dict[str, Any]:
    """Build from the corpus if the knowledge base is empty; return its size and build cost.

    It is split as all recipes want it (`presets`), unless the user has set it, or they disagree.
    """
    counts = await base.store.counts()
    if counts.documents or counts.facts:
        stored = (await base.store.get("evaluate", ["build"])).get("build")
        return {"reused": True, **asdict(counts), **(json.loads(stored) if stored else {})}
    if dataset.corpus is None:
        raise ConfigError(
            f"{dataset.name} has no corpus.jsonl; name an existing knowledge base with --kb"
        )
    before, started = base.models.meter.total, perf_counter()
    own = base.settings.chunk.model_fields_set
    chunk = None if own else find_shared_chunking(presets or {})
    rows = read([dataset.corpus], row_names="id")
    added = await base.take(rows, extractor, progress=progress, chunk=chunk)
    if not added.counts.documents:
        why = f": {added.skipped[0].reason}" if added.skipped else ""
        raise InputError(f"{dataset.corpus} holds no document that can be read{why}; restore it")
    seconds = perf_counter() - started
    spent = base.models.meter.total - before
    costs = compute_build_costs(seconds, spent, dataset.corpus)
    await base.store.set("evaluate", {"build": json.dumps(costs)})
    return {"reused": False, "seconds": round(seconds, 3), **asdict(added.counts), **costs}


async def check_corpus(base: KnowledgeBase, dataset: Dataset) -> list[str]:
    """Return a doubt if the knowledge base holds no document of the corpus.

    Raise where ids of the corpus are names of other documents: gold would count for those.
    """
    counts = await base.store.counts()
    if dataset.corpus is None or not counts.documents:
        return []
    first = await _read_first_documents(dataset.corpus)
    async with base.store.snapshot() as snapshot:
        if not first or await snapshot.names([one.id for one in first]):
            return []
        sources = await base.store.sources()
        shared = {name: one for one in first for name in one.names if name in sources}
        held = await snapshot.documents([sources[name].document for name in shared])
    if any(_holds(held[sources[name].document], one) for name, one in shared.items()):
        return []
    lacking = f"the knowledge base holds no document of {dataset.corpus}"
    if shared:
        raise ConfigError(
            f"{lacking}, but others under the same ids, such as {next(iter(shared))!r}; "
            "give another folder with --kb"
        )
    return [f"{lacking} under its id: gold documents are not found"]


def _holds(stored: Document, read_now: Document) -> bool:
    """Whether a stored document has all lines of one: what its site repeats may be left out."""
    return all(line in stored.text for line in read_now.text.split("\n"))


async def _read_first_documents(corpus: Path) -> list[Document]:
    first: list[Document] = []
    async with aclosing(read([corpus], row_names="id")) as rows:
        async for row in rows:
            first += [row] if isinstance(row, Document) else []
            if len(first) == _CHECKED_DOCUMENTS:
                break
    return first


async def load_tree_costs(
    base: KnowledgeBase, grid: Grid, progress: ProgressCallback, *, grow: bool
) -> dict[str, Any]:
    """Grow the trees that are wanted and missing; return what each cost that was grown so."""
    known = (await base.store.get("evaluate", [_TREES_KEY])).get(_TREES_KEY)
    costs: dict[str, Any] = json.loads(known) if known else {}
    manager = base.builder.make_tree_manager(progress)
    there = await manager.tree_names()
    for tree in _list_trees(base, grid) if grow else ():
        if tree in there:
            continue
        before, started = base.models.meter.total, perf_counter()
        if base.embed is not None:
            await base.builder.embed_deferred("entity", progress)
        await manager.build([tree], write=base.models.has("extract"))
        spent = base.models.meter.total - before
        costs[tree] = {
            "build_seconds": round(perf_counter() - started, 3),
            "build_calls": spent.calls + spent.cached_calls,
            "build_tokens": spent.all_tokens,
            "money": round(spent.money, 6),
        }
        await base.store.set("evaluate", {_TREES_KEY: json.dumps(costs)})
    return {_TREES_KEY: costs} if costs else {}


def _list_trees(base: KnowledgeBase, grid: Grid) -> list[str]:
    """List the trees that the recipes of a grid read."""
    with register_variants(grid.variants):
        chains = [resolve_recipe(case.recipe, base.recipes).retrieve for case in grid.cases]
    return list(dict.fromkeys(tree for chain in chains for tree in required_trees(chain)))


def compute_build_costs(seconds: float, spent: Usage, corpus: Path) -> dict[str, Any]:
    """Compute time per 1,000 and money per 1,000,000 tokens built (Graph-R1, Table 3)."""
    try:
        size = estimate_tokens(corpus.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:  # removed while the knowledge base was built
        raise InputError(f"{corpus} cannot be read ({error.strerror}); restore it") from error
    return {
        "build_seconds": round(seconds, 3),
        "corpus_tokens": size,
        "seconds_per_1k_tokens": round(1000 * seconds / size, 6),
        "build_calls": spent.calls + spent.cached_calls,
        "build_tokens": spent.all_tokens,
        "money": round(spent.money, 6),
        "money_per_1m_tokens": round(1_000_000 * spent.money / size, 6),
    }
