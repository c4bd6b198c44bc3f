"""Agents: calls and wall time with a stub of 200 ms, or a table over a dataset with a real model.

`python -m bench.agents` uses the stub. With a model (OPENAI_BASE_URL, CLEW_MODEL):
`python -m bench.agents --data DIR --kb DIR --recipes naive,clew,graphsearch+clew --limit 100`.
"""

import argparse
import asyncio
from pathlib import Path

from bench.agents_stub import measure
from bench.agents_table import AgentTable, format_header
from bench.machine import print_result

RECIPES = "naive,reader+clew,clew,graphsearch+clew,youtu,rograg,graph-r1,react,ircot"


def main() -> None:
    """Parse the options and run the stub or the dataset benchmark."""
    parser = argparse.ArgumentParser(prog="bench.agents")
    parser.add_argument("--data", type=Path, help="a dataset folder; without it, the stub")
    parser.add_argument("--kb", type=Path, default=Path("kb"))
    parser.add_argument("--recipes", default=RECIPES)
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--skip", type=int, default=0, help="questions to pass over")
    parser.add_argument("--mode", choices=("open", "reject"), default="reject")
    parser.add_argument("-k", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--out", type=Path, help="one JSON line per question and recipe")
    given = parser.parse_args()
    if given.data is None:
        figures = asyncio.run(measure())
        print_result("agents", figures, {"latency_ms": 200})
        return
    recipes = tuple(name.strip() for name in given.recipes.split(",") if name.strip())
    table = AgentTable(
        *(given.data, given.kb, recipes, given.limit, given.skip, given.mode),
        k=given.k,
        concurrency=given.concurrency,
        out=given.out,
    )
    print(format_header(), flush=True)
    found = asyncio.run(table.run())
    print_result("agents", found, {"questions": given.limit, "mode": given.mode, "k": given.k})


if __name__ == "__main__":
    main()
