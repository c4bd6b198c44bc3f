"""`python -m bench.peers` measures; `python -m bench.peers retrieve DIR` yields retrieval records.

    python -m bench.peers [--size 1000] [--peers fast-graphrag,hipporag,…] [--latency-ms 0]
    python -m bench.peers retrieve DIR --out FILE [--limit 100] [--openie FILE | --base-url URL]

Each package has its own virtual environment under --cache, made on the first run. In the second
form the endpoint is --base-url (chat and embeddings); without it the stub answers, from a real
model's recorded extractions if --openie names a file, with the local embedder. Its calls and
tokens are counted by a proxy, for each question (`usage` in the records).
"""

import argparse
import json
import os
import tempfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.machine import print_result
from bench.peers.counting import run_counting_proxy
from bench.peers.installing import fetch_token_tables
from bench.peers.retrieval import collect_records
from bench.peers.roster import PEERS
from bench.peers.running import PeerBench, run_endpoint
from bench.peers.speed import format_table, measure_packages, time_ratios

_CACHE = os.environ.get("CLEW_BENCH_CACHE", "~/.cache/clew-bench")


def _run_speed(given: argparse.Namespace, scratch: Path) -> None:
    cache = given.cache.expanduser()
    with run_endpoint("--latency-ms", str(given.latency_ms)) as url:
        bench = PeerBench(scratch, url, fetch_token_tables(cache), limit=given.step_limit)
        rows = measure_packages(bench, given.size, given.questions, given.peers, cache)
    print("\n".join(format_table(rows)))
    times = {of: time_ratios(rows, of) for of in ("build_s", "build_cpu_s")}
    for of, words in (("build_s", "as long as"), ("build_cpu_s", "the processor time of")):
        said = ", ".join(f"{package} {much}×" for package, much in times[of].items())
        print(f"build, times {words} Clew: {said}")
    figures = {"rows": rows, "times_clew": times["build_s"], "latency_ms": given.latency_ms}
    figures["times_clew_cpu"] = times["build_cpu_s"]
    print_result("peers", figures, {"passages": given.size, "questions": given.questions})


def _run_retrieval(given: argparse.Namespace, scratch: Path) -> None:
    cache, options = given.cache.expanduser(), []
    bench = PeerBench(
        *(scratch, given.base_url, fetch_token_tables(cache)),
        limit=given.step_limit,
        model=given.model,
        embed_model=given.embed_model,
        api_key=os.environ.get("OPENAI_API_KEY", ""),
        dim=given.dim,
        top=given.top,
    )
    if not given.base_url:
        options = ["--embed", "local"]
        if given.openie:
            corpus = given.folder / "corpus.jsonl"
            options += ["--openie", str(given.openie), "--corpus", str(corpus)]
    source = nullcontext(given.base_url) if given.base_url else run_endpoint(*options)
    with source as real, run_counting_proxy(real) as url:
        proxied = replace(bench, base_url=url, usage_url=f"{url}/usage")
        rows, summaries = collect_records(proxied, given.folder, given.peers, given.limit, cache)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    given.out.write_text("".join(lines), encoding="utf-8")
    for one in summaries:
        print(one)
    sizes = {"questions": len({row["id"] for row in rows}), "records": len(rows)}
    print_result("peers-retrieve", {"packages": summaries, "out": str(given.out)}, sizes)


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--peers", type=_parse_names, default=tuple(PEERS))
    parser.add_argument("--cache", type=Path, default=Path(_CACHE))
    parser.add_argument("--scratch", type=Path, help="keep what is built in this folder")
    parser.add_argument("--step-limit", type=float, default=900.0, help="seconds for one step")
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.set_defaults(act=_run_speed)
    dataset = parser.add_subparsers().add_parser("retrieve", help="records for a dataset folder")
    dataset.add_argument("folder", type=Path)
    dataset.add_argument("--out", type=Path, required=True)
    dataset.add_argument("--limit", type=int, default=0, help="only so many questions")
    dataset.add_argument("--top", type=int, default=20)
    dataset.add_argument("--openie", type=Path, help="a real model's recorded extractions")
    dataset.add_argument("--base-url", default="")
    dataset.add_argument("--model", default="gpt-4o-mini")
    dataset.add_argument("--embed-model", default="text-embedding-3-small")
    dataset.add_argument("--dim", type=int, default=384)
    dataset.set_defaults(act=_run_retrieval)
    return parser


def _parse_names(text: str) -> tuple[str, ...]:
    names = tuple(filter(None, text.split(",")))
    for name in names:
        if name not in PEERS:
            raise argparse.ArgumentTypeError(f"no package {name!r}; have {', '.join(PEERS)}")
    return names


def main() -> None:
    """Parse the command line and run."""
    given: Any = _build_parser().parse_args()
    if given.scratch:
        given.act(given, given.scratch.resolve())
    else:
        with tempfile.TemporaryDirectory(prefix="clew-peers-") as folder:
            given.act(given, Path(folder))


if __name__ == "__main__":
    main()
