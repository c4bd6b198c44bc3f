"""Lines of published files: only line ends part them."""

import json
from pathlib import Path

import pytest

from clew.evaluate.datasets import load_dataset
from clew.evaluate.loaders import convert

SIGNS = ["\u2028", "\u2029", "\u0085"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("sign", SIGNS)
def test_a_row_of_json_may_hold_other_signs_that_part_lines(
    tmp_path: Path, sign: str, end: str
) -> None:
    rows = [
        {"id": "x0", "question": "Who wrote it?", "golden_answers": ["Bo"]},
        {"id": "x1", "question": "Who read it?", "golden_answers": [f"An{sign}na"]},
        {"id": "x2", "question": "Who lost it?", "golden_answers": ["Cid"]},
    ]
    text = end.join(json.dumps(row, ensure_ascii=False) for row in rows) + end
    (tmp_path / "dev.jsonl").write_bytes(text.encode())
    taken = convert("nq", [tmp_path / "dev.jsonl"], tmp_path / "out")
    assert taken.problems == ()
    questions = load_dataset(tmp_path / "out").questions
    assert [(one.id, one.answers) for one in questions] == [
        ("x0", ("Bo",)),
        ("x1", (f"An{sign}na",)),
        ("x2", ("Cid",)),
    ]


@pytest.mark.parametrize("sign", SIGNS)
def test_so_may_a_line_of_plain_text(tmp_path: Path, sign: str) -> None:
    text = f"who directed [A{sign}nn]\tBob\r\nwho wrote [Cid]\tDee\r\n"
    (tmp_path / "qa_dev.txt").write_bytes(text.encode())
    taken = convert("metaqa", [tmp_path], tmp_path / "out")
    assert taken.problems == ()
    one, other = load_dataset(tmp_path / "out").questions
    assert (one.entities, one.answers) == ((f"A{sign}nn",), ("Bob",))
    assert (other.entities, other.answers) == (("Cid",), ("Dee",))
