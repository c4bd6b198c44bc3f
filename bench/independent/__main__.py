"""Asks the questions of an independent author through the front door, without a model.

`python -m bench.independent [--set first] [--kind tables,graphs,documents] [--show]`. Reported per
kind: answers that are right and told (confidence of at least .5), right but not told, wrong and
told, refused or only quoted, and how many of the unanswerable questions are told something.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import clew
from bench.machine import print_result, read_jsonl
from clew.agents.base import Answer

FOLDER = Path(__file__).parent
TOLD = 0.5
NEAR = 0.006  # two numbers that are written with different precision
_MARKS = re.compile(r"[^\w.%\-]+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_CITED = re.compile(r"\s*\[\d+\]")


def normalise(text: str) -> str:
    """Return a text as it is compared: small letters, no commas within numbers, no marks."""
    return " ".join(_MARKS.sub(" ", text.casefold().replace(",", "")).split())


def contains(text: str, gold: str) -> bool:
    """Whether an answer has a gold value as whole words, or the same number."""
    said, wanted = f" {normalise(text)} ".replace(". ", " "), normalise(gold).rstrip(".")
    if f" {wanted} " in said:
        return True
    if _NUMBER.fullmatch(wanted) is None:
        return False
    return any(abs(float(one) - float(wanted)) < NEAR for one in _NUMBER.findall(said))


def is_right(row: dict[str, Any], answer: Answer) -> bool:
    """Whether the first statement of an answer has a gold value, or the whole of it each of all."""
    if row.get("all"):
        return all(contains(answer.answer, one) for one in row["all"])
    short = answer.candidate or _CITED.split(answer.answer)[0]
    return any(contains(short, one) for one in row["gold"])


def judge(row: dict[str, Any], answer: Answer) -> str:
    """Return what became of a question."""
    told = bool(answer.answer) and answer.confidence >= TOLD
    if row["gold"] is None:
        return "unanswerable, told" if told else "unanswerable, not told"
    if is_right(row, answer):
        return "right, told" if told else "right, not told"
    return "wrong, told" if told else "not told"


def fill(kb: Path, source: Path) -> None:
    """Make the knowledge base of a folder of files, or of one graph."""
    if source.is_dir():
        with clew.open(kb) as base:
            base.add([source])
        return
    command = [sys.executable, "-m", "clew", "import", "--kb", str(kb), str(source)]
    subprocess.run(command, check=True, capture_output=True)


def ask_source(kb: Path, rows: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield what became of each question, and a line that shows it."""
    with clew.open(kb) as base:
        for row in rows:
            answer = base.ask(row["question"])
            found = judge(row, answer)
            said = answer.answer[:100].replace("\n", " ")
            yield found, f"[{found}] {row['question']} | {row['gold']} | {said} {answer.confidence}"


def ask_kind(folder: Path, *, show: bool) -> dict[str, int]:
    """Ask all questions of one kind; return how many became what."""
    rows = read_jsonl(folder / "questions.jsonl")
    counts: Counter[str] = Counter()
    for name in dict.fromkeys(row["source"] for row in rows):
        source = folder / name
        source = source if source.is_dir() else source.with_suffix(".csv")
        with tempfile.TemporaryDirectory() as made:
            fill(Path(made) / "kb", source)
            own = [row for row in rows if row["source"] == name]
            for found, line in ask_source(Path(made) / "kb", own):
                counts[found] += 1
                if show:
                    print(line, flush=True)
    return dict(counts)


def main() -> None:
    """Ask, and print the counts."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--set", default="first", help="the author's folder")
    ask.add_argument("--kind", default="tables,graphs,documents")
    ask.add_argument("--show", action="store_true", help="print every question")
    given = ask.parse_args()
    figures = {
        kind: ask_kind(FOLDER / given.set / kind, show=given.show)
        for kind in given.kind.split(",")
        if (FOLDER / given.set / kind).is_dir()
    }
    for kind, counts in figures.items():
        print(f"{kind:10} {json.dumps(counts)}", flush=True)
    print_result("independent", figures, {"set": given.set})


if __name__ == "__main__":
    main()
