"""External runs: other packages' results on the same questions, scored by our metrics.

One JSON object per line: `recipe` (or `package` and `method`), `id` or `question` (the question's
id), `found` (or `docs`, `passages`: document ids, best first), and optionally: `answer`,
`short`, `verdict`, `seconds`, `usage` (`calls`, `prompt_tokens`, `completion_tokens`, `money`),
`error`.
"""

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from clew.errors import InputError
from clew.evaluate.datasets import (
    Question,
    Row,
    read_answer_list,
    read_json_lines,
    read_mapping,
    read_text_list,
)
from clew.evaluate.metrics.registry import (
    GRAPH_METRICS,
    GROUND_METRICS,
    JUDGED_METRICS,
    NEED_ANSWERS,
    step_count,
)
from clew.evaluate.record import Record, parse_record
from clew.evaluate.scoring import RecipeOutput, Scorer
from clew.evaluate.summary import RecipeReport
from clew.types import Usage

_NEED_PASSAGE_TEXT = {*GROUND_METRICS, *GRAPH_METRICS, "r-s"}
"""Metrics that need passage texts or a subgraph, which external records do not have."""
_USAGE_FIELDS = {one.name for one in fields(Usage)}
_MAX_NUMBER = 1e100  # above any real measurement; sums stay finite
_MISSING_ERROR = "this question is not in the records"


async def read_external_reports(
    path: Path, questions: Sequence[Question], scorer: Scorer, answers: bool = False
) -> tuple[list[RecipeReport], list[str]]:
    """Read one report per recipe of the file, and the problems of its rows.

    With `answers` every recipe was asked to answer; otherwise those with any answer were.
    """
    rows, problems = _group_by_recipe(path, {question.id for question in questions})
    reports = []
    for recipe, found in rows.items():
        answered = any(map(_has_answer, found.values()))
        if answers and not answered:
            problems.append(f"{path.name}: {recipe} has no answers; each question counts as wrong")
        reading = _ExternalRowScorer(
            recipe, scorer, answers or answered, _list_external_metrics(found, scorer)
        )
        records = [
            await reading.make_record(found.get(question.id, {"error": _MISSING_ERROR}), question)
            for question in questions
        ]
        reports.append(RecipeReport(recipe, tuple(records), questions, about={"from": path.name}))
    return reports, problems


def _group_by_recipe(
    path: Path, question_ids: set[str]
) -> tuple[dict[str, dict[str, Row]], list[str]]:
    """Group rows by recipe and question id; report unusable rows and count unknown questions."""
    problems: list[str] = []
    found: dict[str, dict[str, Row]] = {}
    others: list[str] = []
    for number, row in _read_rows(path, problems):
        recipe, question = _recipe_name(row), str(row.get("id", row.get("question", "")))
        if not recipe or not question:
            problems.append(f"{path.name}:{number}: needs `recipe` and `id`")
        elif question not in question_ids:  # the external run may cover more questions
            others.append(question)
        else:
            by_question = found.setdefault(recipe, {})
            if question in by_question:
                problems.append(
                    f"{path.name}:{number}: {question!r} is repeated; the last row is used"
                )
            try:
                by_question[question] = _validate_row(row)
            except ValueError as error:
                problems.append(f"{path.name}:{number}: invalid ({error}); counts as failed")
                by_question[question] = {"error": f"invalid row: {error}"}
    if others:
        problems.append(
            f"{path.name}: {len(others)} rows are ignored: their questions are not in this run "
            f"(the first: {others[0]!r})"
        )
    return found, problems


def _read_rows(path: Path, problems: list[str]) -> list[tuple[int, Row]]:
    try:
        raw = path.read_bytes()
        # Split at line feeds only: texts may contain other line separators (U+2028).
        lines = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode().split("\n")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as records ({error}); check the path") from error
    rows = read_json_lines(lines, path.name, problems)
    return [(number, row) for number, row in rows if not row.get("complete")]


def _recipe_name(row: Row) -> str:
    name = row.get("recipe") or " ".join(str(row[k]) for k in ("package", "method") if row.get(k))
    return str(name)


def _validate_row(row: Row) -> dict[str, Any]:
    """Check and convert the fields of a row; ValueError names the wrong one."""
    name = next((key for key in ("found", "docs", "passages") if row.get(key)), "found")
    copied = {k: v for k, v in row.items() if k not in ("id", "docs", "passages", "key")}
    seconds = row.get("seconds") or 0.0
    return copied | {
        "found": read_text_list(row, name),
        "ranked": read_text_list(row, "ranked"),
        "answer": "\n".join(read_answer_list(row, "answer")),
        "short": "\n".join(read_answer_list(row, "short")),
        "seconds": _check_number("seconds", seconds),
        "usage": {
            k: _check_number(k, v or 0)
            for k, v in read_mapping(row, "usage").items()
            if k in _USAGE_FIELDS
        },
        "values": {
            k: _check_number(k, v) for k, v in read_mapping(row, "values").items() if v is not None
        },
    }


def _check_number(name: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"{name!r} is {value!r}, not a number")
    if not -_MAX_NUMBER <= value <= _MAX_NUMBER:  # NaN fails this test, too
        raise ValueError(f"{name!r} is not a finite number")
    return value


def _is_refusal(row: Row) -> bool:
    return row.get("verdict") == "refused"


def _has_answer(row: Row) -> bool:
    return bool(row.get("answer") or row.get("short") or _is_refusal(row))


def _list_external_metrics(rows: Mapping[str, Row], scorer: Scorer) -> list[str]:
    """List metrics that have values in the rows and cannot be computed here."""
    names = dict.fromkeys(name for row in rows.values() for name in row.get("values") or ())
    return [name for name in names if name not in _list_computable_metrics(scorer)]


def _list_computable_metrics(scorer: Scorer) -> list[str]:
    return [
        name
        for name in scorer.metrics
        if name not in _NEED_PASSAGE_TEXT
        and not step_count(name)
        and (name not in JUDGED_METRICS or scorer.judge)
    ]


@dataclass(frozen=True)
class _ExternalRowScorer:
    """Converts the rows of one recipe to scored records."""

    recipe: str
    scorer: Scorer
    answered: bool
    external_metrics: Sequence[str] = field(default_factory=list)

    async def make_record(self, row: Row, question: Question) -> Record:
        """Score one row; values in the row are replaced by ours where they can be computed."""
        base = dict(row) | {"recipe": self.recipe, "question": question.id}
        zeros = self._zero_values(question)
        if row.get("error"):
            empty = {"found": (), "ranked": (), "answer": "", "short": ""}
            return parse_record(base | empty | {"values": zeros, "error": str(row["error"])})
        outcome = RecipeOutput(
            *(row["found"], row["ranked"], row["answer"], row["short"], _is_refusal(row)),
            answered=self.answered,
        )
        result = await replace(self.scorer, metrics=_list_computable_metrics(self.scorer)).score(
            question, outcome
        )
        values = {**row["values"], **result.values}
        if self.answered and not _has_answer(row):
            # No answer: all answer metrics are 0, whoever computed them.
            values |= {name: 0.0 for name in zeros if _is_answer_metric(name)}
        unscored = {
            name: "the records have no passages"
            for name in self.scorer.metrics
            if name in _NEED_PASSAGE_TEXT
            and _has_answer(row)
            and not outcome.refused
            and name not in values
        }
        return parse_record(base | {"values": values, "unscored": unscored | result.unscored})

    def _zero_values(self, question: Question) -> dict[str, float]:
        """Return 0 for all metrics of this recipe that the question has gold for."""
        scorer = replace(
            self.scorer, metrics=[*_list_computable_metrics(self.scorer), *self.external_metrics]
        )
        values = scorer.zero_values(question, self.answered)
        judged = [name for name in self.external_metrics if name.split(".")[0] in JUDGED_METRICS]
        if self.answered and question.answers:
            values |= dict.fromkeys(judged, 0.0)
        return values


def _is_answer_metric(name: str) -> bool:
    return name in NEED_ANSWERS or name.split(".")[0] in JUDGED_METRICS
