"""Every recipe with what its layout shows and with passages alone, side by side.

    python -m bench.gpu.evidence --data DIR --kbs DIR --out DIR [--recipe R,R…] [--limit 100]
        [--evidence all]

A recipe with a colon (`lightrag-linked:all`) is run with that evidence instead: another layout of a
recipe shares its row of passages alone.

Runs `clew compare SET --recipe R --evidence text,all --answers` for every data set and recipe, each
in a process of its own with one core, over a copy of the knowledge base `KBS/SET`. The endpoint and
the model come from the environment, as for `clew`. Runs that are done are kept: the same command
goes on. Prints the mean F1 over the sets per recipe and, as its last line, one JSON object.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

SETS = ("hotpotqa100", "musique100", "2wiki")
RECIPES = (
    "lightrag,lightrag-mix,pathrag,hypergraphrag,rograg-dual,graph-r1,youtu,minirag,g-retriever,tog,"
    "lego-1,lego-12,lego-14,grag-m,msgraphrag-local,raptor,e2graphrag,graphsearch+lightrag,"
    "youtu-by-model,rograg-argument,clew"
)
_CONCURRENT_QUESTIONS = 50
METRICS = "f1,em,subem,recall@5"


def run_one(given: argparse.Namespace, job: tuple[str, str], core: int) -> Path:
    """Compare one recipe with and without its graph on one data set."""
    data, (recipe, shown) = job[0], split_recipe(job[1], given.evidence)
    out = given.out / f"{data}-{recipe}"
    if (out / "table.json").is_file():
        return out
    kb = out / "kb"
    shutil.copytree(given.kbs / data, kb, dirs_exist_ok=True)
    command = [sys.executable, "-m", "clew", "compare", str(given.data / data), "--kb", str(kb)]
    command += ["--recipe", recipe, "--evidence", shown, "--answers", "--metrics", METRICS]
    command += ["--limit", str(given.limit), "--at-once", str(_CONCURRENT_QUESTIONS)]
    command += ["--out", str(out)]
    # Numpy's threads of a dozen processes would fight for the cores.
    single = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if shutil.which("taskset"):
        command = ["taskset", "-c", str(core), *command]
    with (out / "log").open("w", encoding="utf-8") as log:
        done = subprocess.run(command, env=single, stdout=log, stderr=log, check=False)
    shutil.rmtree(kb)
    if done.returncode:
        print(f"{data} {recipe}: exit {done.returncode}, see {out.name}/log", flush=True)
    return out


def split_recipe(given: str, usual: str) -> tuple[str, str]:
    """Return a recipe and the evidence to run it with: its own after a colon, or the usual."""
    name, _, own = given.partition(":")
    return name, own or usual


def collect(outs: Sequence[tuple[tuple[str, str], Path]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return F1, tokens and calls by recipe, evidence and data set."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for (data, given), out in outs:
        recipe = split_recipe(given, "")[0]
        table = out / "table.json"
        if table.is_file():
            rows = json.loads(table.read_text(encoding="utf-8"))["recipes"]
            for label, row in rows.items():
                shown = "text" if "text" in label.removeprefix(recipe) else "all"
                kept = {key: row.get(key) for key in ("f1", "tokens", "calls")}
                found.setdefault(recipe, {}).setdefault(shown, {})[data] = kept
    return found


def main() -> None:
    """Run all pairs and print the table."""
    ask = argparse.ArgumentParser()
    ask.add_argument("--data", type=Path, required=True)
    ask.add_argument("--kbs", type=Path, required=True)
    ask.add_argument("--out", type=Path, required=True)
    ask.add_argument("--recipe", default=RECIPES)
    ask.add_argument("--evidence", default="text,all", help="`all`: for another layout of a recipe")
    ask.add_argument("--sets", default=",".join(SETS))
    ask.add_argument("--limit", type=int, default=100)
    ask.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    given = ask.parse_args()
    jobs = [
        (data, recipe) for recipe, data in product(given.recipe.split(","), given.sets.split(","))
    ]
    for data, recipe in jobs:
        (given.out / f"{data}-{split_recipe(recipe, '')[0]}").mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(given.workers) as pool:
        outs = list(
            pool.map(lambda pair: run_one(given, pair[1], pair[0] % given.workers), enumerate(jobs))
        )
    found = collect(list(zip(jobs, outs, strict=True)))
    means: dict[str, dict[str, float]] = {}
    for recipe, shown in found.items():
        complete = {
            s: rows for s, rows in shown.items() if all(r["f1"] is not None for r in rows.values())
        }
        means[recipe] = {s: fmean(r["f1"] for r in rows.values()) for s, rows in complete.items()}
        both = means[recipe]
        gain = both["all"] - both["text"] if len(both) == 2 else float("nan")
        print(
            f"{recipe:24} text {both.get('text', 0):.3f}  all {both.get('all', 0):.3f}  {gain:+.3f}"
        )
    print(json.dumps({"bench": "evidence", "means": means, "rows": found}))


if __name__ == "__main__":
    main()
