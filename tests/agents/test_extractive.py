"""Without a model: a candidate only of whom the question means, and only where it is understood."""

from typing import Any

import pytest

from clew.agents.ask import AskOptions, find_lone_pronoun
from clew.agents.conversation import ConversationTurn
from clew.agents.core.confidence import save_models
from clew.agents.base import Answer
from clew.engine import KnowledgeBase
from clew.index.view import View
from clew.testing.word_reader import CONFIDENCE
from conftest import OpenFilled, document, stream

PAGES = (
    document("kranz", "Otto Kranz painted harbours. He was born in Leipzig in 1881.", "Otto Kranz"),
    document("lund", "Bo Lund was a painter. Bo Lund was born in Aarhus, Denmark.", "Bo Lund"),
    document("holt", "Karl Holt was a Swiss sculptor. Holt was born in Bern.", "Karl Holt"),
    document("roth", "Mina Roth was a chemist. She was born in Graz in 1899.", "Mina Roth"),
    document("line", "The bridge carries a narrow line from Pellworth to Sarn.", "Sarn Bridge"),
    document("ali", "ولد محمد علي في قولة سنة 1769. حكم مصر سنة 1805 في القاهرة.", "محمد علي"),
)


async def fill_people(base: KnowledgeBase) -> None:
    """Pages on people of whom some share a trade."""
    await base.take(stream(PAGES))
    await save_models(base.store, CONFIDENCE)


@pytest.fixture
async def people(open_filled: OpenFilled) -> KnowledgeBase:
    """Pages on people of whom some share a trade."""
    return await open_filled(fill_people)


async def asked(base: KnowledgeBase, question: str, mode: Any = "reject", **how: Any) -> Answer:
    return await base.ask(question, recipe="clew", mode=mode, **how)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Where was Otto Kranz born?", "Leipzig"),
        ("Where was the painter Otto Kranz born?", "Leipzig"),
        ("Where was the harbour painter Otto Kranz born?", "Leipzig"),
        ("Where was the painter Bo Lund born?", "Aarhus, Denmark"),
        ("Where was Otto Kranz, the painter, born?", "Leipzig"),
        ("When was the painter Otto Kranz born?", "1881"),
        ("Where was the sculptor Karl Holt born?", "Bern"),
        ("Where was the engineer Karl Holt born?", "Bern"),
        ("Where was the chemist Mina Roth born?", "Graz"),
        ("متى ولد محمد علي؟", "1769"),
    ],
)
async def test_a_trade_before_a_name_changes_nothing(
    people: KnowledgeBase, question: str, said: str
) -> None:
    answer = await asked(people, question)
    assert answer.candidate == said
    assert any(said in cited.quote for cited in answer.citations)


@pytest.mark.parametrize(
    "question",
    [
        "Where did the painter Otto Kranz die?",
        "Where does Otto Kranz live?",
        "Where was the designer of the bridge born?",  # a line from somewhere is no birth
        "Wann wurde Otto Kranz geboren?",
        "¿Dónde nació Otto Kranz?",
    ],
)
async def test_nobody_elses_place_and_nothing_not_understood(
    people: KnowledgeBase, question: str
) -> None:
    refused = await asked(people, question)
    assert (refused.verdict, refused.candidate) == ("refused", "")
    assert refused.missing
    assert (await asked(people, question, "open")).confidence < 0.5


@pytest.mark.parametrize("question", ["Where was she born?", "她出生在哪里？", "Who taught him?"])
async def test_a_lone_pronoun_is_refused(people: KnowledgeBase, question: str) -> None:
    answer = await asked(people, question)
    assert answer.verdict == "refused"
    pronoun = next(word for word in ("she", "她", "him") if word in question)
    assert f"“{pronoun}”" in answer.missing


async def test_in_open_mode_it_is_answered_without_confidence(people: KnowledgeBase) -> None:
    answer = await asked(people, "Where was she born?", "open")
    assert answer.verdict == "answered"
    assert answer.confidence < 0.5


async def test_what_was_said_before_tells_who_it_is(people: KnowledgeBase) -> None:
    manner = AskOptions(history=(ConversationTurn("Who was Mina Roth?", "A chemist."),))
    answer = await asked(people, "Where was she born?", manner=manner)
    assert answer.candidate == "Graz"


@pytest.fixture
async def view(people: KnowledgeBase) -> View:
    """What is known of these people."""
    async with people.store.snapshot() as snapshot:
        return (await people.context(snapshot, "x")).view


@pytest.mark.parametrize(
    ("question", "pronoun"),
    [
        ("And when did he die?", "he"),
        ("In which town was she born?", "she"),
        ("Who is her father?", "her"),
        ("Was she born in 1899?", "she"),
        ("When was it built?", "it"),
        ("Which author published her first novel at sixty?", ""),
        ("How do they make glass?", ""),
        ("Is it true that bridges rust?", ""),
        ("Did she know Otto Kranz?", ""),
        ("Who said that he was tired?", ""),
        ("其他桥梁在哪里？", ""),
    ],
)
def test_which_pronouns_stand_alone(view: View, question: str, pronoun: str) -> None:
    assert find_lone_pronoun(view, question) == pronoun
