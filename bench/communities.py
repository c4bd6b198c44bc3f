"""Community detection: time, memory and quality on MetaQA's graph, and scaling on synthetic graphs.

`python -m bench.communities [--data kb.txt] [--grow N…] [--only NAME…]`; every figure is measured
in its own process, so that peak memory is that method's.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.cluster_quality import modularity, purity, silhouette
from bench.machine import print_result
from clew.graph.cluster.dual import BALANCED, PAPER, RELEASED, find_communities
from clew.graph.cluster.hierarchy import build_hierarchy
from clew.graph.cluster.kmeans import cluster_count, kmeans
from clew.graph.cluster.leiden import leiden_communities
from clew.graph.cluster.raptor import build_soft_levels
from clew.graph.cluster.relations import EntityRelations, build_entity_links, count_relations
from clew.graph.cluster.vectors import entity_vectors, relabel_by_size
from clew.graph.csr import Csr, build_csr

WIDTH = 384  # as all-MiniLM-L6-v2
Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class TripleGraph:
    """A graph as arrays of head, relation and tail ids."""

    heads: Ints
    relations: Ints
    tails: Ints
    entities: int

    def members(self) -> Csr:
        """Return the CSR matrix from facts to their head and tail."""
        fact = np.arange(len(self.heads))
        ends = np.concatenate([self.heads, self.tails])
        return build_csr(len(fact), np.concatenate([fact, fact]), ends)

    def types(self) -> Ints:
        """Return each entity's type: its most frequent (relation, side)."""
        sides = int(self.relations.max()) * 2 + 2
        who = np.concatenate([self.heads, self.tails])
        kind = np.concatenate([self.relations * 2, self.relations * 2 + 1])
        # All heads have one type: in MetaQA they are films.
        kind = np.where(kind % 2 == 0, 0, kind)
        keys, times = np.unique(who * sides + kind, return_counts=True)
        best = np.lexsort((-times, keys // sides))
        found = np.zeros(self.entities, np.int64)
        rows, first = np.unique((keys // sides)[best], return_index=True)
        found[rows] = (keys % sides)[best][first]
        return found


def read_triples(path: Path) -> tuple[TripleGraph, Floats]:
    """Read bar-separated triples; fact vectors are sums of random word vectors."""
    triples = [line.rstrip("\n").split("|") for line in path.open(encoding="utf-8")]
    entity_ids: dict[str, int] = {}
    relation_ids: dict[str, int] = {}
    words: dict[str, int] = {}
    rows = [
        (
            entity_ids.setdefault(head, len(entity_ids)),
            relation_ids.setdefault(kind, len(relation_ids)),
            entity_ids.setdefault(tail, len(entity_ids)),
        )
        for head, kind, tail in triples
    ]
    texts = [[words.setdefault(word, len(words)) for word in " ".join(t).split()] for t in triples]
    starts = np.concatenate([[0], np.cumsum([len(word) for word in texts])])
    heads, relations, tails = np.array(rows, np.int64).T
    vectors = _word_sums(starts, np.concatenate([np.array(s) for s in texts]), len(words))
    return TripleGraph(heads, relations, tails, len(entity_ids)), vectors


def make_topical_graph(entities: int, rng: np.random.Generator) -> tuple[TripleGraph, Floats, Ints]:
    """Make a graph of three facts per entity, most within a topic, with hubs and 40 relations.

    Also returns a vector for every topic, and the topic of every fact.
    """
    facts, topics = entities * 3, max(entities // 500, 2)
    topic = rng.integers(topics, size=entities)
    by_topic = np.argsort(topic, kind="stable")
    begin = np.searchsorted(topic[by_topic], np.arange(topics))
    size = np.maximum(np.bincount(topic, minlength=topics), 1)
    heads = rng.integers(entities, size=facts)
    # Squaring favours a topic's first entities, which become hubs.
    inside = begin[topic[heads]] + (rng.random(facts) ** 2 * size[topic[heads]]).astype(np.int64)
    far = (rng.random(facts) ** 2 * entities).astype(np.int64)
    tails = by_topic[np.where(rng.random(facts) < 0.8, inside, far) % entities]
    relations = (topic[heads] * 7 + rng.integers(5, size=facts)) % 40
    centres = rng.standard_normal((topics, WIDTH), np.float32)
    return TripleGraph(heads, relations, tails, entities), centres, topic[heads]


def make_synthetic_graph(entities: int, seed: int = 1) -> tuple[TripleGraph, Floats]:
    """Make a topical graph and the vectors of its facts."""
    rng = np.random.default_rng(seed)
    graph, centres, topic = make_topical_graph(entities, rng)
    vectors = np.empty((len(topic), WIDTH), np.float32)
    for first in range(0, len(topic), 1 << 16):
        part = slice(first, first + (1 << 16))
        noise = rng.standard_normal((len(topic[part]), WIDTH), np.float32)
        vectors[part] = centres[topic[part]] + 1.5 * noise
    return graph, vectors


def _word_sums(starts: Ints, words: Ints, vocabulary: int) -> Floats:
    table = np.random.default_rng(0).standard_normal((vocabulary, WIDTH), np.float32)
    vectors = np.empty((len(starts) - 1, WIDTH), np.float32)
    for first in range(0, len(vectors), 1 << 13):
        last = min(first + (1 << 13), len(vectors))
        rows = table[words[starts[first] : starts[last]]]
        vectors[first:last] = np.add.reduceat(rows, starts[first:last] - starts[first], axis=0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


@dataclass(frozen=True)
class ClusterInput:
    """Input of every clustering method."""

    vectors: Floats
    ties: EntityRelations
    links: tuple[Ints, Ints, Floats]


def _relabel(labels: Ints) -> tuple[Ints, dict[str, Any]]:
    return relabel_by_size(labels), {}


def _dual_method(how: Any) -> Callable[[ClusterInput], tuple[Ints, dict[str, Any]]]:
    def run(scene: ClusterInput) -> tuple[Ints, dict[str, Any]]:
        found = find_communities(scene.vectors, scene.ties, how)
        started = int(found.start.max()) + 1
        return found.labels, {"started": started, "merges": len(found.merges)}

    return run


def _tree_method(how: Any) -> Callable[[ClusterInput], tuple[Ints, dict[str, Any]]]:
    def run(scene: ClusterInput) -> tuple[Ints, dict[str, Any]]:
        tree = build_hierarchy(scene.vectors, scene.ties, how).tree
        return relabel_by_size(tree.leaf), {"levels": tree.depth, "nodes": len(tree.parent)}

    return run


def _run_leiden(scene: ClusterInput) -> tuple[Ints, dict[str, Any]]:
    tree = leiden_communities(len(scene.vectors), scene.links)
    top = relabel_by_size(tree.labels_at(0))
    within = {"levels": tree.depth, "nodes": len(tree.parent)}
    return top, within | {"leaf_modularity": round(modularity(tree.leaf, *scene.links), 3)}


def _run_kmeans(scene: ClusterInput) -> tuple[Ints, dict[str, Any]]:
    return _relabel(kmeans(scene.vectors, cluster_count(len(scene.vectors))).labels)


def _run_raptor(scene: ClusterInput) -> tuple[Ints, dict[str, Any]]:
    levels = build_soft_levels(scene.vectors)
    first = np.full(len(scene.vectors), -1)
    cluster = np.repeat(np.arange(len(levels[0])), levels[0].degrees())
    first[levels[0].columns] = cluster
    return relabel_by_size(first), {"levels": len(levels)}


METHODS: dict[str, Callable[[ClusterInput], tuple[Ints, dict[str, Any]]]] = {
    "kmeans": _run_kmeans,
    "dual-paper": _dual_method(PAPER),
    "dual-balanced": _dual_method(BALANCED),
    "dual-released": _dual_method(RELEASED),
    "tree-paper": _tree_method(PAPER),
    "tree-balanced": _tree_method(BALANCED),
    "tree-released": _tree_method(RELEASED),
    "leiden": _run_leiden,
    "soft": _run_raptor,
}


def _mean_vectors(members: Csr, entities: int, facts: Floats) -> Floats:
    present = np.ones(len(facts), np.bool_)
    return entity_vectors(members, entities, facts.shape[1], lambda at: (facts[at], present[at]))


def measure(name: str, source: str, wide: int) -> dict[str, Any]:
    """Run one method once; peak memory includes its input vectors."""
    graph, facts = (
        make_synthetic_graph(int(source)) if source.isdigit() else read_triples(Path(source))
    )
    began = time.perf_counter()
    members = graph.members()
    vectors = _mean_vectors(members, graph.entities, facts)
    scene = ClusterInput(
        vectors,
        count_relations(members, graph.entities, graph.relations),
        build_entity_links(members),
    )
    del facts  # a knowledge base memory-maps them and does not hold them
    prepared = time.perf_counter()
    before = time.process_time()
    labels, more = METHODS[name](scene)
    ended = time.perf_counter()
    return {
        "seconds": round(ended - prepared, 2),
        "cpu_seconds": round(time.process_time() - before, 2),
        "prepare_seconds": round(prepared - began, 2),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "communities": int(labels.max()) + 1,
        "largest": int(np.bincount(labels).max()),
        "modularity": round(modularity(labels, *scene.links), 3),
        "silhouette": round(silhouette(vectors, labels, wide), 3),
        "purity": round(purity(labels, graph.types()), 3),
        **more,
    }


def _measure_in_process(name: str, source: str, limit: float) -> dict[str, Any]:
    """Run `measure` in its own process."""
    words = [sys.executable, "-m", "bench.communities", "--one", name, "--data", source]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=limit, check=True)
    except subprocess.TimeoutExpired:
        return {"seconds": None, "over": limit}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print a table, then the JSON result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("CLEW_METAQA", "kb.txt"))
    parser.add_argument("--grow", type=int, nargs="*", default=[])
    parser.add_argument("--only", nargs="*", default=list(METHODS))
    parser.add_argument("--one")
    parser.add_argument("--limit", type=float, default=1200)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one, given.data, 2000)))
        return
    figures: dict[str, Any] = {}
    sources = ([given.data] if Path(given.data).exists() else []) + [str(n) for n in given.grow]
    for source in sources:
        title = source if source.isdigit() else "metaqa"
        for name in given.only:
            found = figures[f"{title}/{name}"] = _measure_in_process(name, source, given.limit)
            print(f"{title:>8} {name:14}", *(f"{k}={v}" for k, v in found.items()), flush=True)
    print_result("communities", figures, {"graphs": len(sources), "width": WIDTH})


if __name__ == "__main__":
    main()
