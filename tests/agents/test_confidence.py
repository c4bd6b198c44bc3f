"""The confidence of answers: fitting, calibration, refitting on one's own questions."""

import math
from dataclasses import replace

import pytest
from agent_asking import CONCLUDED, asking
from bench.answer_sets import measure_chance_error
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.core.confidence import (
    LogisticModel,
    describe_confidence,
    fit_logistic,
    format_models,
    load_models,
    load_shipped_models,
    measure_calibration_error,
    parse_models,
    risk_coverage,
    save_models,
)
from clew.agents.base import Answer
from clew.builder import ignore_progress
from clew.config import ROLES, ModelSettings
from clew.engine import KnowledgeBase
from clew.errors import InputError, StoreError
from clew.evaluate.calibrate import JudgedAnswer, fit_outcomes, refit_confidence
from clew.evaluate.datasets import Question
from clew.json_output import answer_json
from clew.llm.chat import Request
from clew.llm.structured import pin_mode
from clew.models import Models
from clew.testing.fakes import AgentScript, ScriptedChat


def test_what_tells_right_from_wrong_gets_the_weight() -> None:
    rows = [{"own": 0.9, "noise": n / 10} for n in range(10)]
    rows += [{"own": -0.9, "noise": n / 10} for n in range(10)]
    fitted = fit_logistic(rows, [True] * 10 + [False] * 10)
    assert fitted.weights["own"] > 5 * abs(fitted.weights["noise"])
    assert fitted({"own": 0.9}) > 0.8
    assert fitted({"own": -0.9}) < 0.2


def test_few_questions_move_a_model_little_and_many_move_it_far() -> None:
    prior = LogisticModel({"own": 2.0}, 0.0)
    wrong = [{"own": 0.5}]
    few = fit_logistic(wrong * 2, [False] * 2, prior)
    many = fit_logistic(wrong * 200, [False] * 200, prior)
    assert prior(wrong[0]) > few(wrong[0]) > many(wrong[0])


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=40))
def test_the_error_of_any_answers_is_a_share(rows: list[tuple[float, bool]]) -> None:
    error = measure_calibration_error([c for c, _ in rows], [r for _, r in rows])
    assert 0 <= error <= 1


def test_the_error_is_the_distance_of_confidence_and_accuracy() -> None:
    assert measure_calibration_error([0.75] * 4, [True, True, True, False]) == 0
    assert math.isclose(measure_calibration_error([0.9, 0.9], [False, False]), 0.9)


def test_the_surest_answers_come_first() -> None:
    assert risk_coverage([0.2, 0.9, 0.8, 0.1], [False, True, True, False], (0.5, 1.0)) == [1, 0.5]


def test_every_confidence_has_words() -> None:
    assert describe_confidence(0.9) == "well supported"
    assert describe_confidence(0.0) == "hardly supported"


@given(st.dictionaries(st.text(max_size=8), st.floats(-50, 50), max_size=5), st.floats(-50, 50))
def test_a_model_is_written_and_read_unchanged(weights: dict[str, float], bias: float) -> None:
    models = {"answer": LogisticModel(weights, bias)}
    assert parse_models(format_models(models)) == models


def test_what_is_no_model_is_said_to_be_none() -> None:
    with pytest.raises(StoreError, match="clew calibrate --reset"):
        parse_models('{"answer": 3}')


async def test_a_knowledge_base_keeps_its_own_confidence(valley: KnowledgeBase) -> None:
    question = "Who designed Marrow Bridge?"
    before = (await valley.ask(question)).confidence
    await save_models(valley.store, {"answer": LogisticModel({}, -9.0)})
    assert (await valley.ask(question)).confidence < 0.01 < before
    await save_models(valley.store, {})
    assert await load_models(valley.store) == load_shipped_models()


async def test_an_answer_by_a_model_has_a_confidence_too(valley: KnowledgeBase) -> None:
    told = AgentScript({"answer": CONCLUDED})
    answer = await asking(valley)(told, recipe="reader+clew")
    assert 0.5 < answer.confidence <= 1
    assert answer_json(answer)["confidence"] == answer.confidence


def ask_about(name: str, answer: str) -> Question:
    return Question(f"{name}-{answer}", f"Who designed {name}?", (answer,))


async def test_own_questions_refit_the_confidence(valley: KnowledgeBase) -> None:
    known = [ask_about("Marrow Bridge", "Ilse Brandvik")] * 10
    wrong = [ask_about("Marrow Bridge", "Somebody Else")] * 10
    fit = await refit_confidence(valley, [*known, *wrong], None, ignore_progress)
    assert (fit.questions, fit.right) == (20, 10)
    assert fit.error_after < fit.error_before
    assert 0 <= fit.precision <= 1
    with pytest.raises(InputError, match="too few"):
        await refit_confidence(valley, known, None, ignore_progress)
    with pytest.raises(InputError, match="all answers are right"):
        await refit_confidence(valley, known * 2, None, ignore_progress)


async def test_a_model_that_is_right_is_trusted_once_its_answers_are_known(
    valley: KnowledgeBase,
) -> None:
    script = AgentScript({"answer": CONCLUDED, "answer_graph": CONCLUDED})

    def say(request: Request) -> str:
        return script([{"role": m.role, "content": m.content} for m in request.messages])

    def answering(name: str) -> KnowledgeBase:
        chat = ScriptedChat(say, name=name)
        pin_mode(name, "json")
        base = KnowledgeBase(valley.store, valley.settings, valley.embed)
        models = ModelSettings(model=name)
        base.models = Models(models, valley.store, chats=dict.fromkeys(ROLES, chat))
        return base

    asked, golds = "Where was the designer of Marrow Bridge born?", ("Hallowmere",)
    known = [Question(str(n), asked, golds) for n in range(20)]
    strong, weak = answering("strong"), answering("weak")
    before = (await strong.ask(asked, recipe="reader")).confidence
    fit = await refit_confidence(strong, known, "reader", ignore_progress)
    await save_models(valley.store, fit.models)
    assert (await strong.ask(asked, recipe="reader")).confidence > max(before, 0.9)
    assert (await weak.ask(asked, recipe="reader")).confidence == before
    wrong = [Question(one.id, one.text, ("Vessen",)) for one in known[1:]]
    fit = await refit_confidence(weak, [known[0], *wrong], "reader", ignore_progress)
    await save_models(valley.store, fit.models)
    assert (await weak.ask(asked, recipe="reader")).confidence < before
    assert (await strong.ask(asked, recipe="reader")).confidence > 0.9


async def test_steps_are_refitted_and_accounts_are_counted(
    valley: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = await valley.ask("Who designed Marrow Bridge?")
    signs = {"announcement": 0.8, "item": 0.6, "ahead": 0.05, "told": 1.0}
    steps = replace(told, kind="steps", candidate="", answer="1. Lift.", signals=signs)
    kinds = {"How is it lifted?": steps, "What is it?": replace(steps, kind="account")}

    async def ask(_: KnowledgeBase, question: str, **how: object) -> Answer:
        return kinds.get(question, told)

    monkeypatch.setattr(KnowledgeBase, "ask", ask)
    unanswered = [Question(f"s{n}", "How is it lifted?", (), answerable=False) for n in range(20)]
    known = [ask_about("Marrow Bridge", "Ilse Brandvik")] * 15
    accounts = [Question("a", "What is it?", ("a bridge",))]
    fit = await refit_confidence(valley, [*known, *unanswered, *accounts], None, ignore_progress)
    assert (fit.questions, fit.accounts) == (35, 1)
    assert fit.models["steps"](signs) < load_shipped_models()["steps"](signs)


async def test_questions_without_answers_are_not_counted_in_a_refit(valley: KnowledgeBase) -> None:
    known = [ask_about("Marrow Bridge", "Ilse Brandvik")] * 10
    wrong = [ask_about("Marrow Bridge", "Somebody Else")] * 10
    empty = [Question(f"empty-{n}", "Who designed Marrow Bridge?", ()) for n in range(4)]
    fit = await refit_confidence(valley, [*known, *wrong, *empty], None, ignore_progress)
    assert (fit.questions, fit.folds) == (20, 5)
    # Each is judged by the others: the same signals are right half of the time.
    assert fit.error_after > 0


async def test_what_is_told_of_unanswerable_questions_counts_as_wrong(
    valley: KnowledgeBase,
) -> None:
    known = [ask_about("Marrow Bridge", "Ilse Brandvik")] * 10
    none = [replace(one, answers=(), answerable=False) for one in known]
    fit = await refit_confidence(valley, [*known, *none], None, ignore_progress)
    assert (fit.questions, fit.right, fit.unanswerable) == (20, 10, 10)


def test_a_fit_that_judges_other_questions_no_better_is_not_better() -> None:
    rows = [({"own": 0.9}, True), ({"own": -0.9}, False)] * 20
    judged = [JudgedAnswer("answer", signals, right) for signals, right in rows]
    assert fit_outcomes(judged).better
    # The same signals are right and wrong by turns, so that there is nothing to learn.
    mixed = [JudgedAnswer("answer", {"own": 0.1}, at % 10 < 5) for at in range(50)]
    fit = fit_outcomes(mixed)
    assert not replace(fit, loss_after=fit.loss_before).better
    assert not replace(fit, error_after=fit.error_before + 0.01).better


def test_few_answers_have_a_calibration_error_by_chance() -> None:
    spread = [0.15, 0.35, 0.55, 0.75, 0.95]
    few, many = measure_chance_error(spread * 12), measure_chance_error(spread * 400, draws=50)
    assert 0.04 < few < 0.2
    assert many < few / 3
    assert measure_chance_error([0.0, 1.0] * 10) == 0


@pytest.mark.parametrize("kind", ["seconded", "written"])
def test_an_answer_about_names_that_no_passage_has_is_unsure(kind: str) -> None:
    """The best there can be said for it otherwise does not make up for that."""
    model = load_shipped_models()[kind]
    best = {name: 1.0 for name, weight in model.weights.items() if weight > 0}
    best = {**best, "agreed": 0.0}  # what code computed, or one model wrote
    typical = {**best, "backed": 0.0}
    assert model(best) > 0.8
    assert model({**typical, "named": 0.0}) < 0.5
