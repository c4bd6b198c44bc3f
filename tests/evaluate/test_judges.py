"""Judges with a scripted model: scales, failures that are counted, and what the judge is shown."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from clew.config import ModelSettings, Price, Settings
from clew.engine import KnowledgeBase
from clew.errors import AuthError
from clew.evaluate.datasets import Question
from clew.evaluate.judges import (
    CORRECTNESS_PROMPT,
    CRITERION_PROMPT,
    EVIDENCE_PROMPT,
    PAIR_PROMPT,
    Judge,
    JudgeError,
)
from clew.evaluate.question_generation import WORDING_PROMPT
from clew.evaluate.record import Record
from clew.evaluate.rubrics import A_SCORE, G_E, PAIRWISE
from clew.evaluate.runner import RecipeRunner
from clew.evaluate.scoring import RecipeOutput, Scorer
from clew.evaluate.summary import RecipeReport
from clew.evaluate.tables import judge_pairs
from clew.llm.cache import DictCache
from clew.llm.chat import Request
from clew.llm.structured import pin_mode
from clew.llm.wrappers import CachedChat
from clew.testing.fakes import HashEmbed, ScriptedChat
from clew.testing.stub_endpoint import StubEndpoint
from clew.types import Passage

ASKED = Question("1", "Who built it?", ("Ilse",), ("d1",))
SAID = RecipeOutput(answer="Ilse built it.", short="Ilse", answered=True)


def score_by_criterion(marks: Mapping[str, int]) -> ScriptedChat:
    """A judge that gives these scores, each to the prompt that asks for its criterion."""

    def reply(request: Request) -> str:
        asked = str(request.messages[-1].content).rpartition("`score` for ")[2].partition(",")[0]
        return json.dumps({"score": marks[asked]})

    return ScriptedChat(reply)


async def test_no_answer_is_lost_without_asking_the_judge() -> None:
    chat = ScriptedChat(lambda _: json.dumps(dict.fromkeys(PAIRWISE, 1)))
    questions = [replace(ASKED, id=str(n)) for n in range(4)]
    records = [
        Record("naive", "0", error="the endpoint is down"),
        Record("naive", "1", answer="I cannot say.", verdict="refused"),
        Record("naive", "2", answer=""),
        Record("naive", "3", answer="Ilse", verdict="answered"),
    ]
    report = RecipeReport("naive", tuple(records), questions)
    rates = await judge_pairs([report], "gold", Judge(chat), lambda *_: None)
    # The judge prefers what stands first, so that the one answer it reads gets one half.
    assert rates.rates["naive"] == dict.fromkeys(PAIRWISE, 0.125)
    assert rates.n["naive"] == 4 and len(chat.requests) == 2


async def test_marks_are_means_on_the_papers_scales() -> None:
    marks = {"correctness": 9, "coherence": 6, "comprehensiveness": 3}
    chat = score_by_criterion(marks)
    values = await Judge(chat).score("a-score", ASKED, "x", "x", [])
    assert values == {
        "a-score": 6.0,
        "a-score.correctness": 9.0,
        "a-score.coherence": 6.0,
        "a-score.comprehensiveness": 3.0,
    }
    assert len(chat.requests) == len(marks)
    seven = dict(zip(G_E, [10, 9, 8, 7, 6, 5, 4], strict=True))
    chat = score_by_criterion(seven)
    values = await Judge(chat).score("g-e", ASKED, "x", "x", [])
    assert (values["g-e"], len(chat.requests)) == (pytest.approx(70.0), 7)
    chat = score_by_criterion({"relevance": 2, "knowledgeability": 4, "factuality": 9})
    values = await Judge(chat).score("e-score", ASKED, "x", "x", ["the gold passage"])
    assert values["e-score"] == 5.0
    assert "the gold passage" in chat.requests[0].messages[-1].content


async def test_two_answers_are_compared_in_both_orders() -> None:
    def prefers(text: str) -> Judge:
        def reply(request: Request) -> str:
            first, second = str(request.messages[-1].content).split("Second answer")
            better = 1 if text in first else 2 if text in second else 0
            return json.dumps(dict.fromkeys(PAIRWISE, better))

        return Judge(ScriptedChat(reply))

    assert await prefers("good").compare(ASKED, "good", "bad") == dict.fromkeys(PAIRWISE, 1.0)
    assert await prefers("good").compare(ASKED, "bad", "good") == dict.fromkeys(PAIRWISE, 0.0)
    # A judge that always takes the first, and one that cannot tell: neither decides anything.
    for biased in (prefers("First answer"), prefers("nothing")):
        assert await biased.compare(ASKED, "a", "b") == dict.fromkeys(PAIRWISE, 0.5)


async def test_accuracy_reads_the_answer_and_judge_at_1_the_short_one() -> None:
    chat = ScriptedChat(['{"correct": true, "reason": ""}', '{"correct": false, "reason": "no"}'])
    scorer = Scorer(["accuracy", "judge@1"], Judge(chat))
    scored = await scorer.score(ASKED, SAID)
    assert scored.values == {"accuracy": 1.0, "judge@1": 0.0}
    shown = [request.messages[-1].content for request in chat.requests]
    assert "Ilse built it." in shown[0]
    assert "Ilse built it." not in shown[1]


async def test_a_judge_without_a_number_is_counted_and_never_a_value() -> None:
    scorer = Scorer(["a-score"], Judge(ScriptedChat(lambda _: "I would rather not say.")))
    scored = await scorer.score(ASKED, SAID)
    assert scored.values == {}
    assert list(scored.unscored) == ["a-score"]
    with pytest.raises(JudgeError):
        chat = ScriptedChat(lambda _: '{"score": 11}')
        await Judge(chat).score("a-score", ASKED, "x", "x", [])


async def test_a_refused_key_stops_the_run() -> None:
    scorer = Scorer(["accuracy"], Judge(ScriptedChat([AuthError("no such key")])))
    with pytest.raises(AuthError):
        await scorer.score(ASKED, SAID)


async def test_silence_where_there_is_an_answer_is_wrong_and_no_judge_is_asked() -> None:
    chat = ScriptedChat([])
    refused = RecipeOutput(answer="Refused: Ilse is not named.", refused=True, answered=True)
    scorer = Scorer(["accuracy", "em", "subem", "refusal", "grounded"], Judge(chat))
    scored = await scorer.score(ASKED, refused)
    assert scored.values == {"accuracy": 0.0, "em": 0.0, "subem": 0.0, "refusal": 0.0}
    marked = await Scorer(["a-score"], Judge(chat)).score(ASKED, RecipeOutput(answered=True))
    assert marked.values["a-score.coherence"] == 0.0
    assert not chat.requests


async def test_a_failed_question_is_nought_for_the_metric_and_all_its_criteria() -> None:
    metrics = ["a-score", "accuracy", "em", "recall@5", "refusal-recall", "choice"]
    judged = Scorer(metrics, Judge(ScriptedChat([])))
    marks = {"a-score", "a-score.correctness", "a-score.coherence", "a-score.comprehensiveness"}
    assert judged.zero_values(ASKED, True) == dict.fromkeys(
        {*marks, "accuracy", "em", "recall@5"}, 0.0
    )
    # Without a judge nobody was judged, the failed question neither.
    assert set(Scorer(metrics).zero_values(ASKED, True)) == {"em", "recall@5"}
    assert set(judged.zero_values(ASKED, False)) == {"recall@5"}


async def test_a_reply_that_could_not_be_used_is_not_kept_for_the_next_run() -> None:
    replies = ["I would rather not say.", "Nor now.", '{"correct": true, "reason": ""}']
    inner = ScriptedChat(replies, name="remembering judge")
    pin_mode(inner.name, "json")
    judge = Judge(CachedChat(inner, DictCache()))
    with pytest.raises(JudgeError):
        await judge.score("accuracy", ASKED, "Ilse", "", [])
    for _ in range(2):  # the second is remembered
        assert await judge.score("accuracy", ASKED, "Ilse", "", []) == {"accuracy": 1.0}
    assert len(inner.requests) == 3


async def test_refusing_what_cannot_be_answered_is_right() -> None:
    hopeless = Question("2", "When?", answerable=False)
    scorer = Scorer(["refusal", "em"])
    assert scorer.zero_values(hopeless, True) == {"refusal": 0.0}
    right = await scorer.score(hopeless, RecipeOutput(refused=True, answered=True))
    wrong = await scorer.score(hopeless, RecipeOutput(answer="1900", answered=True))
    assert (right.values, wrong.values) == ({"refusal": 1.0}, {"refusal": 0.0})


async def test_r_s_is_the_cosine_of_both_sides_means() -> None:
    texts = {"d1": "alpha beta"}
    scorer = Scorer(["r-s"], embed=HashEmbed(), texts=texts)
    same = RecipeOutput(passages=(Passage("c", "d9", "", 1, "alpha beta", 0, 9),))
    other = RecipeOutput(passages=(Passage("c", "d9", "", 1, "gamma delta", 0, 9),))
    both = RecipeOutput(passages=(*same.passages, *other.passages))
    value = [(await scorer.score(ASKED, one)).values["r-s"] for one in (same, both, other)]
    assert value[0] == pytest.approx(1.0, abs=1e-5)
    assert value[0] > value[1] > value[2]
    assert (await scorer.score(ASKED, RecipeOutput())).values["r-s"] == 0
    without = await Scorer(["r-s"], texts=texts).score(ASKED, same)
    assert without.unscored == {"r-s": "no embedder"}


async def test_end_to_end_with_a_model_that_answers_and_judges(valley: KnowledgeBase) -> None:
    """Costs count the answer and not the judge; a second run costs nothing and counts the same."""

    def reply(messages: Sequence[Any]) -> str:
        asked = str(messages[-1]["content"])
        if "Answer to judge" in asked:
            return '{"correct": true, "reason": "same"}'
        if "Answer to mark" in asked:
            return "no marks today"
        said = "Ilse Brandvik was born in Hallowmere [1]."
        return json.dumps({"enough": True, "answer": said, "short": "Hallowmere"})

    questions = [Question("q", "Where was Ilse Brandvik born?", ("Hallowmere",), ("ilse",))]
    async with StubEndpoint(reply=reply) as stub:
        prices = {"m": Price(prompt=1000.0, completion=1000.0)}
        models = ModelSettings(model="m", base_url=stub.base_url, tries=1, prices=prices)
        settings = Settings(kb=valley.settings.kb, models=models)
        base = KnowledgeBase(valley.store, settings, valley.embed)
        run = RecipeRunner(base, ["em", "accuracy", "a-score", "grounded"], answers=True)
        first = (await run.run_recipe("reader+naive", questions)).summary()
        asked = stub.stats.chat_calls
        report = await run.run_recipe("reader+naive", questions)
        again = report.summary()
        assert stub.stats.chat_calls <= asked + 2 * len(
            A_SCORE
        )  # what could not be read may be asked again
    assert (first["em"], first["accuracy"], first["grounded"]) == (1.0, 1.0, 1.0)
    assert (first["unscored"], first["n"]) == (1, 1)
    assert "a-score" in report.records[0].unscored
    assert first["calls"] == again["calls"] == 1
    assert (first["cached_calls"], again["cached_calls"]) == (0, 1)
    assert first["tokens"] == again["tokens"] > 0
    assert first["money"] == pytest.approx(again["money"])
    assert first["money"] > 0
    assert report.about["judge"].startswith("m")


@pytest.mark.parametrize(
    "prompt",
    [CORRECTNESS_PROMPT, CRITERION_PROMPT, EVIDENCE_PROMPT, PAIR_PROMPT, WORDING_PROMPT],
    ids=lambda p: p.name,
)
def test_every_prompt_is_there_in_both_languages(prompt: Any) -> None:
    assert prompt.template.languages() == ["en", "zh"]
    for language in ("en", "zh"):
        turns = prompt.template.render({name: f"<{name}>" for name in prompt.needs}, language)
        rendered = "".join(str(turn.content) for turn in turns)
        assert all(f"<{name}>" in rendered for name in prompt.needs)
