"""Paired comparison of two trained agents on the held-out questions.

    PYTHONPATH=src python3 -m bench.gpu.paired clew-answers.txt:grpo-10 chunks-answers.txt:grpo-8

Files as `bench.gpu.arm` writes them to $OUT: stages, each under `## answers-STAGE`.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from clew.evaluate.compare import resample


def load_answers(place: str) -> dict[str, dict[str, Any]]:
    """Load one stage's records by question id."""
    file, _, stage = place.rpartition(":")
    stages = Path(file).read_text(encoding="utf-8").split("## answers-")[1:]
    for one in stages:
        name, _, rows = one.partition("\n")
        if name == stage:
            return {row["id"]: row for row in map(json.loads, filter(str.strip, rows.splitlines()))}
    raise SystemExit(f"{file} has no stage {stage!r}; have {[s.split()[0] for s in stages]}")


def compare_answers(
    one: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return the F1 difference with its interval, and how many only one answers exactly."""
    if set(one) != set(other):
        raise SystemExit("the two stages were asked different questions")
    ids = sorted(one)
    values = np.array([[one[key]["f1"], other[key]["f1"]] for key in ids])
    spread = resample(values)
    low, high = np.percentile(spread.means[:, 0] - spread.means[:, 1], [2.5, 97.5])
    right = np.array([[one[key]["em"], other[key]["em"]] for key in ids])
    return {
        "questions": len(ids),
        "f1": [round(100 * float(mean), 1) for mean in values.mean(axis=0)],
        "difference": round(100 * float(values[:, 0].mean() - values[:, 1].mean()), 1),
        "interval": [round(100 * float(low), 1), round(100 * float(high), 1)],
        "p": round(spread.p_value(0, 1), 4),
        "only one exact": [
            int((right[:, 0] > right[:, 1]).sum()),
            int((right[:, 0] < right[:, 1]).sum()),
        ],
    }


def main() -> None:
    """Compare the first stage with every other."""
    ask = argparse.ArgumentParser()
    ask.add_argument("places", nargs="+", help="FILE:STAGE, two or more")
    first, *others = ask.parse_args().places
    for other in others:
        found = compare_answers(load_answers(first), load_answers(other))
        print(json.dumps({"of": [Path(first).name, Path(other).name], **found}))


if __name__ == "__main__":
    main()
