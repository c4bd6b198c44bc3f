import json
from pathlib import Path

import pytest

from clew.engine import KnowledgeBase
from clew.errors import ConfigError, InputError
from clew.evaluate.datasets import load_dataset
from clew.evaluate.metrics import contained, depth, exact_match, f1, recall
from clew.evaluate.runner import Run


def test_recall_is_the_part_of_the_gold_that_was_found() -> None:
    assert recall(["a", "x", "b"], ["a", "b", "c"]) == pytest.approx(2 / 3)


def test_answers_are_compared_after_normalisation() -> None:
    assert exact_match("The Port of Spain.", ["port of spain"]) == 1
    assert contained("She was born in Port of Spain, Trinidad", ["Port of Spain"]) == 1
    assert contained("Portofino", ["Port"]) == 0
    assert f1("20 March 851", ["March 851", "x"]) == pytest.approx(0.8)
    assert f1("", ["x"]) == 0


def test_depth_is_the_deepest_recall_and_unknown_names_are_refused() -> None:
    assert depth(["recall@2", "recall@20", "em"]) == 20
    with pytest.raises(ConfigError, match="no metric 'recal@2'"):
        depth(["recal@2"])


def _folder(path: Path, questions: list[object]) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in questions]
    (path / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return path


def test_bad_rows_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    rows = ["{broken", {"q": 1}, {"question": "Who?", "answer": "x", "gold": [3]}]
    dataset = load_dataset(_folder(tmp_path, rows))
    assert len(dataset.questions) == 1
    assert dataset.questions[0].gold == ("3",)
    assert [problem.split(" ")[0] for problem in dataset.problems] == [
        "questions.jsonl:1:",
        "questions.jsonl:2:",
    ]
    with pytest.raises(InputError, match=r"no questions\.jsonl"):
        load_dataset(tmp_path / "nowhere")


async def test_a_failing_question_counts_as_nothing_found(
    valley: KnowledgeBase, tmp_path: Path
) -> None:
    rows = [
        {"question": "Where was Ilse Brandvik born?", "gold": ["ilse"], "answer": "Hallowmere"},
        {"question": " ", "gold": ["ilse"], "answer": "x"},
    ]
    dataset = load_dataset(_folder(tmp_path, rows))
    run = Run(valley, ["recall@2", "subem"], answers=True)
    summary = (await run.recipe("clew", dataset.questions)).summary()
    assert (summary["recall@2"], summary["n"], summary["failed"]) == (0.5, 2, 1)
    assert summary["subem"] == 0.5
