"""The knowledge tree: time, memory, quality against Leiden and k-means, recall with and without it.

`python -m bench.tree [--kb NAME=FOLDER…] [--questions NAME=FILE…] [--sizes N…] [--limit N]
[--memory BYTES]`

Every knowledge base is copied first and the whole tree (structure, summaries, vectors) is built in
the copy. Sizes are synthetic graphs of three facts per entity whose vectors are generated block by
block, as a knowledge base reads them from disk; each runs in its own process, for its own peak
memory. Without a knowledge base only the sizes are run.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.cluster_quality import modularity, purity, silhouette
from bench.communities import WIDTH, TripleGraph, make_topical_graph
from bench.machine import print_result
from clew import sync
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.graph.cluster.dual import compute_affinities
from clew.graph.cluster.hierarchy import Hierarchy, build_hierarchy
from clew.graph.cluster.kmeans import kmeans
from clew.graph.cluster.leiden import leiden_communities
from clew.graph.cluster.relations import count_relations_with_fallback
from clew.graph.cluster.vectors import entity_vectors, relabel_by_size
from clew.index.view import View
from clew.out_of_core import WorkingMemory
from clew.recipes.registry import RECIPES
from clew.retrieve.communities.steps import IfGrown
from clew.retrieve.step import Chain, Fork
from clew.tree.build import DEFAULT_DUAL, DUAL_OPTIONS, HIERARCHY_LIMITS, TreeInput

Ints = NDArray[np.int64]
_KEYWORDS = 8
_TOP_K = 5


# -- synthetic graphs


def make_synthetic_graph(entities: int, seed: int = 1) -> tuple[TripleGraph, Callable[[Ints], Any]]:
    """Make a topical graph and a function that generates its vectors by block, reproducibly."""
    graph, centres, topic = make_topical_graph(entities, np.random.default_rng(seed))

    def read(block: Ints) -> Any:
        noise = np.random.default_rng([seed, int(block[0])]).standard_normal(
            (len(block), WIDTH), np.float32
        )
        return centres[topic[block]] + 1.5 * noise, np.ones(len(block), np.bool_)

    return graph, read


def measure_tree(entities: int, memory: WorkingMemory) -> dict[str, Any]:
    """Build one synthetic tree as Clew does, and return time, memory and sizes."""
    graph, read = make_synthetic_graph(entities)
    began, before = time.perf_counter(), time.process_time()
    members = graph.members()
    vectors = entity_vectors(members, entities, WIDTH, read, memory)
    none = np.full(entities, -1)
    ties = count_relations_with_fallback(members, entities, graph.relations, none)
    prepared = time.perf_counter()
    found = build_hierarchy(vectors, ties, DEFAULT_DUAL, HIERARCHY_LIMITS).tree
    ended = time.perf_counter()
    return {
        "entities": entities,
        "seconds": round(ended - began, 1),
        "prepare_seconds": round(prepared - began, 1),
        "cpu_seconds": round(time.process_time() - before, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "communities": len(found.parent),
        "leaves": len(np.unique(found.leaf)),
        "levels": found.depth,
    }


# -- quality on knowledge bases


def entity_types(view: View, entities: Ints) -> Ints:
    """Return the entities' types, or else each one's most frequent (relation, side)."""
    own = view.types[entities].astype(np.int64) + 1
    if len(np.unique(own)) > 1:
        return own
    links, roles = view.links("entity_fact"), 4
    which, edge = links.edges_of(entities)
    kind = (view.relations[links.columns[edge]].astype(np.int64) + 1) * roles
    kind += links.weights[edge].astype(np.int64)
    # Heads of any relation have one type.
    kind = np.where(links.weights[edge] == 2, 0, kind)
    width = int(kind.max(initial=0)) + 1
    keys, times = np.unique(which * width + kind, return_counts=True)
    best = np.lexsort((-times, keys // width))
    rows, first = np.unique((keys // width)[best], return_index=True)
    found = np.zeros(len(entities), np.int64)
    found[rows] = (keys % width)[best][first]
    return found


def measure_quality(ground: TreeInput, tree: Hierarchy | Ints, types: Ints) -> dict[str, Any]:
    """Score the leaf communities; keyword purity is that of the strongest entities by φ."""
    leaf = tree.leaf if isinstance(tree, Hierarchy) else tree
    labels = relabel_by_size(leaf)
    scores, _ = compute_affinities(ground.vectors, ground.entity_relations, labels, DEFAULT_DUAL)
    order = np.lexsort((-scores, labels))
    begin = np.searchsorted(labels[order], np.arange(int(labels.max()) + 1))
    place = np.arange(len(order)) - begin[labels[order]]
    words = order[place < _KEYWORDS]
    sizes = np.bincount(labels)
    top = tree.labels_at(0) if isinstance(tree, Hierarchy) else leaf
    return {
        "tops": len(np.unique(top)),
        "leaves": len(sizes),
        "largest": int(sizes.max()),
        "modularity": round(modularity(labels, *ground.links), 3),
        "modularity_top": round(modularity(relabel_by_size(top), *ground.links), 3),
        "silhouette": round(silhouette(ground.vectors, labels), 3),
        "keyword_purity": round(purity(labels[words], types[words]), 3),
        "purity": round(purity(labels, types), 3),
    }


def clustering_methods(ground: TreeInput) -> dict[str, Callable[[], Hierarchy | Ints]]:
    """Return the methods to compare; k-means gets about as many clusters as our tree has leaves."""
    made: dict[str, Callable[[], Hierarchy | Ints]] = {
        name: lambda how=how: (
            build_hierarchy(ground.vectors, ground.entity_relations, how, HIERARCHY_LIMITS).tree
        )  # type: ignore[misc]
        for name, how in DUAL_OPTIONS.items()
    }
    made["leiden"] = lambda: leiden_communities(
        len(ground.entities), ground.links, HIERARCHY_LIMITS.max_size
    )
    made["k-means"] = lambda: kmeans(ground.vectors, max(2, len(ground.entities) // 45)).labels
    return made


async def compare_methods(base: KnowledgeBase) -> dict[str, Any]:
    """Measure the quality of every method on one knowledge base."""
    trees = base.builder.make_tree_manager()
    async with base.store.snapshot() as now:
        embedder = (await base.store.get("manifest", ["embedder"])).get("embedder", "")
        view = trees.make_view(now, embedder)
        ground = TreeInput(view, await trees.embed_relations(view, now))
        types = entity_types(view, ground.entities)
        found = {}
        for name, build in clustering_methods(ground).items():
            began, before = time.perf_counter(), time.process_time()
            tree = build()
            took = {
                "seconds": round(time.perf_counter() - began, 1),
                "cpu_seconds": round(time.process_time() - before, 1),
            }
            found[name] = measure_quality(ground, tree, types) | took
            print(f"  {name:10}", *(f"{k}={v}" for k, v in found[name].items()), flush=True)
    return found


# -- recall with and without


def _without_community_route(recipe: Chain) -> Chain:
    steps = []
    for step in recipe.steps:
        if isinstance(step, Fork):
            left = tuple(one for one in step.branches if not isinstance(one, IfGrown))
            step = replace(step, branches=left)
        steps.append(step)
    return replace(recipe, steps=tuple(steps))


def recipes_to_compare() -> dict[str, Chain]:
    """Return the recipes; `youtu` without and with the community route."""
    names = ("naive", "clew", "youtu", "raptor", "e2graphrag")
    names += ("youtu-bottom-up", "msgraphrag-local", "msgraphrag-global")
    found = {name: RECIPES[name] for name in names}
    return {"youtu, three routes": _without_community_route(RECIPES["youtu"])} | found


def score_recall(question: dict[str, Any], passages: Any) -> float:
    """Return the share of gold passages in the top five; without gold, of answers in them."""
    best = passages[:_TOP_K]
    if question.get("gold"):
        gold = {str(one) for one in question["gold"]}
        return len(gold & {one.doc for one in best}) / len(gold)
    text = "\n".join(one.text for one in best).casefold()
    answers = question["answers"]
    return sum(one.casefold() in text for one in answers) / len(answers)


async def measure_recalls(base: KnowledgeBase, questions: list[dict[str, Any]]) -> dict[str, float]:
    """Measure mean recall@5 of each recipe."""
    found = {}
    for name, chain in recipes_to_compare().items():
        RECIPES["under test"] = chain
        scores = [
            score_recall(
                one, (await base.search(one["question"], recipe="under test")).evidence.chunks
            )
            for one in questions
        ]
        found[name] = round(float(np.mean(scores)), 3)
        print(f"  recall@5 {name:24} {found[name]:.3f}", flush=True)
    return found


async def measure_kb(folder: Path, questions: list[dict[str, Any]]) -> dict[str, Any]:
    """Measure everything on a copy of one knowledge base."""
    base = await KnowledgeBase.open(Settings(kb=folder))
    try:
        began, before = time.perf_counter(), time.process_time()
        await base.builder.make_tree_manager().build(["dual"])
        tree_cost = {
            "seconds": round(time.perf_counter() - began, 1),
            "cpu_seconds": round(time.process_time() - before, 1),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
        print("  whole tree:", *(f"{k}={v}" for k, v in tree_cost.items()), flush=True)
        counts = await base.store.counts()
        size = {"entities": counts.entities, "facts": counts.facts, "chunks": counts.chunks}
        found: dict[str, Any] = {"sizes": size, "whole_tree": tree_cost}
        found["quality"] = await compare_methods(base)
        if questions:
            await base.builder.make_tree_manager().build(["leiden", "raptor", "e2"])
            found["recall@5"] = await measure_recalls(base, questions)
        return found
    finally:
        await base.close()


def _run_in_process(words: list[str]) -> dict[str, Any]:
    """Run this benchmark in its own process, passing its progress through."""
    call = [sys.executable, "-m", "bench.tree", *words]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        last = ""
        for line in child.stdout:
            if last:
                print(last, flush=True)
            last = line.rstrip("\n")
    if child.returncode:
        raise SystemExit(child.returncode)
    found: dict[str, Any] = json.loads(last)
    return found


def _parse_pairs(given: list[str]) -> dict[str, Path]:
    return {name: Path(path) for name, _, path in (one.partition("=") for one in given)}


def _load_questions(file: Path | None, limit: int) -> list[dict[str, Any]]:
    if file is None:
        return []
    every = [json.loads(line) for line in file.open(encoding="utf-8")]
    return every[:: max(1, len(every) // limit)][:limit]


def main() -> None:
    """Print tables, then the JSON result."""
    parser = argparse.ArgumentParser(prog="python -m bench.tree", description=__doc__)
    parser.add_argument("--kb", nargs="*", default=[])
    parser.add_argument("--questions", nargs="*", default=[])
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--memory", type=float, help="bytes that vectors may take, as 5e8")
    parser.add_argument("--one")
    given = parser.parse_args()
    if given.one == "size":
        with tempfile.TemporaryDirectory() as scratch:
            memory = WorkingMemory(int(given.memory) if given.memory else None, Path(scratch))
            print(json.dumps(measure_tree(given.sizes[0], memory)))
        return
    bases, asked = _parse_pairs(given.kb), _parse_pairs(given.questions)
    if given.one == "kb":
        [(name, folder)] = bases.items()
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(shutil.copytree(folder, Path(scratch) / "kb"))
            said = sync.run(measure_kb(copy, _load_questions(asked.get(name), given.limit)))
        print(json.dumps(said))
        return
    figures: dict[str, Any] = {}
    bound = ["--memory", str(given.memory)] if given.memory else []
    for size in given.sizes:
        found = figures[f"synthetic {size}"] = _run_in_process(
            ["--one", "size", "--sizes", str(size), *bound]
        )
        print(f"{size:>9,}", *(f"{k}={v}" for k, v in found.items()), flush=True)
    for name, folder in bases.items():
        print(name, flush=True)
        words = ["--one", "kb", "--kb", f"{name}={folder}", "--limit", str(given.limit)]
        if name in asked:
            words += ["--questions", f"{name}={asked[name]}"]
        figures[name] = _run_in_process(words)
    print_result("tree", figures, {"width": WIDTH})


if __name__ == "__main__":
    main()
