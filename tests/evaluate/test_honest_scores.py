"""A perfect model has full marks in every metric, one that knows nothing and a wrong one none.

The questions are of every kind: yes or no, letters, lists, Chinese, two hops, placeholders, and one
without an answer. What a recipe answers goes through `ask` and the scorer as in `clew eval`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from oracle import (
    CORPUS,
    KNOWN,
    REVERSION,
    UNANSWERABLE,
    Known,
    Model,
    perfect,
    unknowing,
    with_model,
    wrong,
)

from clew.agents.base import Mode
from clew.agents.messages import OWN_MARKS
from clew.engine import KnowledgeBase
from clew.evaluate.datasets import Question
from clew.evaluate.metrics.registry import (
    CHOICE_METRICS,
    FULL_METRICS,
    GROUND_METRICS,
    JUDGED_METRICS,
    SET_METRICS,
    SHORT_METRICS,
)
from clew.evaluate.record import Record
from clew.evaluate.runner import RecipeRunner, rank_answers
from clew.evaluate.scoring import RecipeOutput, Scorer
from clew.evaluate.summary import RecipeReport
from clew.recipes.agents import AGENTS
from clew.recipes.registry import RECIPES
from clew.types import Evidence, NamedEntity, Passage, Route
from conftest import OpenFilled, document, one_in_three, stream

TEXT_METRICS = (*SHORT_METRICS, *SET_METRICS, *FULL_METRICS)
MODES: tuple[Mode, ...] = get_args(Mode)
QUICK_MODES = (MODES[:1], MODES[1:], (), ())
"""By turns: half of the recipes are run in one mode, and all in all modes by `make test-all`."""
ANSWERS = (*TEXT_METRICS, *CHOICE_METRICS, "reversion", "hits@1", "hits@10", "answer-mrr")
ASKED = ("naive", "clew", "graph-r1", "react", "ircot", "graphsearch", "youtu", "rograg")
# No documents are read, or not without an endpoint that embeds.
UNREAD = ("llm", "lego-13-llms-e")
OTHERS = [name for name in {**AGENTS, **RECIPES} if name not in (*ASKED, *UNREAD)]
QUICK = ("rograg-logic", "msgraphrag-global")
PERFECT = (*ANSWERS, *JUDGED_METRICS, *GROUND_METRICS, "refusal", "refusal-recall")
TOP = {"a-score": 10.0, "e-score": 10.0, "g-e": 100.0}
"""Judged scores keep the scale of their paper."""


async def fill_corpus(base: KnowledgeBase) -> None:
    await base.take(stream(document(name, text, title) for name, (title, text) in CORPUS.items()))


@pytest.fixture
async def corpus(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_filled(fill_corpus)


async def run(
    base: KnowledgeBase, model: Model, metrics: Sequence[str], mode: Mode, recipe: str
) -> RecipeReport:
    runner = RecipeRunner(with_model(base, model), metrics, answers=True, mode=mode, k=8)
    asked: Sequence[Known] = (*KNOWN, REVERSION, UNANSWERABLE)
    return await runner.run_recipe(recipe, [one.question for one in asked])


def find_missed(records: Sequence[Record]) -> dict[tuple[str, str], tuple[float, str]]:
    """Return every value below the best one there is, with the answer."""
    return {
        (record.question, name): (value, record.answer)
        for record in records
        for name, value in record.values.items()
        if "." not in name and value != pytest.approx(TOP.get(name, 1.0))
    }


@pytest.mark.parametrize(
    ("recipe", "mode"),
    [
        pytest.param(recipe, mode, marks=() if mode in QUICK_MODES[at % 4] else pytest.mark.slow)
        for at, recipe in enumerate(ASKED)
        for mode in MODES
    ],
)
async def test_a_perfect_model_has_full_marks(
    corpus: KnowledgeBase, mode: Mode, recipe: str
) -> None:
    metrics = (*PERFECT, "any@5")
    report = await run(corpus, perfect, metrics, mode, recipe)
    # Graph-R1 answers by a name, a date, a number, yes or no, and not by pairs.
    records = [one for one in report.records if ("graph-r1", "reversion") != (recipe, one.question)]
    assert find_missed(records) == {}
    assert {reason for record in report.records for reason in record.unscored.values()} == set()
    summary = report.summary()
    assert set(metrics) <= set(summary)
    # No denominator is smaller than the number of questions that have gold for its metric.
    texts, choices = len(KNOWN) - 2, 2
    counts = {"f1": texts, "choice": choices, "reversion": 1, "refusal-recall": 1}
    counts |= {"accuracy": len(KNOWN), "refusal": len(KNOWN) + 2, "any@5": len(KNOWN) + 1}
    for name, n in counts.items():
        assert summary.get(f"{name}.n", summary["n"]) == n, name


class InOrder:
    """A reranker that leaves the order as it is."""

    name = "in order"

    async def __call__(self, question: str, texts: Sequence[str], /) -> np.ndarray:
        return -np.arange(len(texts), dtype=np.float32)


@pytest.mark.parametrize(
    "recipes",
    [QUICK, *(pytest.param(OTHERS[at::8], marks=pytest.mark.slow) for at in range(8))],
    ids=["a few", *(f"part {at}" for at in range(8))],
)
async def test_a_perfect_model_loses_nothing_that_it_was_shown(
    corpus: KnowledgeBase, recipes: Sequence[str]
) -> None:
    await corpus.builder.make_tree_manager().build(["dual", "leiden", "raptor", "e2"])
    corpus.rerank = InOrder()
    for recipe in recipes:
        report = await run(corpus, perfect, PERFECT, "reject", recipe)
        shown = [one for one in report.records if "is told of" not in one.answer]
        if recipe.startswith("graph-r1"):
            shown = [one for one in shown if one.question != "reversion"]
        assert len(shown) > 5, recipe
        assert find_missed(shown) == {}, recipe


@pytest.mark.parametrize("mode", one_in_three(MODES))
@pytest.mark.parametrize(
    "recipe",
    ["naive", *(pytest.param(one, marks=pytest.mark.slow) for one in ("graph-r1", "react"))],
)
@pytest.mark.parametrize("model", [unknowing, wrong])
async def test_an_unknowing_and_a_wrong_model_have_none(
    corpus: KnowledgeBase, mode: Mode, recipe: str, model: Model
) -> None:
    metrics = (*ANSWERS, *JUDGED_METRICS, "grounded", "citation-recall")
    report = await run(corpus, model, metrics, mode, recipe)
    points = {
        (record.question, name): value
        for record in report.records
        for name, value in record.values.items()
        if value
    }
    assert points == {}
    summary = report.summary()
    assert {*ANSWERS, *JUDGED_METRICS} <= set(summary)
    assert summary.get("accuracy.n", summary["n"]) == len(KNOWN)
    said_nothing = model is unknowing or mode == "reject"
    assert summary["refused"] == (len(KNOWN) + 2 if said_nothing else 0)


@pytest.mark.parametrize("mode", MODES)
async def test_only_a_refusal_is_right_where_there_is_no_answer(
    corpus: KnowledgeBase, mode: Mode
) -> None:
    metrics = ("refusal", "refusal-precision", "refusal-recall")
    summary = (await run(corpus, unknowing, metrics, mode, "naive")).summary()
    unanswerable, total = 1, len(KNOWN) + 2
    assert summary["refusal-recall"] == 1.0
    assert summary["refusal-precision"] == summary["refusal"]
    assert summary["refusal"] == pytest.approx(unanswerable / total, abs=1e-4)


async def test_an_answer_from_memory_is_scored_without_our_marks(corpus: KnowledgeBase) -> None:
    report = await run(corpus, perfect, ANSWERS, "open", "llm")
    assert all(v == 1.0 for record in report.records for v in record.values.values())
    marks = [*OWN_MARKS]
    assert all(any(m in r.answer for m in marks) for r in report.records if r.verdict != "refused")


@pytest.mark.parametrize("mark", [*OWN_MARKS, "[1][2]"])
async def test_a_mark_changes_no_score(mark: str) -> None:
    question = Question(
        "q", "Who is PERSON#7?", ("Captain Ahab",), originals={"PERSON#7": ["Ahab"]}
    )
    plain = RecipeOutput(answer="PERSON#7: Ahab", short="Captain Ahab", answered=True)
    marked = RecipeOutput(
        answer=f"PERSON#7: Ahab {mark}", short=f"Captain Ahab {mark}", answered=True
    )
    scorer = Scorer([*TEXT_METRICS, "reversion"])
    scores = (await scorer.score(question, plain)).values
    assert scores == (await scorer.score(question, marked)).values
    assert scores["reversion"] == scores["em"] == 1.0


async def test_the_named_answer_and_the_whole_text_are_two_columns() -> None:
    question = Question("q", "Where?", ("Oslo",))
    names = RecipeOutput(answer="In Oslo, not in Bergen.", short="Bergen", answered=True)
    values = (await Scorer(["subem", "subem-short"]).score(question, names)).values
    assert values == {"subem": 1.0, "subem-short": 0.0}


@pytest.mark.parametrize(
    ("gold", "value"),
    [
        ("The Bretton Woods system remained in place until 1973.", 1.0),  # as it was written
        ("1973", 1.0),  # as it was named
        ("A Yank In The R.A.F.", 0.0),
        ("Martin Luther King Jr.", 0.0),
    ],
)
async def test_a_sentence_is_compared_with_what_was_written(gold: str, value: float) -> None:
    written = "The Bretton Woods system remained in place until 1973. [1]"
    said = RecipeOutput(answer=written, short="1973", answered=True)
    values = (await Scorer(["em", "f1"]).score(Question("q", "Until when?", (gold,)), said)).values
    assert values == {"em": value, "f1": value}
    longer = replace(said, answer=f"{written} Prices rose. It was founded in 1944.")
    values = (await Scorer(["f1"]).score(Question("q", "Until when?", (gold,)), longer)).values
    assert values["f1"] < 1.0 or gold == "1973"  # not the better of both


async def test_rankings_of_passages_have_full_marks_and_none() -> None:
    metrics = ["recall@2", "precision@2", "all@2", "any@2", "mrr", "ndcg@2", "r-s"]
    question = Question("q", "Where?", gold=("a", "b"), evidence=("one text", "another text"))

    class Embed:
        name, dim = "counts", 2

        async def __call__(self, texts: Sequence[str], /, **_: object) -> list[list[float]]:
            return [[float(" text" in text), float(" text" not in text)] for text in texts]

    def found(*docs: str) -> RecipeOutput:
        texts = {"a": "one text", "b": "another text"}
        kept = [Passage(d, d, "", 1.0, texts.get(d, "else"), 0, 1) for d in docs]
        return RecipeOutput(found=docs, passages=tuple(kept))

    scorer = Scorer(metrics, embed=Embed())  # type: ignore[arg-type]
    assert (await scorer.score(question, found("b", "a"))).values == dict.fromkeys(metrics, 1.0)
    for nothing in (found(), found("x", "y")):
        assert (await scorer.score(question, nothing)).values == dict.fromkeys(metrics, 0.0)


def test_an_answer_that_is_the_topic_itself_is_counted() -> None:
    question = Question("q", "Which towns twin with towns twinned with Oslo?", ("Oslo",))
    question_given = Question("q", question.text, ("Oslo",), entities=("Oslo",))
    round_trip = Route(("Oslo", "Bergen", "Oslo"), ("twin", "twin"), 2.0)
    other = Route(("Oslo", "Bergen", "Vessen"), ("twin", "twin"), 1.0)
    for asked in (question, question_given):
        assert rank_answers(Evidence(paths=(round_trip, other)), asked) == ("Oslo", "Vessen")
    entities = tuple(NamedEntity(name, name, "", 1.0) for name in ("Oslo", "Vessen"))
    # What the question names stands in every list of entities found: it is the last candidate.
    assert rank_answers(Evidence(entities=entities), question_given) == ("Vessen", "Oslo")
