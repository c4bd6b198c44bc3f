"""Shards: measured latency of scattered search, and a simulation of walks over many shards.

`python -m bench.shards [--passages 50000] [--facts 1e9]`. It measures what one shard costs on this
machine (vectors, words, merging), counts the rounds and messages of a PageRank by push over a
power-law graph that is split by hash, with hubs replicated or not, and computes from both what
many facts on many machines would take. Assumptions are printed with the result.
"""

import argparse
import asyncio
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.machine import print_result
from clew.cluster.shards import LocalShard, ScoredKeys, Shard, WordStatistics, make_shard

Ints = NDArray[np.int64]
_DIM = 384
_ALPHA, _ERROR = 0.15, 1e-5  # of the push: restart, and residual per edge at which it stops
_HUBS = 200  # replicated nodes
_SHARDS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Assumptions:
    """What is not measured here: a network within one data centre, and prices."""

    round_trip_ms: float = 0.5
    call_overhead_ms: float = 1.0
    gigabit: float = 10.0
    message_bytes: int = 16
    chunk_per_fact: float = 0.33
    entity_per_fact: float = 0.4
    words_per_chunk: int = 60
    bytes_per_fact: int = 700
    """Row, statement and participants in the tables, with their indexes."""
    machine_gib: int = 256
    machine_cores: int = 32
    machine_per_month: float = 1100.0
    storage_per_tib_month: float = 100.0


# -- measured


async def _time_search(shards: list[Shard], vector: Any, words: dict[str, int]) -> float:
    clients = [LocalShard(shard) for shard in shards]
    times = []
    for _ in range(30):
        began = perf_counter()
        await asyncio.gather(*(one.nearest(vector) for one in clients))
        parts = await asyncio.gather(*(one.count_words(list(words)) for one in clients))
        known: WordStatistics = sum(parts[1:], start=parts[0])
        found: list[ScoredKeys] = await asyncio.gather(
            *(one.match_words(words, known) for one in clients)
        )
        np.argsort(np.concatenate([one.scores for one in found]))
        times.append(perf_counter() - began)
    return float(np.median(times))


def _make_shards(passages: int, count: int, rng: np.random.Generator) -> list[Shard]:
    common = rng.zipf(1.3, (passages, 60)) % 50_000
    vectors = rng.standard_normal((passages, _DIM), np.float32)
    owner = rng.integers(0, count, passages)
    made = []
    for shard in range(count):
        own = np.flatnonzero(owner == shard)
        texts = (" ".join(map("w{}".format, row)) for row in common[own].tolist())
        made.append(make_shard(own, own, vectors[own], texts))
    return made


def _measure(passages: int) -> list[dict[str, Any]]:
    found = []
    vector = np.ones(_DIM, np.float32)
    words = dict.fromkeys(("w3", "w17", "w120", "w4000", "w9"), 1)
    for count in (1, 2, 4):
        shards = _make_shards(passages, count, np.random.default_rng(1))
        seconds = asyncio.run(_time_search(shards, vector, words))
        found.append({"shards": count, "median_ms": round(seconds * 1000, 2)})
    for row in found:
        row["against_one"] = round(row["median_ms"] / found[0]["median_ms"], 2)
    return found


# -- simulated


def _make_graph(nodes: int, edges: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """A symmetric power-law graph as starts and columns."""
    weights = 1 / np.arange(1, nodes + 1) ** 0.8
    weights /= weights.sum()
    heads, tails = (rng.choice(nodes, edges, p=weights) for _ in range(2))
    sources, targets = np.concatenate([heads, tails]), np.concatenate([tails, heads])
    order = np.argsort(sources, kind="stable")
    starts = np.searchsorted(sources[order], np.arange(nodes + 1))
    return starts.astype(np.int64), targets[order].astype(np.int64)


def _walk(starts: Ints, columns: Ints, shards: int, hubs: int) -> dict[str, int]:
    """Rounds, pushed edges and messages between shards until every residual is small."""
    nodes = len(starts) - 1
    degrees = np.maximum(np.diff(starts), 1)
    owner = (np.arange(nodes) * 2654435761 % (1 << 32)) % shards
    residual, rank = np.zeros(nodes), np.zeros(nodes)
    residual[nodes // 3 : nodes // 3 + 3] = 1 / 3
    counted = {"rounds": 0, "edges": 0, "messages": 0}
    while len(active := np.flatnonzero(residual > _ERROR * degrees)):
        pushed = residual[active]
        rank[active] += _ALPHA * pushed
        residual[active] = 0
        sizes = degrees[active]
        offsets = np.repeat(starts[active] - np.append(0, np.cumsum(sizes)[:-1]), sizes)
        targets = columns[offsets + np.arange(sizes.sum())]
        np.add.at(residual, targets, np.repeat((1 - _ALPHA) * pushed / sizes, sizes))
        sources = np.repeat(active, sizes)
        far = (owner[sources] != owner[targets]) & (sources >= hubs) & (targets >= hubs)
        # One message per source shard and target: shards add up what they send.
        pairs = np.unique(owner[sources[far]].astype(np.int64) * nodes + targets[far])
        # A hub's parts are added up, and when it is pushed, every shard is told.
        told = np.count_nonzero(active < hubs) + len(np.unique(targets[targets < hubs]))
        counted["rounds"] += 1
        counted["edges"] += int(sizes.sum())
        counted["messages"] += len(pairs) + int(told) * (shards - 1)
    return counted


def _simulate(rng: np.random.Generator) -> list[dict[str, Any]]:
    starts, columns = _make_graph(100_000, 600_000, rng)
    found = []
    for shards in _SHARDS:
        plain, replicated = (_walk(starts, columns, shards, hubs) for hubs in (0, _HUBS))
        found.append(
            {"shards": shards, **plain, "messages_hubs_replicated": replicated["messages"]}
        )
    return found


def _plan(
    facts: float, measured: list[dict[str, Any]], walks: list[dict[str, Any]], passages: int
) -> list[dict[str, Any]]:
    """What so many facts need: machines, memory, latency and money, by number of shards."""
    given = Assumptions()
    vectors = facts * (1 + given.chunk_per_fact + given.entity_per_fact)
    memory = vectors * _DIM / 8 + facts * 60  # sign bits of every vector, and the graph's columns
    disk = vectors * _DIM * 4 + facts * given.bytes_per_fact
    one_ms = measured[0]["median_ms"] / passages  # exact, per passage, on one machine
    found = []
    for walk in walks:
        shards = walk["shards"]
        per_shard = facts * given.chunk_per_fact / shards
        # Sign bits are compared at a thirty-second of the bytes of exact vectors.
        search = one_ms * per_shard / 32 / (given.machine_cores / 2) + 2 * given.call_overhead_ms
        messages = min(walk["messages"], walk["messages_hubs_replicated"])
        sent = messages * given.message_bytes * 8 / given.gigabit / 1e6
        walking = walk["rounds"] * (given.round_trip_ms if shards > 1 else 0.0) + sent
        fits = memory / shards < given.machine_gib * (1 << 30) * 0.7
        money = shards * given.machine_per_month + disk / (1 << 40) * given.storage_per_tib_month
        found.append(
            {
                "shards": shards,
                "gib_per_machine": round(memory / shards / (1 << 30)),
                "fits": fits,
                "search_ms": round(search, 1),
                "walk_network_ms": round(walking, 1),
                "per_month": round(money),
            }
        )
    return found


def main() -> None:
    """Measure, simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=50_000)
    parser.add_argument("--facts", type=float, default=1e9)
    given = parser.parse_args()
    measured = _measure(given.passages)
    walks = _simulate(np.random.default_rng(2))
    figures = {
        "measured": measured,
        "walks": walks,
        "plan": _plan(given.facts, measured, walks, given.passages),
        "assumptions": asdict(Assumptions()),
    }
    for name in ("measured", "walks", "plan"):
        for row in figures[name]:
            print(name, row)
    print_result("shards", figures, {"passages": given.passages, "facts": given.facts})


if __name__ == "__main__":
    main()
