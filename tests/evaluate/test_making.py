"""The anonymiser, the question maker and the advisor."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.engine import KnowledgeBase
from clew.errors import ConfigError, InputError
from clew.evaluate.advise import Advice, Budget, Trial, advise, choose
from clew.evaluate.anonymise import anonymise, restore
from clew.evaluate.compare import compare
from clew.evaluate.datasets import Question, load_dataset
from clew.evaluate.marks import MARK, Names, hide, show
from clew.evaluate.metrics.choice import choice, reversion
from clew.evaluate.questions import KINDS, make_questions
from clew.evaluate.record import Record
from clew.evaluate.summary import Report
from clew.testing.contracts import triple
from clew.testing.scripted import ScriptedChat
from clew.types import Extraction, FoundEntity
from conftest import VALLEY, document, stream


def names_of(*known: str) -> Names:
    names = Names()
    for name in known:
        names.add(name, "PERSON")
    return names


def test_the_longest_name_is_replaced_and_the_key_leads_back() -> None:
    names = names_of("Ann", "Ann Ray", "林黛玉")
    text = "Ann Ray’s friend Ann met 林黛玉. An annex of [PERSON#9] stood."
    hidden, surfaces = hide(text, names)
    assert hidden == "[PERSON#2]’s friend [PERSON#1] met [PERSON#3]. An annex of [PERSON#9] stood."
    assert show(hidden, surfaces) == text


@given(st.lists(st.sampled_from(["Ann", "Ann Ray", "[X#1]", "ann", "’s", "]", "\n", "林"])))
def test_hiding_can_always_be_undone(parts: list[str]) -> None:
    text = " ".join(parts)
    hidden, surfaces = hide(text, names_of("Ann", "Ann Ray", "林"))
    assert show(hidden, surfaces) == text
    assert "Ann" not in hidden


ROWS: list[dict[str, Any]] = [
    {"id": one.names[0], "title": one.title, "text": one.text} for one in VALLEY
]
ASKED = [
    {
        "id": "q1",
        "question": "Where was Ilse Brandvik, the designer of Marrow Bridge, born?",
        "answer": "Hallowmere",
        "gold": ["bridge", "ilse"],
        "gold_triples": [["Ilse Brandvik", "born", "Hallowmere"]],
    },
    {"id": "q2", "question": "What is grass?", "answers": ["green"], "gold": []},
]


def written(path: Path, name: str, rows: list[dict[str, Any]]) -> None:
    path.mkdir(exist_ok=True)
    (path / name).write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


async def test_a_corpus_and_its_questions_are_anonymised_alike_and_restored(tmp_path: Path) -> None:
    written(tmp_path / "in", "corpus.jsonl", ROWS)
    written(tmp_path / "in", "questions.jsonl", ASKED)
    done = await anonymise(tmp_path / "in", tmp_path / "out")
    assert (done.passages, done.questions, done.left) == (6, 2, 1)
    text = (tmp_path / "out" / "corpus.jsonl").read_text()
    for name in ("Ilse", "Brandvik", "Hallowmere", "Pellworth", "Lindqvist", "Marrow"):
        assert name not in text
    question = read(tmp_path / "out" / "questions.jsonl")[0]
    assert "gold_triples" not in question  # it would give the names away
    [ilse, bridge] = MARK.findall(question["question"])
    corpus = {row["id"]: row for row in read(tmp_path / "out" / "corpus.jsonl")}
    assert (corpus["ilse"]["title"], corpus["bridge"]["title"]) == (ilse, bridge)
    assert question["answer"] == corpus["town"]["title"]
    assert restore(tmp_path / "out", tmp_path / "back") == 8
    back = read(tmp_path / "back" / "corpus.jsonl")
    assert [(row["title"], row["text"]) for row in back] == [(r["title"], r["text"]) for r in ROWS]
    assert read(tmp_path / "back" / "questions.jsonl")[0]["question"] == ASKED[0]["question"]


async def test_both_tasks_are_scored_by_their_metrics(tmp_path: Path) -> None:
    written(tmp_path / "in", "corpus.jsonl", ROWS)
    written(tmp_path / "in", "questions.jsonl", ASKED)
    await anonymise(tmp_path / "in", tmp_path / "out")
    [picked] = load_dataset(tmp_path / "out" / "choice.jsonl").questions
    assert picked.options is not None
    assert choice(picked.answers[0], picked.answers, picked.options) == 1
    assert picked.asked().count("\n") == len(picked.options)
    [undone] = load_dataset(tmp_path / "out" / "reversion.jsonl").questions
    assert undone.originals is not None and len(undone.originals) == 3
    assert reversion(undone.answers[0], undone.originals) == 1
    assert "Ilse" not in undone.text


async def test_anonymising_needs_both_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no .*corpus\.jsonl"):
        await anonymise(tmp_path, tmp_path / "out")
    with pytest.raises(InputError, match=r"no key\.json"):
        restore(tmp_path, tmp_path / "out")


# -- questions


async def test_questions_are_made_from_sentences_with_their_evidence(valley: KnowledgeBase) -> None:
    made = await make_questions(valley, 50, kinds=KINDS, seed=1)
    again = await make_questions(valley, 50, kinds=KINDS, seed=1)
    assert made == again
    texts = {one.names[0]: one.text for one in VALLEY}
    bridges = [row for row in made.rows if row["type"] == "bridge"]
    assert any(row["gold"] == ["bridge", "ilse"] for row in bridges)
    for row in bridges:
        assert row["answer"] not in row["question"]
        assert not any(name in row["question"] for name in row["hidden"])
        last = row["gold_spans"][-1]
        assert row["answer"] in texts[last["doc"]][last["start"] : last["end"]]
    assert {row["type"] for row in made.rows} >= {"bridge", "common"}


async def test_relations_make_plain_questions(base: KnowledgeBase) -> None:
    extraction = Extraction(
        tuple(
            FoundEntity(name)
            for name in ("Ost Mill", "Ann Ray", "Marn", "1901", "Tarn Mill", "1850")
        ),
        (
            triple("Ost Mill", "builder", "Ann Ray"),
            triple("Ann Ray", "place_of_birth", "Marn"),
            triple("Ost Mill", "opening", "1901"),
            triple("Tarn Mill", "opening", "1850"),
        ),
    )

    async def extract(doc: Any, chunks: Any) -> list[Extraction]:
        return [extraction for _ in chunks]

    await base.take(stream([document("mill", "Ost Mill and Tarn Mill.")]), extract)
    made = await make_questions(base, 20, kinds=["bridge", "comparison"])
    asked = {row["question"]: row["answer"] for row in made.rows}
    assert asked["What is the place of birth of the builder of Ost Mill?"] == "Marn"
    [(question, answer)] = [pair for pair in asked.items() if pair[0].startswith("Which has")]
    assert "earlier year with “opening”" in question
    assert answer == "Tarn Mill"


async def test_what_cannot_be_answered_is_told_so(valley: KnowledgeBase) -> None:
    more = document("mill", "Ost Mill was founded in 1849.", "Ost Mill")
    await valley.take(stream([more]))
    made = await make_questions(valley, 4, kinds=["unanswerable"])
    assert len(made.rows) == 4
    for row in made.rows:
        assert "“founded”" in row["question"] and "Ost Mill" not in row["question"]
        assert (row["answerable"], row["gold"]) == (False, [])


async def test_a_model_words_them_and_one_that_tells_too_much_is_not_heard(
    valley: KnowledgeBase,
) -> None:
    stiff = await make_questions(valley, 6, kinds=["bridge"])
    kind = ScriptedChat(lambda _: '{"question": "Where does that road lead?"}')
    worded = await make_questions(valley, 6, kinds=["bridge"], chat=kind)
    assert {row["question"] for row in worded.rows} == {"Where does that road lead?"}
    assert worded.stiff == 0
    answers = [row["answer"] for row in stiff.rows]
    loud = ScriptedChat(lambda _: json.dumps({"question": f"Is it {' or '.join(answers)}?"}))
    told = await make_questions(valley, 6, kinds=["bridge"], chat=loud)
    assert told.stiff == len(told.rows)
    assert [row["question"] for row in told.rows] == [row["question"] for row in stiff.rows]


async def test_no_facts_no_questions(base: KnowledgeBase) -> None:
    with pytest.raises(ConfigError, match="joins no two facts"):
        await make_questions(base, 5)
    with pytest.raises(ConfigError, match="no kind of question 'riddle'"):
        await make_questions(base, 5, kinds=["riddle"])


# -- advice


def table(**rows: tuple[float, float, float]) -> Any:
    """Recipes with (share of right answers, seconds, money) over 200 questions."""
    reports = []
    for name, (share, seconds, money) in rows.items():
        rng = random.Random(0)
        records = tuple(
            Record(name, str(n), {"recall@5": float(rng.random() < share)}, seconds)
            for n in range(200)
        )
        report = Report(name, records)
        costs = report.costs() | {"money_per_1k_queries": money}
        object.__setattr__(report, "costs", lambda costs=costs: costs)
        reports.append(report)
    return compare(reports)


def test_the_best_within_the_budget_is_recommended() -> None:
    rows = table(best=(0.9, 2.0, 5.0), middle=(0.6, 0.05, 0.0), poor=(0.2, 0.001, 0.0))
    assert choose(rows, "recall@5", Budget())[0] == "best"
    assert choose(rows, "recall@5", Budget(ms=100))[0] == "middle"
    assert choose(rows, "recall@5", Budget(money=1.0))[0] == "middle"
    name, reason = choose(rows, "recall@5", Budget(ms=0.1))
    assert name == "poor" and reason.startswith("nothing fits the budget")


def test_of_equals_the_cheapest_is_taken_and_the_reason_says_so() -> None:
    rows = table(dear=(0.81, 2.0, 5.0), cheap=(0.80, 0.05, 0.0))
    name, reason = choose(rows, "recall@5", Budget())
    assert name == "cheap"
    assert "cannot tell from chance" in reason


async def test_advice_on_the_users_own_documents(valley: KnowledgeBase) -> None:
    advice: Advice = await advise(valley, Trial(("clew", "bm25"), sample=8), (), Budget())
    told = advice.told()
    assert told["recommended"] in ("clew", "bm25")
    assert told["made"] and told["questions"] >= 3
    assert set(told["recipes"]) == {"clew", "bm25"}
    json.dumps(told)


async def test_recipes_that_cannot_run_are_left_out_and_named(valley: KnowledgeBase) -> None:
    plain = KnowledgeBase(valley.store, valley.settings, None)
    asked = [Question(str(n), "Where was Ilse born?", gold=("ilse",)) for n in range(5)]
    advice = await advise(plain, Trial(("naive", "bm25")), asked, Budget())
    assert advice.recipe == "bm25"
    assert "embedder" in advice.left_out["naive"]
    with pytest.raises(ConfigError, match="no recipe could run here"):
        await advise(plain, Trial(("naive",)), asked, Budget())
