"""Local embedding against sentence-transformers: same model, texts, machine and run.

`python -m bench.embed [--data DIR] [--texts N] [--rounds N] [--no-recall]`. The first run makes
an environment with torch and sentence-transformers in the cache folder (about 1.5 GB).
"""

import argparse
import asyncio
import json
import os
import platform
import random
import re
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench.embed_peer import PEER, PeerProcess, TimeCost
from bench.machine import read_jsonl, require_path
from clew.llm.embed import Vectors
from clew.llm.embed_local import LocalEmbedder

PEER_BATCHES = (8, 32)  # 32 is its default; the faster of the two counts
CHUNK = 64
QUERIES = 40
TextSets = dict[str, list[str]]


def main() -> None:
    """Measure and print a table, then the JSON result."""
    parser = argparse.ArgumentParser(prog="python -m bench.embed", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "clew" / "bench")
    parser.add_argument("--texts", type=int, default=192)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-recall", action="store_true")
    given = parser.parse_args()
    require_path(given.data, "--data")
    sets = choose_texts(given.data / "2wiki", given.texts)
    ours = {
        kind: LocalEmbedder(given.cache / "weights", precision=kind) for kind in ("fp32", "int8")
    }
    figures = compare(sets, ours, given.cache, given.rounds)
    figures["recall"] = {} if given.no_recall else measure_recall(given.data / "2wiki", ours)
    report = {
        "bench": "embed",
        "figures": figures,
        "machine": describe_machine(),
        "sizes": {
            name: {"texts": len(texts), "letters": sum(map(len, texts))}
            for name, texts in sets.items()
        },
    }
    print_table(figures)
    print(json.dumps(report))


# --- texts -----------------------------------------------------------------------------------


def choose_texts(folder: Path, count: int) -> TextSets:
    """Take passages and their sentences from the dataset, or generate as many."""
    passages = [f"{row['title']}\n{row['text']}" for row in read_jsonl(folder / "corpus.jsonl")]
    questions = [row["question"] for row in read_jsonl(folder / "questions.jsonl")]
    if not passages:
        print(f"{folder} is absent: timing made-up texts of similar lengths instead.")
        passages, questions = make_texts(count, 20, 130), make_texts(QUERIES, 8, 20)
    random.Random(1).shuffle(passages)
    passages = passages[:count]
    sentences = [one for text in passages for one in re.split(r"(?<=[.!?])\s+", text) if one]
    return {
        # Sorted by length, so that the peer's batches have little padding.
        "passages": sorted(passages, key=len),
        "sentences": sorted(sentences[:count], key=len),
        "queries": questions[:QUERIES],
    }


def make_texts(count: int, shortest: int, longest: int) -> list[str]:
    """Generate texts from common words."""
    draw = random.Random(2)
    words = "the river town king of film was born in war director and island mother song".split()
    return [
        " ".join(draw.choices(words, k=draw.randint(shortest, longest))) + "." for _ in range(count)
    ]


# --- speed -----------------------------------------------------------------------------------


def compare(
    sets: TextSets, ours: dict[str, LocalEmbedder], cache: Path, rounds: int
) -> dict[str, Any]:
    """Alternate between the embedders on each set of texts; the best round counts."""
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder) / "texts.json"
        texts.write_text(json.dumps(sets), "utf-8")
        peer = PeerProcess.start(cache, texts)
        try:
            for embed in ours.values():
                embed_texts(embed, sets["queries"])  # loads and warms up
            peer.run(texts="queries", batch=32)
            spent = {
                name: take_turns(name, sets[name], ours, peer, rounds)
                for name in ("passages", "sentences")
            }
            saved = Path(folder) / "rows.npy"
            peer.run(texts="passages", batch=32, save=str(saved))
            theirs = np.load(saved)
            latency = time_single_queries(sets["queries"], ours, peer)
        finally:
            peer.stop()
    alike = {kind: compare_vectors(embed, sets["passages"], theirs) for kind, embed in ours.items()}
    return {
        "texts_per_s": {
            name: {side: round(len(sets[name]) / took.wall, 1) for side, took in costs.items()}
            for name, costs in spent.items()
        },
        "cpu_ms_per_text": {
            name: {
                side: round(took.cpu / len(sets[name]) * 1000, 2) for side, took in costs.items()
            }
            for name, costs in spent.items()
        },
        "ratio": {
            name: {kind: round(costs[PEER].wall / costs[kind].wall, 2) for kind in ours}
            for name, costs in spent.items()
        },
        "query_ms": latency,
        "cosine_to_sentence_transformers": alike,
    }


def take_turns(
    name: str, texts: list[str], ours: dict[str, LocalEmbedder], peer: PeerProcess, rounds: int
) -> dict[str, TimeCost]:
    """Return the cost of each embedder over all texts.

    Turns are short and the best round counts, so that other load on the machine does not hit one
    side only.
    """
    total: dict[str, TimeCost] = {}
    for start in range(0, len(texts), CHUNK):
        span = [start, min(start + CHUNK, len(texts))]
        best: dict[str, TimeCost] = {}
        for _ in range(rounds):
            costs = {kind: time_call(embed, texts[slice(*span)]) for kind, embed in ours.items()}
            costs[PEER] = min(
                peer.run(texts=name, span=span, batch=batch) for batch in PEER_BATCHES
            )
            best = {side: min(took, best.get(side, took)) for side, took in costs.items()}
        total = {side: took + total.get(side, TimeCost(0, 0)) for side, took in best.items()}
    return total


def time_single_queries(
    queries: list[str], ours: dict[str, LocalEmbedder], peer: PeerProcess
) -> dict[str, float]:
    """Return the median milliseconds of one short question per embedder."""
    latency = {
        kind: round(median(time_call(embed, [query]).wall for query in queries) * 1000, 2)
        for kind, embed in ours.items()
    }
    singles = [
        peer.run(texts="queries", span=[at, at + 1], batch=1).wall for at in range(len(queries))
    ]
    return latency | {PEER: round(median(singles) * 1000, 2)}


def time_call(embed: LocalEmbedder, texts: list[str]) -> TimeCost:
    """Return the cost of one call."""
    began, used = time.perf_counter(), time.process_time()
    embed_texts(embed, texts)
    return TimeCost(time.perf_counter() - began, time.process_time() - used)


def embed_texts(embed: LocalEmbedder, texts: list[str]) -> Vectors:
    """Embed texts from outside an event loop."""

    async def call() -> Vectors:
        return await embed(texts)

    return asyncio.run(call())


# --- quality ---------------------------------------------------------------------------------


def compare_vectors(embed: LocalEmbedder, texts: list[str], theirs: Vectors) -> dict[str, float]:
    """Return mean and least cosine to the peer's vectors of the same texts."""
    alike = (embed_texts(embed, texts) * theirs).sum(axis=1)
    return {"mean": round(float(alike.mean()), 6), "least": round(float(alike.min()), 6)}


def measure_recall(folder: Path, ours: dict[str, LocalEmbedder]) -> dict[str, dict[str, float]]:
    """Measure recall of cosine retrieval over the whole corpus, per precision."""
    corpus, questions = read_jsonl(folder / "corpus.jsonl"), read_jsonl(folder / "questions.jsonl")
    if not corpus:
        print(f"{folder} is absent: recall is skipped.")
        return {}
    texts = [f"{row['title']}\n{row['text']}" for row in corpus]
    positions = {row["id"]: at for at, row in enumerate(corpus)}
    gold = [{positions[one] for one in row["gold"]} for row in questions]
    found = {}
    for kind, embed in ours.items():
        began = time.perf_counter()
        passages = embed_texts(embed, texts)
        took = time.perf_counter() - began
        query_vectors = embed_texts(embed, [row["question"] for row in questions])
        best = np.argsort(-(query_vectors @ passages.T), axis=1, kind="stable")
        found[kind] = {
            **{f"recall@{k}": mean_recall(best[:, :k], gold) for k in (2, 5)},
            "corpus_s": round(took, 1),
        }
    return found


def mean_recall(best: np.ndarray, gold: list[set[int]]) -> float:
    """Return the mean share of gold passages among the best."""
    shares = [
        len(want & set(row)) / len(want) for want, row in zip(gold, best.tolist(), strict=True)
    ]
    return round(sum(shares) / len(shares), 4)


# --- the report ------------------------------------------------------------------------------


def describe_machine() -> dict[str, Any]:
    """Describe the machine and package versions."""
    packages = ("onnxruntime", "tokenizers", "numpy")
    return {
        "arch": platform.machine(),
        "system": platform.system(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
        **({"load": round(os.getloadavg()[0], 1)} if hasattr(os, "getloadavg") else {}),
    }


def print_table(figures: dict[str, Any]) -> None:
    """Print a row per embedder."""
    speeds, ratios = figures["texts_per_s"], figures["ratio"]
    print(
        f"{'':24}{'passages/s':>12}{'sentences/s':>12}{'query ms':>10}{'recall@5':>10}{'ratio':>14}"
    )
    for side in speeds["passages"]:
        ratio = [f"{ratios[name][side]:.2f}x" for name in speeds if side in ratios[name]]
        score = figures["recall"].get(side, {}).get("recall@5", "")
        print(
            f"{side:24}{speeds['passages'][side]:>12}{speeds['sentences'][side]:>12}"
            f"{figures['query_ms'][side]:>10}{score:>10}{' '.join(ratio):>14}"
        )


if __name__ == "__main__":
    main()
