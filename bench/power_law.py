"""Generates a power-law graph of any size into `.npy` files, in bounded memory.

`python -m bench.power_law FOLDER [--nodes N --edges E --directed --one-sided --seed 0]`

Both ends of an edge are drawn with probability proportional to `rank ** (-2/3)`, which gives
degrees a power law with exponent 2.5; `--one-sided` draws the first end uniformly instead. Ranks
are scattered over the node numbers, so that hubs are not adjacent. Self-loops and parallel edges
stay. An undirected edge is written at both ends.
"""

import argparse
import shutil
import tempfile
import time
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr

BLOCK_EDGES = 4_000_000  # edges drawn at a time
BUCKET_ENTRIES = 8_000_000  # entries sorted at a time, about


@dataclass(frozen=True)
class GraphSpec:
    """Parameters of a graph; `name` is its folder."""

    nodes: int
    edges: int
    directed: bool = False
    one_sided: bool = False
    seed: int = 0

    @property
    def name(self) -> str:
        """A folder name with all parameters."""
        kind = ("directed" if self.directed else "undirected") + "-one-sided" * self.one_sided
        return f"power-law-{kind}-{self.nodes}-{self.edges}-{self.seed}"

    @property
    def entries(self) -> int:
        """Length of `columns`."""
        return self.edges * (1 if self.directed else 2)


def load_power_law(recipe: GraphSpec, folder: Path) -> Csr:
    """Memory-map the graph from `folder`, generating it if it is absent."""
    path = folder / recipe.name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch) / "made"
            made.mkdir()
            _write_graph(recipe, Path(scratch), made)
            # A folder with the right name is always complete.
            made.rename(path)
    starts = np.load(path / "starts.npy", mmap_mode="r", allow_pickle=False)
    columns = np.load(path / "columns.npy", mmap_mode="r", allow_pickle=False)
    # All weights are 1: one number broadcast with a stride of zero.
    return Csr(starts, columns, np.broadcast_to(np.float32(1), len(columns)))


def remove_graph(recipe: GraphSpec, folder: Path) -> None:
    """Delete the graph's files."""
    shutil.rmtree(folder / recipe.name, ignore_errors=True)


def _write_graph(recipe: GraphSpec, scratch: Path, made: Path) -> None:
    """Draw edges into buckets by row, then sort each bucket."""
    buckets = max(1, recipe.entries // BUCKET_ENTRIES)
    width = -(-recipe.nodes // buckets)
    files = [open(scratch / f"bucket-{at}", "wb") for at in range(buckets)]
    for block, first in enumerate(range(0, recipe.edges, BLOCK_EDGES)):
        one, other = _draw_edges(recipe, block, min(BLOCK_EDGES, recipe.edges - first))
        keys = [one * recipe.nodes + other]
        if not recipe.directed:
            keys.append(other * recipe.nodes + one)
        key = np.concatenate(keys)
        bucket = (key // recipe.nodes // width).astype(np.uint16)
        order = np.argsort(bucket, kind="stable")
        edges = np.searchsorted(bucket[order], np.arange(buckets + 1))
        key = key[order]
        for at, file in enumerate(files):
            key[edges[at] : edges[at + 1]].tofile(file)
    for file in files:
        file.close()
    starts = _open_array(made / "starts.npy", np.int64, recipe.nodes + 1)
    columns = _open_array(made / "columns.npy", np.int32, recipe.entries)
    written = 0
    for at, file in enumerate(files):
        key = np.sort(np.fromfile(file.name, np.int64))
        Path(file.name).unlink()
        row = key // recipe.nodes
        columns[written : written + len(key)] = key - row * recipe.nodes
        first, last = at * width, min((at + 1) * width, recipe.nodes)
        count = np.bincount(row - first, minlength=last - first)
        starts[first + 1 : last + 1] = written + np.cumsum(count)
        written += len(key)
    starts.flush()
    columns.flush()


def _open_array(path: Path, kind: Any, size: int) -> "np.memmap[Any, Any]":
    return np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=(size,))


def _draw_edges(
    recipe: GraphSpec, block: int, size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw both ends of `size` edges, reproducibly per seed and block."""
    random = np.random.default_rng([recipe.seed, block])
    one, other = random.random(size), random.random(size)
    if not recipe.one_sided:
        one = one**3
    return _scatter_ranks(recipe.nodes, one), _scatter_ranks(recipe.nodes, other**3)


def _scatter_ranks(nodes: int, place: NDArray[np.float64]) -> NDArray[np.int64]:
    """Map numbers in [0, 1) to ranks, scattered over nodes by modular multiplication."""
    rank = (place * nodes).astype(np.int64)
    step = int(nodes * 0.6180339887) | 1
    while gcd(step, nodes) > 1:
        step += 2
    found: NDArray[np.int64] = rank * step % nodes
    return found


def main() -> None:
    """Make one graph and print its size and degrees."""
    parser = argparse.ArgumentParser(prog="python -m bench.power_law", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=3_000_000)
    parser.add_argument("--directed", action="store_true")
    parser.add_argument("--one-sided", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    recipe = GraphSpec(given.nodes, given.edges, given.directed, given.one_sided, given.seed)
    began = time.perf_counter()
    links = load_power_law(recipe, given.folder)
    degrees = links.degrees()
    print(f"{recipe.name} after {time.perf_counter() - began:.1f} s")
    print(f"largest degree {degrees.max()}, without edges {np.mean(degrees == 0):.1%}")


if __name__ == "__main__":
    main()
