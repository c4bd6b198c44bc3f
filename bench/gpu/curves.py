"""Training curves and time summaries of runs, from their logs.

    PYTHONPATH=src python3 -m bench.gpu.curves --out docs/results/training NAME=log.jsonl …

Draws reward, dev F1, queries and length, one line per run, and copies the logs beside them.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from clew.train.run_folder import read_log, write_plots


def main() -> None:
    """Draw the curves, copy the logs, print a time summary."""
    ask = argparse.ArgumentParser()
    ask.add_argument("logs", nargs="+", help="NAME=FILE")
    ask.add_argument("--out", type=Path, required=True)
    given = ask.parse_args()
    logs = {}
    given.out.mkdir(parents=True, exist_ok=True)
    for one in given.logs:
        name, _, file = one.partition("=")
        logs[name] = read_log(Path(file))
        rows = "".join(json.dumps(row) + "\n" for row in logs[name])
        (given.out / f"{name}.jsonl").write_text(rows, encoding="utf-8")
    write_plots(logs, given.out)
    for name, rows in logs.items():
        print(json.dumps({"run": name, **summarize_time(rows)}))


def summarize_time(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Summarise the time of a run by activity."""
    steps = [row for row in rows if "reward" in row]

    def total(name: str) -> float:
        return round(sum(row.get(name, 0.0) for row in steps), 1)

    busy = total("generating") + total("learning")
    checking = round(sum(row.get("dev_seconds", 0.0) for row in rows), 1)
    whole = busy + total("retrieving") + checking
    return {
        "steps": len(steps),
        "generating": total("generating"),
        "learning": total("learning"),
        "retrieving": total("retrieving"),
        "checking": checking,
        "busy": round(busy / max(whole, 1e-9), 3),
        "tokens_per_second": round(total("tokens_per_second") / max(len(steps), 1)),
        "episodes_per_second": round(total("episodes_per_second") / max(len(steps), 1), 1),
    }


if __name__ == "__main__":
    main()
