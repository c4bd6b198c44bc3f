"""Questions over eight real tables, answered by code over their rows, and how long rows take.

`python -m bench.tables [--vega DIR] [--rows N] [--show]`. The tables are those of the Debian
packages iso-codes and distro-info-data, and of the Python package vega_datasets (`pip install
vega_datasets`, or `--vega DIR` with its `_data`). No model is used; the embedder, where it is
installed, compares words with the names of columns (`--no-embedder` for none). `--rows N` adds a
table of N rows and measures adding it and asking it.
"""

import argparse
import asyncio
import csv
import json
import random
import resource
import tempfile
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.machine import print_result, require_path
from bench.table_questions import QUESTIONS, UNANSWERABLE, Row, TableQuestion
from clew.agents.base import Answer
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.llm.embed import Embedder
from clew.llm.factory import find_embedder
from clew.store.sqlite.store import SqliteStore

ISO = Path("/usr/share/iso-codes/json")
DISTROS = Path("/usr/share/distro-info")
NOTE = "computed from the rows"


def find_vega(given: Path | None) -> Path:
    """Return the folder with the tables of vega_datasets."""
    if given is not None:
        return given
    spec = find_spec("vega_datasets")
    return Path(str(spec.origin)).parent / "_data" if spec else Path("vega_datasets/_data")


def find_tables(vega: Path) -> dict[str, Path]:
    """Return the file of each table that questions are about."""
    names = sorted({question.table for question in QUESTIONS})
    folders = (vega, ISO, DISTROS)
    found = {n: next((f / n for f in folders if (f / n).exists()), vega / n) for n in names}
    for path in found.values():
        require_path(path, "--vega, or install iso-codes and distro-info-data")
    return found


def load_rows(path: Path) -> list[Row]:
    """Return the rows of a table, read by other means than the product's."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            return [dict(row) for row in csv.DictReader(file)]
    data = json.loads(path.read_text(encoding="utf-8"))
    rows: list[Row] = next(iter(data.values())) if isinstance(data, dict) else data
    return rows


def is_right(gold: Any, answer: Answer) -> bool:
    """Whether an answer is the gold number, or exactly the gold values."""
    if NOTE not in answer.note:
        return False
    if isinstance(gold, set):
        said = {part.strip() for part in answer.candidate.split(", ")}
        whole = {part.strip() for value in gold for part in str(value).split(", ")}
        return said == whole
    try:
        said_number = float(answer.candidate.partition(" ")[0])  # without the unit
    except ValueError:
        return False
    if said_number == round(gold, 2):
        return True  # means are told with two decimals
    return abs(said_number - gold) <= 1e-6 * max(1.0, abs(gold))


async def open_base(folder: Path, embed: Embedder | None = None) -> KnowledgeBase:
    """Open a knowledge base, by default without an embedder."""
    settings = Settings(kb=folder, recipe="steps+keywords")
    return KnowledgeBase(SqliteStore(folder, create=True, durable=False), settings, embed)


async def ask_all(base: KnowledgeBase, rows: dict[str, list[Row]], show: bool) -> dict[str, Any]:
    """Ask every question; return the share that is right, by split."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for question in QUESTIONS:
        answer = await base.ask(question.text)
        gold = question.gold(rows[question.table])
        ok = is_right(gold, answer)
        right[question.split] += ok
        total[question.split] += 1
        if show and not ok:
            print_wrong(question, gold, answer)
    wrong = [text for text in UNANSWERABLE if NOTE in (await base.ask(text)).note]
    if show and wrong:
        print("answered though no table can:", wrong)
    shares = {f"{split}_right": round(right[split] / total[split], 3) for split in sorted(total)}
    counts = {f"{split}_questions": total[split] for split in sorted(total)}
    return {**shares, **counts, "answered_wrongly": len(wrong), "unanswerable": len(UNANSWERABLE)}


def print_wrong(question: TableQuestion, gold: Any, answer: Answer) -> None:
    """Print a question that was answered otherwise; of held ones only that it was."""
    if question.split != "dev":
        print(f"{question.split}, wrong: {question.table}")
        return
    print(f"{question.text}\n  gold {str(gold)[:100]}\n  said {answer.answer[:100]!r}")
    print(f"  {answer.note[:160]}")


async def measure_rows(folder: Path, count: int) -> dict[str, Any]:
    """Add a table of so many rows and ask it; seconds and the largest memory."""
    draw = random.Random(7)
    towns = [f"Town {number}" for number in range(500)]
    path = folder / "orders.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["order", "customer", "town", "amount", "date", "status"])
        for number in range(count):
            day = f"2024-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
            customer, town = f"Customer {draw.randint(1, 20_000)}", draw.choice(towns)
            writer.writerow(
                [f"A{number:07}", customer, town, draw.randint(1, 900), day, draw.choice("ox")]
            )
    base = await open_base(folder / "large")
    began = perf_counter()
    await base.add([path])
    added = perf_counter() - began
    began = perf_counter()
    answer = await base.ask("What is the total amount of orders from Town 7?")
    asked = perf_counter() - began
    again = perf_counter()
    await base.ask("How many orders have an amount above 800?")
    again = perf_counter() - again
    await base.close()
    assert NOTE in answer.note, answer.answer
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return {
        "rows": count,
        "add_seconds": round(added, 1),
        "first_ask_seconds": round(asked, 2),
        "next_ask_seconds": round(again, 3),
        "peak_memory_mb": round(memory),
    }


async def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vega", type=Path)
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="show wrong answers of the dev half")
    parser.add_argument("--no-embedder", action="store_true")
    given = parser.parse_args(arguments)
    tables = find_tables(find_vega(given.vega))
    figures: dict[str, Any] = {"tables": len(tables)}
    with tempfile.TemporaryDirectory(prefix="clew-tables-") as folder:
        base = await open_base(Path(folder) / "kb")
        began = perf_counter()
        added = await base.add(list(tables.values()))
        await base.close()  # rows are found by words; only questions are embedded
        embed = None if given.no_embedder else find_embedder(Settings(), "")
        base = await open_base(Path(folder) / "kb", embed)
        figures |= {"documents": added.added, "build_seconds": round(perf_counter() - began, 1)}
        rows = {name: load_rows(path) for name, path in tables.items()}
        began = perf_counter()
        figures |= await ask_all(base, rows, given.show)
        figures["ask_seconds"] = round(perf_counter() - began, 1)
        await base.close()
        if given.rows:
            figures["large"] = await measure_rows(Path(folder), given.rows)
    for key, value in figures.items():
        print(f"{key:>20}  {value}")
    print_result("tables", figures, {"tables": len(tables)})


if __name__ == "__main__":
    asyncio.run(main())
