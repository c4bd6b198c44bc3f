"""Shards: measured search over a knowledge base, and a simulation of walks over many shards.

`python -m bench.shards --kb FOLDER --questions FILE [--shards 1,2,4] [--on local|ray]`
asks the same questions of the whole and of shards, and prints median latency, the overlap of the
best ten and rounds of PageRank. From these and from walks over a power-law graph that is split by
hash, with hubs replicated or not, it computes what many facts on many machines would take; what is
assumed is printed with the result.
"""

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.machine import print_result, require_path
from clew.cluster.sharded_graph import ShardedGraph
from clew.cluster.sharded_view import SpreadLocally
from clew.config import Settings
from clew.engine import KnowledgeBase

Ints = NDArray[np.int64]
_DIM = 384
_ALPHA, _ERROR = 0.15, 1e-5  # of the push: restart, and residual per edge at which it stops
_HUBS = 200  # replicated nodes
_SHARDS = (1, 2, 4, 8, 16, 32, 64)
_RECIPES = ("naive", "bm25", "hybrid", "hipporag2", "clew")


@dataclass(frozen=True)
class Assumptions:
    """What is not measured here: a network within one data centre, and prices."""

    round_trip_ms: float = 0.5
    gigabit: float = 10.0
    message_bytes: int = 16
    chunk_per_fact: float = 0.33
    entity_per_fact: float = 0.4
    bytes_per_fact: int = 700
    """Row, statement and participants in the tables, with their indexes."""
    derived_bytes_per_fact: int = 350
    """Held by the process that derives the arrays, while it does."""
    copies: int = 2
    """Of every shard: the loss of one must not stop questions."""
    database_machines: int = 2
    """PostgreSQL, and its standby."""
    machine_gib: int = 256
    machine_cores: int = 32
    machine_per_month: float = 1100.0
    storage_per_tib_month: float = 100.0


@dataclass(frozen=True)
class Calibration:
    """What was measured, here or over the shards of a knowledge base."""

    per_vector_ms: float
    """To compare a vector with another, exactly."""
    rounds: int = 20
    """Of a walk; without a measurement, those of damping .5 down to the stated error."""
    call_ms: float = 1.0
    """What one more shard costs the front in a question; measured on Ray only."""
    round_ms: float = 1.0
    """What one more shard costs the front in a round of a walk; measured on Ray only."""
    work_ms: float = 0.0
    """What a walk takes on one machine."""


# -- measured


def _read_questions(file: Path, most: int) -> list[str]:
    """The field `question` of a JSON list or of JSON lines."""
    text = file.read_text(encoding="utf-8")
    rows = json.loads(text) if text.lstrip().startswith("[") else map(json.loads, text.splitlines())
    return [str(row["question"]) for row in rows][:most]


class _Asked(NamedTuple):
    tops: list[list[str]]
    wall: float
    used: float
    """Processor time of this process; other processes of a cluster are not in it."""


async def _ask(
    bases: Mapping[int, KnowledgeBase],
    recipe: str,
    questions: Sequence[str],
) -> dict[int, _Asked]:
    """Of each base the best ten of each question, and the median of the seconds.

    Each question is asked once, as words and vectors that were looked up before are kept. Bases
    take turns, so that what else the machine does is the same for all.
    """
    for base in bases.values():
        await base.search(questions[0], recipe=recipe)  # what is made once per generation
    tops: dict[int, list[list[str]]] = {count: [] for count in bases}
    seconds: dict[int, list[list[float]]] = {count: [] for count in bases}
    for question in questions:
        for count, base in bases.items():
            began, used = perf_counter(), process_time()
            results = await base.search(question, recipe=recipe)
            seconds[count].append([perf_counter() - began, process_time() - used])
            tops[count].append([chunk.id for chunk in results.evidence.chunks[:10]])
    return {
        count: _Asked(tops[count], *np.median(seconds[count], axis=0).tolist()) for count in bases
    }


def _use_shards(base: KnowledgeBase, count: int, on: str) -> None:
    if on == "local":
        base.spread = SpreadLocally(count)
    else:
        from clew.cluster.ray_shards import spread_over_ray
        from clew.cluster.ray_tasks import connect

        connect("local")  # one of its own, whatever else runs on this machine
        spread_over_ray(base, count)
    base.forget_view()


async def _count_rounds(base: KnowledgeBase) -> int:
    async with base.store.snapshot() as now:
        memo = (await base.context(now, "")).view.memo
    return max((one.rounds for one in memo.values() if isinstance(one, ShardedGraph)), default=0)


async def _measure(
    kb: Path, questions: Sequence[str], recipes: Sequence[str], counts: Sequence[int], on: str
) -> list[dict[str, Any]]:
    bases = {count: await KnowledgeBase.open(Settings(kb=kb)) for count in (0, *counts)}
    for count in counts:
        _use_shards(bases[count], count, on)
    found: list[dict[str, Any]] = []
    for recipe in recipes:
        asked = await _ask(bases, recipe, questions)
        # Within this process its own work counts, whatever else the machine does.
        median = {n: one.used if on == "local" else one.wall for n, one in asked.items()}
        whole = asked[0].tops
        for count in counts:
            tops = asked[count].tops
            same = [
                len(set(one) & set(two)) / max(1, len(two))
                for one, two in zip(tops, whole, strict=True)
            ]
            row = {
                "recipe": recipe,
                "shards": count,
                "median_ms": round(median[count] * 1000, 2),
                "whole_ms": round(median[0] * 1000, 2),
                "against_one": round(median[count] / median[counts[0]], 2),
                "front_ms": round(asked[count].used * 1000, 2),
                "overlap_10": round(float(np.mean(same)), 4),
                "identical_10": sum(map(list.__eq__, tops, whole)) / len(tops),
                "rounds": await _count_rounds(bases[count]) if recipe == "hipporag2" else 0,
            }
            print("measured", row, flush=True)
            found.append(row)
    for base in bases.values():
        await base.close()
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


def _time_vectors(rows: int) -> float:
    """Milliseconds to compare a vector with so many, exactly, on this machine."""
    rng = np.random.default_rng(1)
    matrix, vector = rng.standard_normal((rows, _DIM), np.float32), np.ones(_DIM, np.float32)
    times = []
    for _ in range(20):
        began = perf_counter()
        matrix @ vector
        times.append(perf_counter() - began)
    return float(np.median(times)) * 1000


def _calibrate(measured: list[dict[str, Any]], on: str) -> Calibration:
    """The figures of shards, where they were measured: what the second one adds to the front."""
    by = {(row["recipe"], row["shards"]): row for row in measured}
    found = Calibration(_time_vectors(50_000) / 50_000)
    if walk := by.get(("hipporag2", 2)):
        found = replace(found, rounds=walk["rounds"], work_ms=walk["whole_ms"])
        if on == "ray" and (one := by.get(("hipporag2", 1))):
            more = (walk["front_ms"] - one["front_ms"]) / walk["rounds"]
            found = replace(found, round_ms=round(max(0.0, more), 2))
    if on == "ray" and (one := by.get(("naive", 1))) and (two := by.get(("naive", 2))):
        more = two["front_ms"] - one["front_ms"]
        found = replace(found, call_ms=round(max(0.0, more), 2))
    return found


def _plan(facts: float, known: Calibration, walks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What so many facts need: machines, memory, latency and money, by number of shards."""
    given = Assumptions()
    vectors = facts * (1 + given.chunk_per_fact + given.entity_per_fact)
    memory = vectors * _DIM / 8 + facts * 60  # sign bits of every vector, and the graph's columns
    # Passages are stored as float32, sentences and names as float16.
    exact = facts * _DIM * (given.chunk_per_fact * 4 + (1 + given.entity_per_fact) * 2)
    files, tables = exact + memory, facts * given.bytes_per_fact
    # With each copy, in the object store, and with each database.
    disk = (given.copies + 1) * files + given.database_machines * tables
    usable = given.machine_gib * (1 << 30) * 0.7
    deriving = ceil(facts * given.derived_bytes_per_fact / usable)  # one, so many times as large
    found = []
    for walk in walks:
        shards = walk["shards"]
        per_shard = facts * given.chunk_per_fact / shards
        # Sign bits are compared at a thirty-second of the bytes of exact vectors.
        search = known.per_vector_ms * per_shard / 32 / (given.machine_cores / 2)
        messages = min(walk["messages"], walk["messages_hubs_replicated"])
        sent = messages * given.message_bytes * 8 / given.gigabit / 1e6
        # Rounds go through the front: one trip each, and a call to every shard.
        rounds = max(known.rounds, walk["rounds"]) if shards > 1 else 0
        network = rounds * given.round_trip_ms + sent
        fits = 2 * memory / shards < usable  # a generation, and the next one
        machines = given.copies * shards + given.database_machines
        rent = (machines + deriving) * given.machine_per_month
        money = rent + disk / (1 << 40) * given.storage_per_tib_month
        found.append(
            {
                "shards": shards,
                "gib_per_machine": round(memory / shards / (1 << 30)),
                "fits": fits,
                "machines": machines + 1,
                "fetch_minutes": round(files / shards * 8 / given.gigabit / 6e10, 1),
                "search_ms": round(search + shards * known.call_ms + given.round_trip_ms, 1),
                "walk_network_ms": round(network, 1),
                "walk_ms": round(known.work_ms + network + rounds * shards * known.round_ms, 1),
                "per_month": round(money),
            }
        )
    return found


def main() -> None:
    """Measure, simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kb", type=Path)
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--recipes", default=",".join(_RECIPES))
    parser.add_argument("--most", type=int, default=30)
    parser.add_argument("--shards", default="1,2,4")
    parser.add_argument("--on", choices=("local", "ray"), default="local")
    parser.add_argument("--facts", type=float, default=1e9)
    parser.add_argument(
        "--calibration", type=json.loads, help="JSON: what an earlier run printed as calibrated."
    )
    given = parser.parse_args()
    measured: list[dict[str, Any]] = []
    if given.kb is not None:
        questions = _read_questions(require_path(given.questions, "--questions"), given.most)
        counts = [int(count) for count in given.shards.split(",")]
        recipes = given.recipes.split(",")
        measured = asyncio.run(_measure(given.kb, questions, recipes, counts, given.on))
    walks = _simulate(np.random.default_rng(2))
    known = _calibrate(measured, given.on)
    if given.calibration is not None:
        known = Calibration(**given.calibration)
    print("calibrated", asdict(known))
    figures: dict[str, Any] = {
        "measured": measured,
        "walks": walks,
        "calibration": asdict(known),
        "plan": _plan(given.facts, known, walks),
        "assumptions": asdict(Assumptions()),
    }
    for name in ("walks", "plan"):
        for row in figures[name]:
            print(name, row)
    print_result("shards", figures, {"on": given.on, "facts": given.facts})


if __name__ == "__main__":
    main()
