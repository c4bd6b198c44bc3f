"""Records made elsewhere: other packages' results on the same questions, scored by our metrics.

One JSON object a line: `recipe` (or `package` and `method`), `id` or `question` (the question's
id), `found` (or `docs`, `passages`: document ids, best first), and where there are such: `answer`,
`short`, `verdict`, `seconds`, `usage` (`calls`, `prompt_tokens`, `completion_tokens`, `money`),
`error`.
"""

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from clew.errors import InputError
from clew.evaluate.datasets import Question
from clew.evaluate.metrics import GROUND_METRICS
from clew.evaluate.record import Record, record_of
from clew.evaluate.scoring import Outcome, Scorer
from clew.evaluate.summary import Report

_NEED_TEXTS = {*GROUND_METRICS, "r-s"}
"""What only the run itself could tell: a record names its passages and does not hold them."""


async def outside_reports(
    path: Path, questions: Sequence[Question], scorer: Scorer
) -> tuple[list[Report], list[str]]:
    """One report for each recipe named in the file, and what is wrong with its rows."""
    by_id = {question.id: question for question in questions}
    found: dict[str, dict[str, Record]] = {}
    problems: list[str] = []
    for number, row in _rows(path, problems):
        recipe, asked = _recipe(row), str(row.get("id", row.get("question", "")))
        if not recipe or not asked:
            problems.append(f"{path.name}:{number}: needs `recipe` and `id`")
        elif asked in by_id:  # a run may have been over more questions than this one
            record = await _scored(row, recipe, by_id[asked], scorer)
            found.setdefault(recipe, {})[asked] = record
    reports = []
    for recipe, records in found.items():
        for question in questions:
            if question.id not in records:
                row = {"error": "this question is not in the records"}
                records[question.id] = await _scored(row, recipe, question, scorer)
        ordered = tuple(records[question.id] for question in questions)
        reports.append(Report(recipe, ordered, questions, about={"from": path.name}))
    return reports, problems


def _rows(path: Path, problems: list[str]) -> list[tuple[int, Mapping[str, Any]]]:
    try:
        raw = path.read_bytes()
        lines = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode().splitlines()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as records ({error}); check the path") from error
    found: list[tuple[int, Mapping[str, Any]]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            problems.append(f"{path.name}:{number}: not JSON ({error})")
            continue
        if isinstance(row, dict) and not row.get("complete"):
            found.append((number, row))
    return found


def _recipe(row: Mapping[str, Any]) -> str:
    named = row.get("recipe") or " ".join(str(row[k]) for k in ("package", "method") if row.get(k))
    return str(named)


async def _scored(
    row: Mapping[str, Any], recipe: str, question: Question, scorer: Scorer
) -> Record:
    """Whatever values a row brings along, ours are computed anew where they can be."""
    found = row.get("found") or row.get("docs") or row.get("passages") or ()
    ranked = tuple(map(str, row.get("ranked") or ()))
    answer, short = str(row.get("answer") or ""), str(row.get("short") or "")
    refused = row.get("verdict") == "refused"
    answered = bool(answer or refused)
    outcome = Outcome(tuple(map(str, found)), ranked, answer, short, refused, answered)
    if row.get("error"):
        outcome = Outcome(answered=answered)
    kept = [name for name in scorer.metrics if name not in _NEED_TEXTS]
    scored = await replace(scorer, metrics=kept).score(question, outcome)
    values = {**(row.get("values") or {}), **scored.values}
    if row.get("error"):
        values = dict.fromkeys(values, 0.0)
    unscored = {
        name: "these records keep no passages"
        for name in scorer.metrics
        if name in _NEED_TEXTS and answered and not refused and name not in values
    } | scored.unscored
    made = {"found": outcome.found, "answer": answer, "short": short, "unscored": unscored}
    base = {k: v for k, v in row.items() if k not in ("id", "docs", "passages", "key")}
    return record_of(base | made | {"recipe": recipe, "question": question.id, "values": values})
