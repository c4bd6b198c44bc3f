"""Personalised PageRank on a memory-mapped power-law graph: approximate against exact.

`python -m bench.ppr [--nodes 100000000 --edges 300000000] [--folder DIR] [--quick] [--peers]`

The graph is made once, in `--folder`, and kept there (3.2 GB at full size) unless `--remove` is
given. `--peers` fetches scipy, igraph and networkx into a temporary folder for the comparison on
a graph of 100,000 nodes; without it, those that are installed are compared.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench.machine import percentiles_ms, print_result
from bench.power_law import GraphSpec, load_power_law, remove_graph
from clew.graph.csr import Csr
from clew.graph.pagerank import PageRankResult, approximate_pagerank, global_pagerank, pagerank
from clew.graph.pagerank_push import allocate_slots
from clew.graph.transition import TransitionGraph, build_transition_graph

K = 1000
DAMPING = 0.85
TOLERANCE = 1e-6  # L1 error of exact scores; the 1000th score is about 4e-5
WARM_UP = 10
ROUNDS = 5
SMALL = GraphSpec(100_000, 500_000)


def _anonymous_megabytes() -> float:
    """Anonymous memory of this process, without file pages; 0 where /proc is missing."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


class PeakMemory:
    """Samples the peak memory of this process."""

    def __enter__(self) -> "PeakMemory":
        """Start sampling every few milliseconds."""
        self.most = self.base = _anonymous_megabytes()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch_memory, daemon=True)
        self._thread.start()
        return self

    def _watch_memory(self) -> None:
        while not self._stop.wait(0.02):
            self.most = max(self.most, _anonymous_megabytes())

    def __exit__(self, *_: object) -> None:
        """Stop sampling."""
        self._stop.set()
        self._thread.join()

    @property
    def extra(self) -> int:
        """Peak megabytes above the start."""
        return round(self.most - self.base)


def _make_queries(links: Csr, count: int) -> list[dict[int, float]]:
    """Draw queries of 1 to 5 seed nodes that have edges."""
    random = np.random.default_rng(7)
    found: list[dict[int, float]] = []
    while len(found) < count:
        nodes = random.integers(0, len(links), 1 + len(found) % 5)
        if all(links.starts[node + 1] > links.starts[node] for node in nodes):
            found.append({int(node): 1.0 for node in nodes})
    return found


def _top_nodes(scores: np.ndarray) -> np.ndarray:
    best = np.argpartition(-scores, K)[:K]
    return best[np.argsort(-scores[best])]


def _measure_at_scale(recipe: GraphSpec, folder: Path, queries: int, exact: int) -> dict[str, Any]:
    """Compute approximate scores for all queries, and exact ones for some."""
    began = time.perf_counter()
    links = load_power_law(recipe, folder)
    print(f"{recipe.name}: there after {time.perf_counter() - began:.0f} s", flush=True)
    began = time.perf_counter()
    _read_pages(links)
    warm = time.perf_counter() - began
    questions = _make_queries(links, WARM_UP + queries)
    with PeakMemory() as peak:
        began = time.perf_counter()
        ground = _prepare(links, recipe.directed)
        where = allocate_slots(len(links))
        ready = time.perf_counter() - began
        wall, busy, answers = [], [], []
        for seeds in questions:
            began, cpu = time.perf_counter(), time.process_time()
            answers.append(approximate_pagerank(ground, where, seeds, K, damping=DAMPING))
            wall.append(time.perf_counter() - began)
            busy.append(time.process_time() - cpu)
    wall, busy = wall[WARM_UP:], busy[WARM_UP:]
    print(f"approximate: {median(wall) * 1e3:.1f} ms, of it {median(busy) * 1e3:.1f} ms processor")
    figures: dict[str, Any] = {
        "nodes": recipe.nodes,
        "edges": recipe.edges,
        "directed": recipe.directed,
        "read_once_s": round(warm, 1),
        "ready_s": round(ready, 1),
        "approximate_ms_median": round(median(wall) * 1e3, 1),
        "approximate_ms": percentiles_ms(wall),
        "approximate_processor_ms_median": round(median(busy) * 1e3, 1),
        "touched_median": int(median(answer.touched for answer in answers[WARM_UP:])),
        "extra_memory_mb": peak.extra,
    }
    exact_range = range(len(answers) - exact, len(answers))
    return figures | _measure_exact(ground, [(questions[at], answers[at]) for at in exact_range])


def _read_pages(links: Csr) -> None:
    """Read the files once, so that they are in the page cache."""
    step = 1 << 24
    for array in (links.starts, links.columns):
        for first in range(0, len(array), step):
            array[first : first + step].max()


def _prepare(links: Csr, directed: bool) -> TransitionGraph:
    ground = build_transition_graph(links, directed=directed)
    if not directed:
        return ground
    return build_transition_graph(
        links, directed=True, background=global_pagerank(ground, tolerance=1e-3)
    )


def _measure_exact(
    ground: TransitionGraph, asked: list[tuple[dict[int, float], PageRankResult]]
) -> dict[str, Any]:
    """Solve the same queries exactly and compare the top nodes."""
    seconds, overlaps, worst = [], [], 0.0
    with PeakMemory() as peak:
        for seeds, answer in asked:
            began = time.perf_counter()
            scores = pagerank(ground, [seeds], damping=DAMPING, tolerance=TOLERANCE)[0]
            seconds.append(time.perf_counter() - began)
            overlaps.append(len(np.intersect1d(answer.nodes, _top_nodes(scores))) / K)
            errors = np.abs(answer.scores - scores[answer.nodes]) - answer.bounds
            worst = max(worst, float(errors.max()))
            print(f"exact: {seconds[-1]:.1f} s, overlap {overlaps[-1]:.3f}", flush=True)
    return {
        "exact_s": round(median(seconds), 1) if seconds else None,
        "exact_queries": len(seconds),
        "exact_extra_memory_mb": peak.extra,
        "overlap_top1000": round(float(np.mean(overlaps)), 4) if seconds else None,
        "overlap_top1000_least": min(overlaps, default=None),
        "bounds_hold": worst <= TOLERANCE,
    }


# -- the small graph, with other libraries


def _time_median(run: Callable[[], Any]) -> tuple[float, Any]:
    took = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        found = run()
        took.append(time.perf_counter() - began)
    return round(median(took) * 1e3, 2), found


def _compare_libraries(folder: Path) -> dict[str, Any]:
    """Time one query on the small graph with Clew and each installed library."""
    links = load_power_law(SMALL, folder)
    seeds = _make_queries(links, 3)[-1]
    ground, where = build_transition_graph(links), allocate_slots(len(links))
    runs: dict[str, Callable[[], Any]] = {
        "clew_approximate": lambda: approximate_pagerank(ground, where, seeds, K, damping=DAMPING),
        "clew_exact": lambda: pagerank(ground, [seeds], damping=DAMPING, tolerance=TOLERANCE)[0],
    }
    for name, prepare in (
        ("scipy", _prepare_scipy),
        ("igraph", _prepare_igraph),
        ("networkx", _prepare_networkx),
    ):
        try:
            import_module(name)
        except ImportError:
            print(f"{name} is not installed and left out; --peers fetches it for this run")
            continue
        runs[name] = prepare(links, seeds)
    figures: dict[str, Any] = {}
    scores: dict[str, Any] = {}
    for name, run in runs.items():
        figures[f"{name}_ms"], scores[name] = _time_median(run)
    top = _top_nodes(scores.pop("clew_exact"))
    figures["overlap_top1000"] = len(np.intersect1d(scores.pop("clew_approximate").nodes, top)) / K
    for name, theirs in scores.items():
        figures[f"{name}_overlap_top1000"] = len(np.intersect1d(_top_nodes(theirs), top)) / K
    return figures


def _prepare_scipy(links: Csr, seeds: dict[int, float]) -> Callable[[], Any]:
    sparse = import_module("scipy.sparse")
    count = len(links)
    degrees = np.maximum(np.diff(links.starts), 1)
    shape = (np.ones(len(links.columns)), np.array(links.columns), np.array(links.starts))
    walk = (sparse.diags(1 / degrees) @ sparse.csr_matrix(shape, (count, count))).T.tocsr()
    start = np.zeros(count)
    start[list(seeds)] = 1 / len(seeds)

    def run() -> np.ndarray:
        scores = start
        while True:
            following = DAMPING * (walk @ scores)
            following += (1 - following.sum()) * start
            change = np.abs(following - scores).sum()
            scores = following
            # The same guarantee as ours: an error of at most the tolerance.
            if change * DAMPING / (1 - DAMPING) <= TOLERANCE:
                return scores

    return run


def _unique_edges(links: Csr) -> np.ndarray:
    """Return each undirected edge once; self-loops, too, are stored twice."""
    rows = np.repeat(np.arange(len(links)), np.diff(links.starts))
    both = np.stack([rows, np.asarray(links.columns, np.int64)], axis=1)
    loops = np.flatnonzero(both[:, 0] == both[:, 1])[::2]
    return np.concatenate([both[both[:, 0] < both[:, 1]], both[loops]])


def _prepare_igraph(links: Csr, seeds: dict[int, float]) -> Callable[[], Any]:
    graph = import_module("igraph").Graph(n=len(links), edges=_unique_edges(links).tolist())
    start = np.zeros(len(links))
    start[list(seeds)] = 1
    reset = start.tolist()

    def run() -> np.ndarray:
        return np.array(graph.personalized_pagerank(damping=DAMPING, reset=reset, directed=False))

    return run


def _prepare_networkx(links: Csr, seeds: dict[int, float]) -> Callable[[], Any]:
    networkx = import_module("networkx")
    graph = networkx.MultiGraph()
    graph.add_nodes_from(range(len(links)))
    graph.add_edges_from(_unique_edges(links).tolist())

    def run() -> np.ndarray:
        found = networkx.pagerank(
            graph, DAMPING, personalization=seeds, tol=TOLERANCE / len(links), max_iter=500
        )
        return np.array([found[node] for node in range(len(links))])

    return run


def _install_libraries(folder: str) -> None:
    """Install the peer libraries into a temporary folder at the end of sys.path."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder]
    subprocess.run([*pip, "scipy", "igraph", "networkx"], check=True)
    sys.path.append(folder)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.ppr", description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000_000)
    parser.add_argument("--edges", type=int, default=300_000_000)
    parser.add_argument("--directed", action="store_true")
    parser.add_argument("--one-sided", action="store_true")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "clew-bench"
    parser.add_argument("--folder", type=Path, default=cache)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--exact", type=int, default=2, help="how many queries to solve exactly")
    parser.add_argument("--quick", action="store_true", help="1,000,000 nodes")
    parser.add_argument("--peers", action="store_true", help="fetch other libraries to compare")
    parser.add_argument("--remove", action="store_true", help="delete the graph afterwards")
    given = parser.parse_args()
    if given.quick:
        given.nodes, given.edges = 1_000_000, 3_000_000
    recipe = GraphSpec(given.nodes, given.edges, given.directed, given.one_sided)
    figures = _measure_at_scale(recipe, given.folder, given.queries, given.exact)
    with tempfile.TemporaryDirectory() as scratch:
        if given.peers:
            _install_libraries(scratch)
        figures["small"] = _compare_libraries(given.folder)
    if given.remove:
        remove_graph(recipe, given.folder)
    for name, value in figures.items():
        print(f"{name:>32}  {value}")
    sizes = {"small_nodes": SMALL.nodes, "small_edges": SMALL.edges, "k": K}
    print_result("ppr", figures, sizes | {"damping": DAMPING, "tolerance": TOLERANCE})


if __name__ == "__main__":
    main()
