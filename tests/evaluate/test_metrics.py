"""Every metric with values worked out by hand."""

import json
from math import log2
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.messages import OWN_MARKS, strip_marks
from clew.errors import ConfigError, InputError
from clew.evaluate.datasets import Question, load_dataset
from clew.evaluate.metrics.answers import (
    exact_match,
    f1,
    lcs_length,
    normalise_answer,
    rouge_l,
    sub_exact_match,
)
from clew.evaluate.metrics.grounding import split_claims
from clew.evaluate.metrics.registry import (
    get_answer_ranking_metric,
    get_ranking_metric,
    ndcg,
    recall,
    required_depth,
)
from clew.evaluate.scoring import RecipeOutput, Scorer

FOUND = ["x", "a", "y", "b", "z"]
GOLD = ["a", "b", "c"]


def test_recall_is_the_part_of_the_gold_that_was_found() -> None:
    assert recall(["a", "x", "b"], ["a", "b", "c"]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recall@2", 1 / 3),
        ("recall@5", 2 / 3),
        ("precision@4", 2 / 4),
        ("all@5", 0.0),
        ("any@1", 0.0),
        ("any@2", 1.0),
        ("mrr", 1 / 2),
        ("mrr@1", 0.0),
        # Gold at places 2 and 4 of 5; the best three places would hold all three.
        ("ndcg@5", (1 / log2(3) + 1 / log2(5)) / (1 + 1 / log2(3) + 1 / log2(4))),
        ("ndcg@2", (1 / log2(3)) / (1 + 1 / log2(3))),
    ],
)
def test_ranking_metrics_by_hand(name: str, value: float) -> None:
    measure = get_ranking_metric(name)
    assert measure is not None
    assert measure(FOUND, GOLD) == pytest.approx(value)


def test_all_gold_found_is_perfect() -> None:
    for name in ("recall@3", "precision@3", "all@3", "any@1", "mrr", "ndcg@3"):
        measure = get_ranking_metric(name)
        assert measure is not None
        assert measure(["b", "c", "a"], GOLD) == 1


@given(st.permutations(["a", "b", "c", "d", "e"]), st.integers(1, 5))
def test_recall_grows_with_depth_and_ndcg_stays_within_bounds(found: list[str], k: int) -> None:
    assert recall(found[:k], GOLD) <= recall(found[: k + 1], GOLD)
    assert 0 <= ndcg(found, GOLD, k) <= 1


def test_answers_are_compared_after_normalisation() -> None:
    assert exact_match("The Port of Spain.", ["port of spain"]) == 1
    assert sub_exact_match("She was born in Port of Spain, Trinidad", ["Port of Spain"]) == 1
    assert sub_exact_match("Portofino", ["Port"]) == 0
    assert f1("20 March 851", ["March 851", "x"]) == pytest.approx(0.8)
    assert f1("", ["x"]) == 0
    assert f1("the cat sat", ["cat"]) == pytest.approx(2 / 3)  # the article does not count


def test_squad_normalisation_joins_what_punctuation_divides() -> None:
    assert normalise_answer("A well-known  U.S. (film)!") == "wellknown us film"
    assert normalise_answer("“Größe” – 12€") == "größe 12€"


def test_scripts_without_spaces_count_by_character() -> None:
    assert sub_exact_match("他出生在北京市。", ["北京"]) == 1
    assert sub_exact_match("他出生在Paris市", ["Paris"]) == 1
    assert f1("北京市", ["北京"]) == pytest.approx(0.8)  # two of three, two of two
    assert exact_match("“北京”", ["北京"]) == 1


def test_an_answer_of_articles_and_signs_is_still_an_answer() -> None:
    assert exact_match("The", ["The The"]) == 0
    assert exact_match("?", ["?"]) == 1
    assert sub_exact_match("anything", ["?"]) == 0


def test_citation_marks_are_no_part_of_an_answer() -> None:
    assert strip_marks("Tromvik [1]") == "Tromvik"
    assert strip_marks("Born in Tromvik [1][2], says he [3, 4].") == "Born in Tromvik, says he."
    assert strip_marks("[1] as such; a [2,3]-shift; x[1]y") == "[1] as such; a [2,3]-shift; x[1]y"


def test_hits_look_at_the_first_k_answers() -> None:
    first, third, rank = (get_answer_ranking_metric(n) for n in ("hits@1", "hits@3", "answer-mrr"))
    assert first is not None and third is not None and rank is not None
    ranked = ["Batman", "The Batman Returns", "Robin"]
    assert first(ranked, ["Robin"]) == 0
    assert third(ranked, ["robin"]) == 1
    assert rank(ranked, ["Robin", "batman returns"]) == 1 / 2
    assert rank([], ["Robin"]) == 0


def test_rouge_l_by_hand() -> None:
    # "police killed the gunman" / "police kill the gunman": police, the, gunman in order.
    assert rouge_l("police killed the gunman", ["police kill the gunman"]) == pytest.approx(0.75)
    assert rouge_l("the gunman kill police", ["police kill the gunman"]) == pytest.approx(0.5)
    assert rouge_l("", ["x"]) == 0


@given(st.lists(st.sampled_from("abc"), max_size=9), st.lists(st.sampled_from("abc"), max_size=9))
def test_the_longest_common_subsequence_is_that_of_the_textbook(
    one: list[str], other: list[str]
) -> None:
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one, 1):
        for j, b in enumerate(other, 1):
            table[i][j] = (
                table[i - 1][j - 1] + 1 if a == b else max(table[i - 1][j], table[i][j - 1])
            )
    assert lcs_length(one, other) == table[-1][-1]


def test_depth_is_the_deepest_recall_and_unknown_names_are_refused() -> None:
    assert required_depth(["recall@2", "recall@20", "em"]) == 20
    assert required_depth(["hits@50"]) == 5
    with pytest.raises(ConfigError, match="unknown metric 'recal@2'"):
        required_depth(["recal@2"])


def folder_of(path: Path, questions: list[object], corpus: list[object] = []) -> Path:  # noqa: B006
    path.mkdir(exist_ok=True)
    for name, rows in (("questions.jsonl", questions), ("corpus.jsonl", corpus)):
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        if lines:
            (path / name).write_text("\n".join(lines), encoding="utf-8")
    return path


def test_bad_rows_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    rows = [
        "{broken",
        {"q": 1},
        {"question": "Who?", "answer": "x", "gold": [3]},
        {"question": "Which?", "answer": "x", "options": "no mapping"},
    ]
    dataset = load_dataset(folder_of(tmp_path, rows))
    assert len(dataset.questions) == 1
    assert dataset.questions[0].gold == ("3",)
    assert [problem.split(" ")[0] for problem in dataset.problems] == [
        "questions.jsonl:1:",
        "questions.jsonl:2:",
        "questions.jsonl:4:",
    ]
    assert dataset.unread == 3
    with pytest.raises(InputError, match=r"no questions\.jsonl"):
        load_dataset(tmp_path / "nowhere")


def test_one_text_is_never_read_letter_by_letter(tmp_path: Path) -> None:
    rows = [
        {"question": "Who?", "answer": ["Lisbon"], "gold": "p3", "entities": "A B", "id": None},
        {"question": "Who?", "answers": "Lisbon", "evidence": "It is.", "aliases": "Lisboa"},
        {"question": "Who?", "answers": ["", "Lisbon", " "], "gold": None},
        {"question": "Who?", "answers": ["A", "B"], "aliases": [["a", "aa"], []]},
        {"question": "Who?", "answer": 1928},
    ]
    dataset = load_dataset(folder_of(tmp_path, rows))
    first, second, third, fourth, fifth = dataset.questions
    assert (first.answers, first.gold, first.entities) == (("Lisbon",), ("p3",), ("A B",))
    assert first.id == "1"
    assert (second.answers, second.evidence) == (("Lisbon", "Lisboa"), ("It is.",))
    assert second.answer_groups() == (("Lisbon", "Lisboa"),)
    assert third.answers == ("Lisbon",)
    assert dataset.problems == ("questions.jsonl:3: 2 empty answers were ignored",)
    assert fourth.answer_groups() == (("A", "a", "aa"), ("B",))
    assert fourth.answers == ("A", "a", "aa", "B")
    assert fifth.answers == ("1928",)
    assert dataset.unread == 0


def test_fields_of_another_kind_are_refused_by_name(tmp_path: Path) -> None:
    rows = [
        {"question": "Who?", "gold": 5},
        {"question": "Who?", "answers": {"a": 1}},
        {"question": "Who?", "entities": [["a"]]},
        {"question": "Who?", "answerable": "false"},
        {"question": "Who?", "options": ["A", "B"]},
        {"question": "Who?", "answers": ["A", "B"], "aliases": [["a"]]},
    ]
    dataset = load_dataset(folder_of(tmp_path, rows))
    assert (dataset.questions, dataset.unread) == ((), 6)
    why = [problem.split("read ")[1] for problem in dataset.problems]
    assert why == [
        "('gold' is the number 5, not a text or a list of texts)",
        "('answers' is an object, not a text or a list of texts)",
        "('entities' has a list in its list, not only texts)",
        "('answerable' is a text, not true or false)",
        "('options' is a list, not an object)",
        "('aliases' has 1 lists for 2 answers)",
    ]


async def test_what_is_scored_is_the_answer_without_marks_and_with_its_other_names() -> None:
    question = Question("1", "Who?", ("Tromvik", "Tromvika"), aliases=(("Tromvik", "Tromvika"),))
    scorer = Scorer(["em", "f1", "set-f1", "hits@1"])
    scored = await scorer.score(question, RecipeOutput(answer="Tromvika [1]", answered=True))
    assert scored.values == dict.fromkeys(["em", "f1", "set-f1", "hits@1"], 1.0)


def test_doubtful_questions_stay_and_are_named(tmp_path: Path) -> None:
    rows = [
        {"id": "1", "question": "Who?", "answer": "x", "gold": ["7", "8"]},
        {"id": "1", "question": "Which?", "answer": "y"},
        {"id": "2", "question": "What?"},
        {"id": "3", "question": "When?", "answerable": False},
    ]
    dataset = load_dataset(folder_of(tmp_path, rows, [{"id": 7, "text": "t"}]))
    assert [q.id for q in dataset.questions] == ["1", "1~2", "2", "3"]
    assert dataset.unread == 0
    assert dataset.problems == (
        "question '1': duplicate id; counted as a separate question",
        "question '1': gold '8' is not in corpus.jsonl",
        "question '2': has neither answer nor gold, so nothing is scored",
    )


def test_an_empty_answer_without_other_gold_says_that_there_is_none(tmp_path: Path) -> None:
    rows = [
        {"question": "Who?", "answer": ""},
        {"question": "Who?", "answers": []},
        {"question": "Who?", "answers": [], "gold": ["7"]},
        {"question": "Who?", "answer": None},
        {"question": "Who?", "answer": "", "answerable": True},
    ]
    dataset = load_dataset(folder_of(tmp_path, rows))
    assert [one.answerable for one in dataset.questions] == [False, False, True, True, True]
    assert not any("questions.jsonl:1" in problem for problem in dataset.problems)


def test_one_file_of_questions_is_a_data_set_too(tmp_path: Path) -> None:
    folder_of(tmp_path, [{"question": "Who?", "entities": ["A"], "answers": ["B"]}])
    (tmp_path / "questions.jsonl").rename(tmp_path / "1hop.jsonl")
    dataset = load_dataset(tmp_path / "1hop.jsonl")
    assert (dataset.name, dataset.corpus) == ("1hop", None)
    assert dataset.questions[0].entities == ("A",)


def test_a_mark_of_the_unsupported_is_no_claim_in_any_language() -> None:
    for mark in OWN_MARKS:
        claims = split_claims(f"Ilse came in 1887. {mark} Osk is old. [1]")
        assert [claim.text for claim in claims] == ["Ilse came in 1887.", "Osk is old."]
