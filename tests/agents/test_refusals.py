"""Refusal by code, calibration, conversations, budgets, patterns and the prompts' languages."""

import asyncio
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from agent_asking import ASKED, CONCLUDED, Ask, asking, reads
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.answering.read import ReadAnswer, check_reading
from clew.agents.answering.write import SentenceStream, StreamingChat
from clew.agents.ask import AskOptions
from clew.agents.citing.support import contains_answer, mentions_name
from clew.agents.conversation import ConversationTurn, needs_history
from clew.agents.core.evidence_page import build_page
from clew.agents.core.messages import is_unknown
from clew.agents.relevance_gate import GATE, calibrate_threshold, load_threshold, save_threshold
from clew.context import AnswerDelta, Event, StepEnded
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.layout import PASSAGES
from clew.llm.budget import BudgetExceeded, UsageBudget, UsageLimits
from clew.llm.chat import Request
from clew.testing.fakes import AgentScript, HashEmbed, ScriptedChat, prompt_name
from clew.types import Evidence, Passage, Usage


@pytest.fixture
def ask(valley: KnowledgeBase) -> Ask:
    """Ask the valley with a scripted model."""
    return asking(valley)


def page(text: str, title: str = "") -> Passage:
    return Passage("c", "doc", title, 1.0, text, 0, len(text))


# -- refusing


@pytest.mark.parametrize("recipe", ["reader+clew", "steps+clew", "graphsearch+clew", "react+clew"])
async def test_a_stranger_is_refused_whatever_the_model_says(ask: Ask, recipe: str) -> None:
    lies = {
        "enough": True,
        "sentences": [{"text": "Ilse Brandvik was born in Hallowmere.", "sources": [1, 2, 3]}],
        "short": "Hallowmere",
    }
    told = AgentScript(
        {
            "answer": lies,
            "conclude": lies,
            "react": {"thought": "", "action": "finish", "input": "Hallowmere"},
        }
    )
    asked = "Where was Gundula Pfefferkorn born?"
    answer = await ask(told, asked, recipe=recipe, mode="reject", confidence=0.5)
    assert answer.verdict == "refused"
    assert "Gundula Pfefferkorn" in answer.missing


async def test_only_what_no_document_has_is_said_to_be_unmentioned(ask: Ask) -> None:
    """Anton Reeve has a page of his own, which was not found for this question."""
    lies = {
        "enough": True,
        "sentences": [{"text": "It was designed by Ilse Brandvik.", "sources": [1]}],
        "short": "Ilse Brandvik",
    }
    told = AgentScript({"answer": lies})
    how = {"recipe": "bm25", "mode": "reject", "confidence": 1.0, "k": 1}
    asked = "Which stone bridge designed over the Tarn is it that {} saw?"
    known = await ask(told, asked.format("Anton Reeve"), **how)
    assert known.missing == "the passages found do not mention Anton Reeve"
    strange = await ask(told, asked.format("Gundula Moritz"), **how)
    assert strange.missing == "the documents do not mention Gundula Moritz"
    named = await ask(told, asked.format("Gundula Moritz"), **{**how, "mode": "open"})
    assert named.candidate == "Ilse Brandvik"
    assert named.confidence < 0.25
    assert "the documents do not mention Gundula Moritz" in named.note


def test_a_reading_must_stand_on_a_page_about_what_was_asked() -> None:
    passage = page("It was directed by Ana Roth.", "Ash")
    shown = build_page(Evidence((passage,)), PASSAGES)
    said = ReadAnswer(quote="directed by Ana Roth", source=1, answer="Ana Roth")
    assert check_reading("Who directed Ash?", said, shown, ["Ash"]).answer == "Ana Roth"
    assert not check_reading("Who directed Elm?", said, shown, ["Elm"]).has_answer
    invented = ReadAnswer(quote="", source=1, answer="Someone Else")
    assert not check_reading("Who directed Ash?", invented, shown, ["Ash"]).has_answer


def test_a_wrong_number_is_put_right_by_code() -> None:
    one, two = page("A lake.", "Orm"), page("It was directed by Ana Roth.", "Ash")
    shown = build_page(Evidence((one, two)), PASSAGES)
    note = check_reading(
        "Who directed Ash?", ReadAnswer(source=1, answer="Ana Roth."), shown, ["Ash"]
    )
    assert note.citation is not None
    assert note.citation.quote == "It was directed by Ana Roth."


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "unknown",
            "Unknown.",
            "Unknown. The page is about another.",
            "UNKNOWN",
            "N/A",
            "",
            "未知",
        ),
        *("Not mentioned in the passages", "none", "None of the pages names Ash."),
    ],
)
def test_ways_to_say_nothing(answer: str) -> None:
    assert is_unknown(answer)


@pytest.mark.parametrize(
    "answer",
    [
        *("Unknown Pleasures (album)", "The Unknown Soldier", "Null Island", "None Shall Pass"),
        *("Nona", "No", "1921", "无锡"),
    ],
)
def test_real_answers_are_not_taken_for_silence(answer: str) -> None:
    assert not is_unknown(answer)


def test_names_are_spoken_of_in_full_or_by_a_form_that_stands_for_them() -> None:
    assert mentions_name("Ash (1962 film)", "Ash is a film.")
    assert mentions_name("Sir Otto Vance", "Otto Vance was a knight.")
    assert mentions_name("Otto II, Count of Vance", "Otto II ruled long.")
    assert not mentions_name("Charles Patin", "Charles of Vance and Guy Patin were here.")
    assert contains_answer("3 May 1888", "She was born on 3 May 1888 in Marn.")
    assert contains_answer("May 3, 1888", "She was born on 3 May 1888 in Marn.")
    assert not contains_answer("4 May 1888", "She was born on 3 May 1888. It took 4 days.")
    assert not contains_answer("Ana Roth", "Ana was a friend of the famous painter Ida Roth.")


# -- the gate


def test_the_threshold_parts_good_from_bad() -> None:
    found = calibrate_threshold([0.9, 0.8, 0.7, 0.2], [0.1, 0.3, 0.25])
    assert 0.3 < found.value < 0.7
    assert (found.recall, round(found.precision, 2)) == (1.0, 0.75)

    assert (found.refused_good, found.passed_bad) == (1, 0)
    assert found.balance == 0.75


def test_scores_that_do_not_part_are_no_better_than_chance() -> None:
    assert calibrate_threshold([0.1, 0.2], [0.8, 0.9]).balance == 0
    assert calibrate_threshold([0.5, 0.5], [0.5]).balance == 0


@given(st.lists(st.floats(0, 1), max_size=20), st.lists(st.floats(0, 1), max_size=20))
def test_any_scores_give_a_threshold(good: list[float], bad: list[float]) -> None:
    found = calibrate_threshold(good, bad)
    assert 0 <= found.recall <= 1
    assert 0 <= found.precision <= 1
    assert found.balance >= 0
    assert found.refused_good == sum(score < found.value for score in good)
    assert found.passed_bad == sum(score >= found.value for score in bad)


async def test_a_calibrated_threshold_is_kept_with_the_knowledge_base(
    valley: KnowledgeBase,
) -> None:
    assert await load_threshold(valley.store) is None
    about = await valley.relevance(ASKED)
    strange = await valley.relevance("How tall is the Eiffel Tower in Paris?")
    assert about.score > strange.score
    assert "Eiffel Tower" in strange.unknown
    await save_threshold(valley.store, 0.99, GATE)
    assert await load_threshold(valley.store) == 0.99
    refused = await asking(valley)(AgentScript({}), ASKED, recipe="rograg+clew", mode="reject")
    assert refused.verdict == "refused"
    assert "0.99" in refused.missing


# -- conversations


async def test_a_follow_up_is_condensed_into_a_question_of_its_own(ask: Ask) -> None:
    told = AgentScript({"condense": {"question": ASKED}, "answer": CONCLUDED})
    history = (ConversationTurn("What is Marrow Bridge?", "A stone bridge."),)
    asked = "And where was its designer born?"
    answer = await ask(told, asked, recipe="reader+clew", manner=AskOptions(history=history))
    assert answer.question == asked
    assert answer.trace[0].step == "condense"
    assert answer.trace[0].output == ASKED
    assert [c.doc for c in answer.citations] == ["ilse"]


async def test_without_a_model_the_earlier_question_lends_its_names(valley: KnowledgeBase) -> None:
    history = (ConversationTurn("Who was Ilse Brandvik?", "An engineer."),)
    answer = await valley.ask("Where was she born?", manner=AskOptions(history=history))
    assert answer.evidence.chunks[0].doc == "ilse"
    whole = await valley.ask("Where was Anton Reeve born?", manner=AskOptions(history=history))
    assert whole.trace[0].output == "Where was Anton Reeve born?"


def test_which_questions_lean_on_others() -> None:
    assert needs_history("And where was she born?")
    assert needs_history("Why?")
    assert needs_history("她出生在哪里？")
    assert not needs_history("Where was the designer of Marrow Bridge born?")


# -- budgets and streams


def test_each_limit_ends_the_budget() -> None:
    for limits, spent in (
        (UsageLimits(calls=0), Usage()),
        (UsageLimits(tokens=10), Usage(1, 6, 4)),
        (UsageLimits(money=0.5), Usage(money=0.5)),
        (UsageLimits(seconds=0.0), Usage()),
    ):
        budget = UsageBudget(limits)
        budget.spent.add(spent)
        with pytest.raises(BudgetExceeded, match="is spent"):
            budget.take_call()
    assert UsageLimits(calls=3).intersect(UsageLimits(calls=5, tokens=7)) == UsageLimits(
        calls=3, tokens=7
    )


def test_a_limit_of_nothing_is_a_limit() -> None:
    assert str(UsageLimits(calls=0, seconds=0.5)) == "0 calls, 0.5 seconds"
    assert str(UsageLimits()) == "no limit"


@pytest.mark.parametrize("limits", [{"calls": -5}, {"seconds": -0.1}, {"money": float("nan")}])
def test_what_is_no_amount_is_no_limit(limits: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="is not a valid limit"):
        UsageLimits(**limits)


async def test_money_is_not_counted_without_a_price(ask: Ask) -> None:
    script = AgentScript({"read": reads})
    with pytest.raises(ConfigError, match="no price is set for 'm'"):
        await ask(script, ASKED, recipe="reader+clew", manner=AskOptions(UsageLimits(money=1)))
    assert not script.prompts


async def test_where_no_model_is_there_is_nothing_to_pay(valley: KnowledgeBase) -> None:
    answer = await valley.ask(ASKED, manner=AskOptions(UsageLimits(money=0)))
    assert answer.complete and answer.verdict == "answered"


@pytest.mark.parametrize("recipe", ["clew", "reader+clew", "rograg+clew", "graphsearch+clew"])
async def test_looking_up_takes_time_too(valley: KnowledgeBase, recipe: str) -> None:
    answer = await valley.ask(ASKED, recipe=recipe, manner=AskOptions(UsageLimits(seconds=0)))
    assert not answer.complete
    assert answer.verdict == "refused"
    assert "0 seconds" in answer.note


async def test_time_that_runs_out_leaves_what_was_found_by_then(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = [0.0]
    monkeypatch.setattr("clew.llm.budget.monotonic", lambda: monotonic() + late[0])

    def slow(message: str) -> dict[str, Any]:
        late[0] += 1000
        return reads(message)

    answer = await ask(
        AgentScript(dict.fromkeys(("read", "refine_read", "refine_read_graph"), slow)),
        ASKED,
        recipe="graphsearch+clew",
        manner=AskOptions(UsageLimits(seconds=500)),
    )
    assert not answer.complete
    assert "500 seconds" in answer.note
    assert answer.citations


def test_sentences_are_heard_while_the_json_is_written() -> None:
    whole = '{"sentences": [{"text": "One \\"two\\".", "sources": [1]}, {"text": "Three."}]}'
    heard = [SentenceStream().feed(whole[:at]) for at in range(len(whole) + 1)]
    assert heard[-1] == 'One "two". Three.'
    for shorter, longer in zip(heard, heard[1:], strict=False):
        assert longer.startswith(shorter)


async def test_a_draft_that_is_written_again_is_told_on_a_new_line() -> None:
    chat = ScriptedChat(['{"text": "One."}', '{"text": "Two."}'])
    told: list[Event] = []
    heard = StreamingChat(chat, told.append)
    for _ in range(2):
        await heard(Request())
    pieces = [piece for piece in told if isinstance(piece, AnswerDelta)]
    assert "".join(piece.text for piece in pieces) == "One.\nTwo."
    assert [piece.text for piece in pieces if piece.restart] == ["\n"]  # the first draft is void


async def test_a_stream_ends_with_the_answer(valley: KnowledgeBase) -> None:
    events = [event async for event in valley.stream(ASKED, recipe="steps+clew")]
    assert [type(event) for event in events][-1].__name__ == "Answer"
    assert any(isinstance(event, StepEnded) for event in events)
    assert not any(
        isinstance(event, AnswerDelta) for event in events
    )  # nobody writes without a model


async def test_leaving_a_stream_stops_the_work(valley: KnowledgeBase) -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    class Hanging(HashEmbed):
        """An embedder that does not answer, and notes that it was told to stop."""

        async def __call__(self, texts: Sequence[str], /, *, role: Any = "passage") -> Any:
            begun.set()
            try:
                return await asyncio.Future()
            except asyncio.CancelledError:
                stopped.set()
                raise

    waiting = KnowledgeBase(valley.store, valley.settings, Hanging())
    stream: Any = waiting.stream(ASKED, recipe="steps+clew")
    async for _ in stream:
        await asyncio.wait_for(begun.wait(), 30)
        break
    assert not stopped.is_set()
    await stream.aclose()
    await asyncio.wait_for(stopped.wait(), 5)


# -- prompts


def test_every_prompt_of_the_agents_has_both_languages_and_a_name_of_its_own() -> None:
    folder = Path(str(files("clew") / "prompts"))
    mine = (
        "answer conclude condense decompose draft expand intent involved know list logic "
        "next_thought react read refine reflect relations sufficient verify"
    ).split()
    for name in mine:
        for file in (f"{name}.md", f"{name}.zh.md"):
            text = (folder / file).read_text(encoding="utf-8")
            assert "JSON" in text, file
            assert len(text) < 2500, f"{file} is too long for a small model"
            opening = {"role": "system", "content": text.split("=== user ===")[0]}
            assert prompt_name([opening]) == name
