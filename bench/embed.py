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

from bench.embed_peer import PEER, Peer, Took
from bench.machine import needed
from clew.llm.embed import Vectors
from clew.llm.local_embed import LocalEmbed

PEER_BATCHES = (8, 32)  # 32 is its default; the faster of the two counts
CHUNK = 64
QUERIES = 40
Sets = dict[str, list[str]]


def main() -> None:
    """Measure and print a table, then the JSON result."""
    parser = argparse.ArgumentParser(prog="python -m bench.embed", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "clew" / "bench")
    parser.add_argument("--texts", type=int, default=192)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-recall", action="store_true")
    given = parser.parse_args()
    needed(given.data, "--data")
    sets = choose_texts(given.data / "2wiki", given.texts)
    ours = {kind: LocalEmbed(given.cache / "weights", precision=kind) for kind in ("fp32", "int8")}
    figures = compare(sets, ours, given.cache, given.rounds)
    figures["recall"] = {} if given.no_recall else recalls(given.data / "2wiki", ours)
    report = {
        "bench": "embed",
        "figures": figures,
        "machine": machine(),
        "sizes": {
            name: {"texts": len(texts), "letters": sum(map(len, texts))}
            for name, texts in sets.items()
        },
    }
    print_table(figures)
    print(json.dumps(report))


# --- texts -----------------------------------------------------------------------------------


def choose_texts(folder: Path, count: int) -> Sets:
    """Take passages and their sentences from the dataset, or generate as many."""
    passages = [f"{row['title']}\n{row['text']}" for row in rows_of(folder / "corpus.jsonl")]
    questions = [row["question"] for row in rows_of(folder / "questions.jsonl")]
    if not passages:
        print(f"{folder} is absent: timing made-up texts of similar lengths instead.")
        passages, questions = made_up(count, 20, 130), made_up(QUERIES, 8, 20)
    random.Random(1).shuffle(passages)
    passages = passages[:count]
    sentences = [one for text in passages for one in re.split(r"(?<=[.!?])\s+", text) if one]
    return {
        # Sorted by length, so that the peer's batches have little padding.
        "passages": sorted(passages, key=len),
        "sentences": sorted(sentences[:count], key=len),
        "queries": questions[:QUERIES],
    }


def made_up(count: int, shortest: int, longest: int) -> list[str]:
    """Generate texts from common words."""
    draw = random.Random(2)
    words = "the river town king of film was born in war director and island mother song".split()
    return [
        " ".join(draw.choices(words, k=draw.randint(shortest, longest))) + "." for _ in range(count)
    ]


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines; a missing file has none."""
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


# --- speed -----------------------------------------------------------------------------------


def compare(sets: Sets, ours: dict[str, LocalEmbed], cache: Path, rounds: int) -> dict[str, Any]:
    """Alternate between the embedders on each set of texts; the best round counts."""
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder) / "texts.json"
        texts.write_text(json.dumps(sets), "utf-8")
        peer = Peer.start(cache, texts)
        try:
            for embed in ours.values():
                run(embed, sets["queries"])  # loads and warms up
            peer.run(texts="queries", batch=32)
            spent = {
                name: take_turns(name, sets[name], ours, peer, rounds)
                for name in ("passages", "sentences")
            }
            saved = Path(folder) / "rows.npy"
            peer.run(texts="passages", batch=32, save=str(saved))
            theirs = np.load(saved)
            latency = one_by_one(sets["queries"], ours, peer)
        finally:
            peer.stop()
    alike = {kind: fidelity(embed, sets["passages"], theirs) for kind, embed in ours.items()}
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
    name: str, texts: list[str], ours: dict[str, LocalEmbed], peer: Peer, rounds: int
) -> dict[str, Took]:
    """Return the cost of each embedder over all texts.

    Turns are short and the best round counts, so that other load on the machine does not hit one
    side only.
    """
    total: dict[str, Took] = {}
    for start in range(0, len(texts), CHUNK):
        span = [start, min(start + CHUNK, len(texts))]
        best: dict[str, Took] = {}
        for _ in range(rounds):
            costs = {kind: timed(embed, texts[slice(*span)]) for kind, embed in ours.items()}
            costs[PEER] = min(
                peer.run(texts=name, span=span, batch=batch) for batch in PEER_BATCHES
            )
            best = {side: min(took, best.get(side, took)) for side, took in costs.items()}
        total = {side: took + total.get(side, Took(0, 0)) for side, took in best.items()}
    return total


def one_by_one(queries: list[str], ours: dict[str, LocalEmbed], peer: Peer) -> dict[str, float]:
    """Return the median milliseconds of one short question per embedder."""
    latency = {
        kind: round(median(timed(embed, [query]).wall for query in queries) * 1000, 2)
        for kind, embed in ours.items()
    }
    singles = [
        peer.run(texts="queries", span=[at, at + 1], batch=1).wall for at in range(len(queries))
    ]
    return latency | {PEER: round(median(singles) * 1000, 2)}


def timed(embed: LocalEmbed, texts: list[str]) -> Took:
    """Return the cost of one call."""
    began, used = time.perf_counter(), time.process_time()
    run(embed, texts)
    return Took(time.perf_counter() - began, time.process_time() - used)


def run(embed: LocalEmbed, texts: list[str]) -> Vectors:
    """Embed texts from outside an event loop."""

    async def call() -> Vectors:
        return await embed(texts)

    return asyncio.run(call())


# --- quality ---------------------------------------------------------------------------------


def fidelity(embed: LocalEmbed, texts: list[str], theirs: Vectors) -> dict[str, float]:
    """Return mean and least cosine to the peer's vectors of the same texts."""
    alike = (run(embed, texts) * theirs).sum(axis=1)
    return {"mean": round(float(alike.mean()), 6), "least": round(float(alike.min()), 6)}


def recalls(folder: Path, ours: dict[str, LocalEmbed]) -> dict[str, dict[str, float]]:
    """Measure recall of cosine retrieval over the whole corpus, per precision."""
    corpus, questions = rows_of(folder / "corpus.jsonl"), rows_of(folder / "questions.jsonl")
    if not corpus:
        print(f"{folder} is absent: recall is skipped.")
        return {}
    texts = [f"{row['title']}\n{row['text']}" for row in corpus]
    positions = {row["id"]: at for at, row in enumerate(corpus)}
    gold = [{positions[one] for one in row["gold"]} for row in questions]
    found = {}
    for kind, embed in ours.items():
        began = time.perf_counter()
        passages = run(embed, texts)
        took = time.perf_counter() - began
        query_vectors = run(embed, [row["question"] for row in questions])
        best = np.argsort(-(query_vectors @ passages.T), axis=1, kind="stable")
        found[kind] = {
            **{f"recall@{k}": recall(best[:, :k], gold) for k in (2, 5)},
            "corpus_s": round(took, 1),
        }
    return found


def recall(best: np.ndarray, gold: list[set[int]]) -> float:
    """Return the mean share of gold passages among the best."""
    shares = [
        len(want & set(row)) / len(want) for want, row in zip(gold, best.tolist(), strict=True)
    ]
    return round(sum(shares) / len(shares), 4)


# --- the report ------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
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
