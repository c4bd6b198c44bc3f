"""Rows of other packages that hold odd numbers and odd signs."""

import json
from pathlib import Path

import pytest

from clew.evaluate.datasets import Question
from clew.evaluate.external_runs import read_external_reports
from clew.evaluate.scoring import Scorer
from clew.evaluate.summary import RecipeReport

ASKED = (Question("q1", "Who?", ("Ilse",), ("ilse",)), Question("q2", "Who?", ("Osk",), ("osk",)))


async def read(path: Path, lines: list[str]) -> tuple[RecipeReport, list[str]]:
    file = path / "peers.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    [report], problems = await read_external_reports(file, ASKED, Scorer(["em"]))
    return report, problems


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN", "Infinity", "1" + "0" * 400, "1e308"])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("seconds", '"seconds": {}'),
        ("money", '"usage": {{"money": {}}}'),
        ("grounded", '"values": {{"grounded": {}}}'),
    ],
)
async def test_what_cannot_be_reckoned_with_is_refused(
    tmp_path: Path, number: str, name: str, told: str
) -> None:
    odd = '{"recipe": "peer", "id": "q1", "answer": "Ilse", ' + told.format(number) + "}"
    good = '{"recipe": "peer", "id": "q2", "answer": "Osk", ' + told.format("0.5") + "}"
    report, problems = await read(tmp_path, [odd, good])
    assert [bool(record.error) for record in report.records] == [True, False]
    assert [record.values["em"] for record in report.records] == [0.0, 1.0]
    [problem] = problems
    assert problem.startswith(f"peers.jsonl:1: invalid ('{name}' is not a finite number")
    # Whatever is told of it is JSON that every reader takes.
    json.dumps(
        [report.summary(), *(record.to_dict() for record in report.records)], allow_nan=False
    )


async def test_signs_that_part_lines_elsewhere_may_stand_in_a_row(tmp_path: Path) -> None:
    said = "Ilse\u2028\u0085\x0b"
    rows = [
        {"recipe": "peer", "id": "q1", "answer": said},
        {"recipe": "peer", "id": "q2", "answer": "Osk"},
    ]
    lines = [json.dumps(row, ensure_ascii=False) + "\r" for row in rows]
    report, problems = await read(tmp_path, lines)
    assert problems == []
    assert [record.answer for record in report.records] == [said, "Osk"]
