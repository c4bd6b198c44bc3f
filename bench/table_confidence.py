"""Fits the confidence of answers that are computed from rows.

`python -m bench.table_confidence [--write]`. Asked are the questions of `table_fit.json` and the
half of `small_tables.toml` that was looked at, over their tables; then the same questions after a
column that answered was removed, or the rows with a value that was asked for: what is computed now
is wrong unless it is the same. All readings count, and each set as much as its questions.
"""

import argparse
import asyncio
import json
import re
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.machine import print_result
from bench.small_tables import SETS, split_values, write_files
from clew.agents import ask as asking
from clew.agents.core.confidence import (
    LogisticModel,
    Signals,
    fit_logistic,
    measure_calibration_error,
)
from clew.agents.base import Answer
from clew.agents.tables import answer as answering
from clew.agents.tables import confidence
from clew.agents.tables.load import Column, Table
from clew.agents.tables.meanings import load_senses
from clew.agents.tables.reading import Query
from clew.agents.tables.rows import load_tables
from clew.config import Settings
from clew.context import Context
from clew.engine import KnowledgeBase

FIT = Path(__file__).with_name("table_fit.json")
_NEXT = "# Fitted by `python -m bench.query_scorer.confidence`"
MODEL = Path(str(confidence.__file__)).with_suffix(".toml")
LEAST = -0.5  # weight of a guess that the questions at hand do not speak against
RIDGE = 1.0  # pull towards a weight of -1: what was guessed speaks against an answer


@dataclass(frozen=True)
class Reading:
    """A reading of a question: what was guessed, and whether it is right."""

    group: str
    signals: Signals
    right: bool
    text: str
    """The question and how it was read."""


def ablate(tables: Sequence[Table], query: Query) -> Iterator[list[Table]]:
    """Yield the tables without a column that a query uses, or without the rows it asks for."""
    for name in sorted(query.columns & query.table.columns.keys()):
        yield [_drop_column(one, name) if one.name == query.table.name else one for one in tables]
    for one in query.filters:
        column = query.table.columns[one.column]
        if one.how == "=" and column.type == "text" and not one.negated:
            rows = [row for row, fold in enumerate(column.folded) if fold != one.value]
            yield [
                _keep(table, rows) if table.name == query.table.name else table for table in tables
            ]


def _drop_column(table: Table, name: str) -> Table:
    columns = {key: one for key, one in table.columns.items() if key != name}
    label = "" if table.label == name else table.label
    return replace(table, columns=columns, label=label)


def _keep(table: Table, rows: Sequence[int]) -> Table:
    columns = {
        key: Column(key, [one.cells[row] for row in rows]) for key, one in table.columns.items()
    }
    return replace(table, columns=columns, rows=[table.rows[row] for row in rows])


async def read_all(ctx: Context, gold: str, group: str) -> list[Reading]:
    """Return the readings of a question over its tables, and over what is left of them."""
    tables = await load_tables(ctx)
    found, best = await _read(ctx, tables, gold, group)
    for some in ablate(tables, best) if best is not None else ():
        found += (await _read(ctx, some, gold, group))[0]
    ctx.view.memo.clear()
    return found


async def _read(
    ctx: Context, tables: Sequence[Table], gold: str, group: str
) -> tuple[list[Reading], Query | None]:
    """Return the readings over some tables, and the query of the first right one."""
    ctx.view.memo.pop("joined tables", None)
    senses = await load_senses(ctx, tables)
    found, best = dict[str, Reading](), None
    golds = [split_values(one) for one in gold.split(" / ")] if gold else []
    async for one in answering.iter_answers(ctx, tables):
        right = split_values(" | ".join(one.result.values)) in golds
        signals = confidence.describe_guesses(one.query, senses)
        text = f"{ctx.question} -> {answering.describe_query(one.query)}"
        key = json.dumps(signals, sort_keys=True)
        found.setdefault(key, Reading(group, signals, right, text))
        best = one.query if right and best is None else best
    return list(found.values()), best


async def collect(one: dict[str, Any]) -> list[Reading]:
    """Ask the questions of a set."""
    found: list[Reading] = []
    gold = ""

    async def read(ctx: Context) -> Answer | None:
        found.extend(await read_all(ctx, gold, one["name"]))
        return None

    vars(asking)["answer_from_tables"] = read
    with tempfile.TemporaryDirectory(prefix="clew-fit-") as folder:
        paths = write_files(Path(folder), one["files"])
        base = await KnowledgeBase.open(Settings(kb=Path(folder) / "kb"), create=True)
        try:
            await base.add(paths)
            for question, gold in one["questions"].items():  # noqa: B007 — `read` reads it
                await base.ask(question)
        finally:
            await base.close()
    return found


def exchange_nouns(sets: Sequence[dict[str, Any]]) -> None:
    """Add questions that count what no table of their set has: the nouns of other sets."""
    nouns = {one["name"]: _list_counted(one["questions"]) for one in sets}
    for number, one in enumerate(sets):
        own = json.dumps(one["files"], ensure_ascii=False).casefold()
        others = sorted({noun for name in nouns if name != one["name"] for noun in nouns[name]})
        others = [noun for noun in others if noun.rstrip("s")[:5] not in own]
        for at, question in enumerate([q for q, gold in one["questions"].items() if gold]):
            for noun in set(_list_counted([question])):
                other = others[(7 * at + 3 * number) % len(others)]
                one["questions"].setdefault(question.replace(f" {noun} ", f" {other} ", 1), "")


def _list_counted(questions: Iterable[str]) -> list[str]:
    found = [re.match(r"How many ([a-z]+s) ", question) for question in questions]
    return [one[1] for one in found if one]


def fit(readings: Sequence[Reading]) -> LogisticModel:
    """Fit the weights; what was guessed never speaks for an answer."""
    names, right = {name for one in readings for name in one.signals}, [o.right for o in readings]
    dropped: dict[str, float] = {}
    while True:
        rows = [{name: one.signals.get(name, 0.0) for name in names} for one in readings]
        prior = LogisticModel(dict.fromkeys(names, -1.0), 2.0)
        model = fit_logistic(rows, right, prior, RIDGE)
        wrong = {name for name, weight in model.weights.items() if weight > 0}
        if not wrong:
            return replace(model, weights=dropped | dict(model.weights))
        dropped |= dict.fromkeys(wrong, LEAST)
        names -= wrong


def cross_validate(readings: Sequence[Reading]) -> tuple[float, float]:
    """Return the share judged rightly at .5 and the calibration error, each set by the others."""
    told, right = list[float](), list[bool]()
    for group in sorted({one.group for one in readings}):
        others = [one for one in readings if one.group != group]
        model = fit(others)
        own = [one for one in readings if one.group == group]
        told += [model(one.signals) for one in own]
        right += [one.right for one in own]
    agreed = sum((one >= 0.5) == is_right for one, is_right in zip(told, right, strict=True))
    return agreed / len(told), measure_calibration_error(told, right)


async def main() -> None:
    """Fit, and print the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the weights into the package")
    parser.add_argument("--show", action="store_true", help="show what is judged wrongly")
    given = parser.parse_args()
    sets = json.loads(FIT.read_text(encoding="utf-8"))
    small = tomllib.loads(SETS.read_text(encoding="utf-8"))["sets"]
    sets += [one for one in small if one["split"] == "dev"]
    exchange_nouns(sets)
    readings = [reading for one in sets for reading in await collect(one)]
    model = fit(readings)
    agreed, error = cross_validate(readings)
    lines = [f'"{name}" = {weight:.3f}' for name, weight in sorted(model.weights.items())]
    text = "\n".join(
        ["# Fitted by `python -m bench.table_confidence --write`.", "[guessed]"]
        + [f"bias = {model.bias:.3f}", "", "[guessed.weights]", *lines, ""]
    )
    print(text)
    for one in readings if given.show else ():
        if ((told := model(one.signals)) >= 0.5) != one.right:
            said = {name: round(size, 2) for name, size in one.signals.items() if size}
            print(f"{'right' if one.right else 'wrong'} {told:.2f} {one.text} {said}")
    if given.write:
        _, mark, kept = MODEL.read_text(encoding="utf-8").partition(_NEXT)
        MODEL.write_text(f"{text}\n{mark}{kept}", encoding="utf-8")
    figures = {
        "sets": len(sets),
        "readings": len(readings),
        "right": sum(one.right for one in readings),
        "judged_rightly_by_other_sets": round(agreed, 3),
        "calibration_error": round(error, 3),
    }
    print_result("table_confidence", figures, {})


if __name__ == "__main__":
    asyncio.run(main())
