"""Answers that are lists, as models write them, against sets of gold answers."""

import pytest

from clew.evaluate.metrics import answers
from clew.evaluate.metrics.answers import set_f1
from clew.evaluate.metrics.normal import answer_tokens


def test_a_list_of_answers_is_a_set() -> None:
    assert set_f1("Ann, Bob and Cid", [["Bob"], ["Ann"], ["Dee"]]) == pytest.approx(2 / 3)
    assert set_f1("", [["Bob"]]) == 0


def test_other_names_are_no_further_answers_and_a_name_may_hold_and() -> None:
    assert set_f1("USA", [["United States", "USA", "U.S."]]) == 1
    assert set_f1("USA and United States", [["United States", "USA"], ["Peru"]]) == 2 / 3
    islands = [["Trinidad and Tobago"], ["Peru"]]
    assert set_f1("Peru, Trinidad and Tobago", islands) == 1
    assert set_f1("Trinidad and Tobago and Chile", islands) == 2 / 4
    assert set_f1("Trinidad and Peru", islands) == 2 / 4


@pytest.mark.parametrize(
    "said",
    [
        *("Paris AND London", "Paris or London", "Paris, and London", "Paris & London"),
        *("Paris / London", "Paris/London", "Paris，London", "Paris;London", "Paris | London"),
        *(
            "1. Paris\n2. London",
            "1) Paris\n2) London",
            "(1) Paris, (2) London",
            "- Paris\n- London",
        ),
    ],
)
def test_lists_are_read_as_they_are_usually_written(said: str) -> None:
    assert set_f1(said, [["London"], ["Paris"]]) == 1


@pytest.mark.parametrize(
    "said", ["巴黎，伦敦", "巴黎和伦敦", "巴黎以及伦敦", "巴黎或伦敦", "1.巴黎\n2.伦敦"]
)
def test_so_are_chinese_ones(said: str) -> None:
    assert set_f1(said, [["伦敦"], ["巴黎"]]) == 1


def test_a_name_may_hold_what_divides_or_numbers_a_list() -> None:
    assert set_f1("AC/DC, Tate & Lyle", [["AC/DC"], ["Tate & Lyle"]]) == 1
    assert set_f1("1. FC Köln\n2. Sturm", [["1. FC Köln"], ["Sturm"]]) == 1
    assert set_f1("中华人民共和国", [["中华人民共和国"]]) == 1
    assert set_f1("9/11", [["9/11"]]) == 1
    # A divider that the gold answer does without: normalisation drops it from both.
    assert set_f1("Washington, D.C. and Oslo", [["Washington DC"], ["Oslo"]]) == 1


def test_a_long_list_is_read_item_by_item(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def counted(text: str) -> tuple[str, ...]:
        looked.append(text)
        return answer_tokens(text)

    monkeypatch.setattr(answers, "answer_tokens", counted)
    items = [f"name{number}" for number in range(300)]
    assert set_f1(", ".join(items), [[item] for item in items[:100]]) == pytest.approx(0.5)
    assert len(looked) < 10 * len(items)
