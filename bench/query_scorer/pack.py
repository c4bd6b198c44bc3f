"""Packs graphs with their questions, one a line; leaves out what does not fit its graph.

python -m bench.query_scorer.pack LINES.jsonl … --out bench/query_scorer/divided_graphs.jsonl.gz
"""

import argparse
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

from bench.machine import print_result
from bench.query_scorer.asked import DIVIDED_GRAPHS, SmallGraph
from bench.query_scorer.divided import Unfounded, read_meaning


def check_line(line: dict[str, Any], counts: Counter[str]) -> dict[str, Any]:
    """Return a graph with the questions that fit it."""
    graph, kept = SmallGraph.read(line), []
    for ask in line["asks"]:
        try:
            read_meaning(graph, ask)
        except (Unfounded, KeyError, TypeError, AttributeError) as problem:
            counts["left out"] += 1
            print(f"{line['graph']}: {ask['q'][0]}: {problem}")
            continue
        counts["asks"] += 1
        counts["wordings"] += len(ask["q"])
        counts["without an answer"] += ask["path"] == "none"
        kept.append(ask)
    return {**line, "asks": kept}


def main() -> None:
    """Pack the graphs, a later line of the same name instead of an earlier one."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("files", type=Path, nargs="+")
    ask.add_argument("--out", type=Path, default=DIVIDED_GRAPHS)
    given = ask.parse_args()
    counts: Counter[str] = Counter()
    lines: dict[str, dict[str, Any]] = {}
    for file in given.files:
        for text in file.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            lines[line["graph"]] = line
    packed = [check_line(line, counts) for line in lines.values()]
    texts = [json.dumps(line, ensure_ascii=False) + "\n" for line in packed]
    given.out.write_bytes(gzip.compress("".join(texts).encode(), mtime=0))
    print_result("query_scorer.pack", {"graphs": len(packed), **counts}, {})


if __name__ == "__main__":
    main()
