"""Questions in everyday words over small tables of twelve domains, asked with the default settings.

`python -m bench.small_tables [--split dev|held] [--show] [--set NAME]`. No model is used. Each set
is a knowledge base of its own, made from `small_tables.toml`. Reported per split: the share of the
questions that are right, how many are told wrongly with a confidence of at least .5, and how many
of those that the tables cannot answer are answered with as much.
"""

import argparse
import asyncio
import csv
import io
import sqlite3
import tempfile
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import Any

from bench.machine import print_result
from clew.agents.base import Answer
from clew.config import Settings
from clew.engine import KnowledgeBase

SETS = Path(__file__).with_suffix(".toml")
TRUSTED = 0.5  # confidence from which an answer is told as one


def write_files(folder: Path, files: dict[str, str]) -> list[Path]:
    """Write the tables of a set; `NAME.sqlite#TABLE` is a table of a database."""
    found: dict[Path, None] = {}
    for name, text in files.items():
        file, _, inner = name.partition("#")
        path = folder / file
        found[path] = None
        if not inner:
            path.write_text(text.lstrip(), encoding="utf-8")
            continue
        header, *rows = csv.reader(io.StringIO(text.strip()))
        with sqlite3.connect(path) as db:
            db.execute(f"create table {inner} ({', '.join(header)})")
            marks = ", ".join("?" * len(header))
            values = [[cell or None for cell in row] for row in rows]
            db.executemany(f"insert into {inner} values ({marks})", values)  # noqa: S608 — our own
    return list(found)


def is_right(gold: str, answer: Answer) -> bool:
    """Whether an answer has just the gold values, or is none where there is none."""
    golds = [split_values(one) for one in gold.split(" / ")]
    if answer.verdict == "refused" or answer.confidence < TRUSTED:
        return gold.endswith("/ ") or not gold
    said = answer.candidate or answer.answer
    return split_values(said.replace(", ", " | ")) in golds


def split_values(text: str) -> set[str]:
    """Return the values of a gold or an answer, as they are compared."""
    return {_plain(part) for part in text.split("|")}


def _plain(text: str) -> str:
    """Return a value as it is compared: numbers without unit and trailing zeros."""
    text = text.strip().rstrip(".").removeprefix("€").removeprefix("EUR ").casefold()
    number = text.partition(" ")[0]
    try:
        return f"{float(number):g}"
    except ValueError:
        return text


async def ask_set(one: dict[str, Any], show: bool) -> Counter[str]:
    """Build the knowledge base of a set and ask its questions."""
    counted: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="clew-small-") as folder:
        paths = write_files(Path(folder), one["files"])
        settings = Settings(kb=Path(folder) / "kb")
        base = await KnowledgeBase.open(settings, create=True)
        try:
            await base.add(paths)
            for question, gold in one["questions"].items():
                answer = await base.ask(question)
                counted.update(_count(gold, answer))
                if show:
                    _print_answer(question, gold, answer)
        finally:
            await base.close()
    return counted


def _count(gold: str, answer: Answer) -> Counter[str]:
    right = is_right(gold, answer)
    told = answer.verdict != "refused" and answer.confidence >= TRUSTED
    lacks = not gold or gold.endswith("/ ")
    return Counter(
        questions=1,
        right=right,
        told_wrongly=told and not right,
        unanswerable=lacks,
        unanswerable_told=lacks and told and not right,
    )


def _print_answer(question: str, gold: str, answer: Answer) -> None:
    mark = "ok  " if is_right(gold, answer) else "FAIL"
    said = (answer.candidate or answer.answer)[:70]
    print(f"{mark} {question} [{gold}] -> {said!r} {answer.verdict} {answer.confidence:.2f}")
    if mark == "FAIL" or not answer.computed:
        print(f"       {answer.note[:150]}")


async def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", choices=("dev", "held"))
    parser.add_argument("--set", default="")
    parser.add_argument("--show", action="store_true", help="show each answer")
    given = parser.parse_args(arguments)
    began = process_time()
    found: dict[str, Counter[str]] = {}
    for one in tomllib.loads(SETS.read_text(encoding="utf-8"))["sets"]:
        if given.split in (None, one["split"]) and given.set in one["name"]:
            if given.show:
                print(f"--- {one['name']}")
            found.setdefault(one["split"], Counter()).update(await ask_set(one, given.show))
    figures: dict[str, Any] = {split: dict(counts) for split, counts in found.items()}
    figures["processor_seconds"] = round(process_time() - began, 1)
    for key, value in figures.items():
        print(f"{key:>20}  {value}")
    print_result("small_tables", figures, {})


if __name__ == "__main__":
    asyncio.run(main())
