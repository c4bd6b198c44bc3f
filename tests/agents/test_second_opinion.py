"""With a model the reader is asked as well: it supports the written answer, or is against it."""

import re
from dataclasses import replace
from typing import Any

import pytest
from agent_asking import asking

from clew.agents.answering.choose_answer import answers_as_well, overrule
from clew.agents.ask import AskOptions
from clew.agents.base import Answer, Mode
from clew.engine import KnowledgeBase
from clew.llm.budget import UsageLimits
from clew.testing.fakes import AgentScript
from clew.types import Evidence
from conftest import OpenFilled, document, one_in_three, stream

PAGES = {
    "Ada Brink": "Ada Brink was a surveyor. She was born in Ribe. One book says: born in Odense.",
    "Storm Works": "Storm Works makes pumps. It was founded by Ada Brink.",
}


async def fill_works(base: KnowledgeBase) -> None:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in PAGES.items()]))


@pytest.fixture
async def works(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_filled(fill_works)


async def ask_model(
    works: KnowledgeBase, short: str, choice: str = "", *, question: str, **how: Any
) -> Answer:
    """Ask with a model that writes one answer, and chooses another, or none, if it is asked."""
    sentence = {"text": f"Ada Brink was born in {short}.", "sources": [1, 2]}
    written = {"enough": True, "sentences": [sentence], "short": short, "missing": ""}

    def choose(message: str) -> dict[str, Any]:
        shown = dict(re.findall(r"^(\d+): (.*)$", message.rsplit("Answers:", 1)[-1], re.MULTILINE))
        number = next((int(n) for n, text in shown.items() if text == choice), 0)
        return {"reason": "so it is said", "choice": number}

    script = AgentScript({"answer": written, "answer_graph": written, "choose_answer": choose})
    return await asking(works)(script, question, **how)


@pytest.mark.parametrize(
    "question", ["Where was Ada Brink born?", "What is the birthplace of Ada Brink, who was born?"]
)
async def test_the_reader_agrees_or_not(works: KnowledgeBase, question: str) -> None:
    same = await ask_model(works, "Ribe", question=question, recipe="steps-judged")
    other = await ask_model(works, "Odense", question=question, recipe="steps-judged")
    assert same.signals["agreed"] > 0
    assert other.signals["against"] > 0
    assert other.candidate == "Odense"
    assert same.confidence > other.confidence


async def test_the_better_supported_answer_is_given(works: KnowledgeBase) -> None:
    how = {"question": "Where was Ada Brink born?"}
    overruled = await ask_model(works, "Odense", recipe="steps-unasked", **how)
    assert overruled.candidate == "Ribe"
    assert "the model wrote “Odense”" in overruled.note
    assert (await ask_model(works, "Odense", recipe="steps-once", **how)).candidate == "Odense"


async def test_a_model_that_wrote_nothing_is_not_said_to_have(works: KnowledgeBase) -> None:
    script = AgentScript({"answer": lambda _: "lorem", "answer_graph": lambda _: "lorem"})
    found = await asking(works)(script, "Where was Ada Brink born?", recipe="steps-unasked")
    assert found.candidate and "no usable answer" in found.note
    read = await ask_model(works, "Ribe", question="Where was Ada Brink born?", recipe="steps")
    note = overrule(found, read).note
    assert note.startswith("the model gave no usable answer; what is read")


async def test_where_both_differ_the_model_chooses(works: KnowledgeBase) -> None:
    how = {"question": "What was Ada Brink's native town?", "recipe": "steps"}
    kept = await ask_model(works, "Odense", "Odense", **how)
    assert kept.candidate == "Odense"
    assert kept.signals["against"] < 0.5
    [step] = [step for step in kept.trace if step.step == "choose"]
    assert step.output == "Odense"
    assert {"Ribe", "Odense"} <= set(step.input.split("; "))
    assert (await ask_model(works, "Odense", "Ribe", **how)).candidate == "Ribe"
    assert (await ask_model(works, "Odense", "none", **how)).candidate == "Ribe"


async def test_a_sure_reader_is_weighed_against_a_model_that_keeps_its_answer(
    works: KnowledgeBase,
) -> None:
    how = {"question": "In which town was the surveyor Ada Brink born?", "recipe": "steps"}
    stubborn = await ask_model(works, "Odense", "Odense", **how)
    assert stubborn.candidate == "Ribe"
    assert stubborn.signals["alone"] >= 0.5
    assert "the model wrote “Odense”" in stubborn.note


async def test_an_answer_that_agrees_is_not_asked_about(works: KnowledgeBase) -> None:
    same = await ask_model(works, "Ribe", "Odense", question="Where was Ada Brink born?")
    assert same.candidate == "Ribe"
    assert not [step for step in same.trace if step.step == "choose"]
    assert same.usage.calls == 1


async def test_where_no_calls_are_left_the_better_supported_is_given(works: KnowledgeBase) -> None:
    manner = AskOptions(UsageLimits(calls=1))
    asked = "Where was Ada Brink born?"
    answer = await ask_model(works, "Odense", "Odense", question=asked, manner=manner)
    assert answer.candidate == "Ribe"
    assert answer.usage.calls == 1


async def test_who_chooses_what_it_wrote_is_trusted_more(works: KnowledgeBase) -> None:
    how = {"question": "Where was Ada Brink born?", "recipe": "steps-judged"}
    kept = await ask_model(works, "Odense", "Odense", **how)
    changed = await ask_model(works, "Odense", "none", **how)
    assert (kept.candidate, changed.candidate) == ("Odense", "Odense")
    assert (kept.signals["kept"], changed.signals["kept"]) == (1.0, 0.0)
    assert kept.confidence > changed.confidence


async def test_a_contradicted_span_is_trusted_less(works: KnowledgeBase) -> None:
    how = {"question": "Where was Ada Brink born?", "recipe": "steps-read"}
    convinced = await ask_model(works, "Odense", "Ribe", **how)
    stubborn = await ask_model(works, "Odense", "Odense", **how)
    assert convinced.candidate == stubborn.candidate == "Ribe"
    assert convinced.confidence > stubborn.confidence
    assert stubborn.confidence < stubborn.signals["alone"]


async def test_a_yes_is_compared_with_the_sentence_that_says_it(works: KnowledgeBase) -> None:
    asked, said = "Was Ada Brink born in Ribe?", "Ada Brink was born in Ribe."
    yes, no = [await asking(works)(says(short, said), asked) for short in ("yes", "no")]
    assert (yes.candidate, no.candidate) == ("yes", "no")
    assert yes.signals["agreed"] > 0 and no.signals["against"] > 0
    assert yes.confidence > no.confidence
    assert "She was born in Ribe." in no.note


async def test_a_no_that_no_passage_supports_is_not_given(works: KnowledgeBase) -> None:
    answer = await ask_model(works, "no", question="Was Ada Brink born in Ribe?")
    assert answer.candidate == "yes"
    assert answer.citations
    assert "no passage supports" in answer.note
    unsaid = await ask_model(works, "yes", question="Was Ada Brink married to a baker?")
    assert unsaid.signals.keys().isdisjoint(("agreed", "against"))


async def test_the_answer_of_the_worked_example_is_no_answer(works: KnowledgeBase) -> None:
    copied = await ask_model(works, "Marn", "Marn", question="Where was Ada Brink born?")
    assert "Marn" not in copied.candidate + copied.answer
    refused = await ask_model(
        works, "Marn", question="Where was the owner of the pumps born?", mode="reject"
    )
    assert (refused.verdict, refused.citations) == ("refused", ())


@pytest.mark.parametrize("mode", ["open", "reject"])
async def test_where_a_model_finds_nothing_a_sure_reader_is_less_sure(
    works: KnowledgeBase, mode: Mode
) -> None:
    unwritten = {"enough": False, "sentences": [], "short": "", "missing": "x"}
    script = AgentScript({"answer": unwritten, "answer_graph": unwritten})
    answer = await asking(works)(script, BORN, recipe="steps", mode=mode)
    alone = await ask_without_model(works, BORN, mode=mode)
    assert answer.candidate == alone.candidate == "Ribe"
    assert "found no answer" in answer.note
    assert answer.confidence < alone.confidence
    refused = await asking(works)(script, BORN, recipe="steps", mode="reject", confidence=0.9)
    assert refused.verdict == "refused"


async def test_what_a_model_and_an_unsure_reader_do_not_find_is_refused(
    works: KnowledgeBase,
) -> None:
    unwritten = {"enough": False, "sentences": [], "short": "", "missing": "x"}
    script = AgentScript({"answer": unwritten, "answer_graph": unwritten})
    asked = "Which prize did Ada Brink win in Oslo?"
    answer = await asking(works)(script, asked, recipe="steps", mode="reject")
    assert answer.verdict == "refused"


LOCKS = {
    "Veldon Canal": "The Veldon Canal has 12 locks. It was opened in 1902.",
    "Harrow Canal": "The Harrow Canal has 19 locks. It was opened in 1848. It is 31 miles long.",
}


@pytest.fixture
async def canals(base: KnowledgeBase) -> KnowledgeBase:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in LOCKS.items()]))
    return base


@pytest.mark.parametrize("mode", ["open", "reject"])
async def test_a_sum_whose_parts_are_cited_is_supported(canals: KnowledgeBase, mode: Mode) -> None:
    asked = "How many locks do the Veldon Canal and the Harrow Canal have together?"
    parts = "The Veldon Canal has 12 locks.", "The Harrow Canal has 19 locks."
    script = says("31", *parts, "Together they have 31 locks.")
    answer = await asking(canals)(script, asked, mode=mode, confidence=0.5)
    assert (answer.candidate, answer.verdict, answer.computed) == ("31", "answered", True)
    assert len(answer.citations) == 2
    assert "Together they have 31 locks. [1][2]" in answer.answer
    wrong = says("33", *parts, "Together they have 33 locks.")
    other = await asking(canals)(wrong, asked, mode="reject", confidence=0.5)
    # What the model wrote is not given; without it, code adds up what is read.
    assert other.candidate == "31" and "33" not in other.answer


async def test_a_difference_of_years_whose_parts_are_cited_is_supported(
    canals: KnowledgeBase,
) -> None:
    asked = "How many years after the Harrow Canal was the Veldon Canal opened?"
    parts = "The Veldon Canal was opened in 1902.", "The Harrow Canal was opened in 1848."
    script = says("54 years", *parts, "It was opened 54 years later.")
    answer = await asking(canals)(script, asked, mode="reject", confidence=0.5)
    assert (answer.candidate, answer.computed) == ("54 years", True)


async def test_an_answer_in_prose_is_kept_with_the_passage_that_is_read(
    works: KnowledgeBase,
) -> None:
    def prose(_: Any) -> str:
        return "I think it is Ribe."

    answer = await asking(works)(prose, BORN, mode="reject")
    alone = await ask_without_model(works, BORN, mode="reject")
    assert (answer.candidate, answer.verdict) == ("Ribe", "answered")
    assert answer.citations == alone.citations
    assert answer.signals["agreed"] > 0.5


CITIES = {
    "Kelder": "Kelder is a town in the county of Norvane.",
    "Norvane": "Norvane is a county. Its seat is Tarrowby.",
    "Tarrowby": "Tarrowby has a playhouse. The river Lune flows through the town.",
}


async def test_an_answer_that_is_better_backed_wins_against_the_reader(
    base: KnowledgeBase,
) -> None:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in CITIES.items()]))
    asked = "Which river flows through the seat of the county where Kelder lies?"
    sentences = (
        "Kelder is a town in the county of Norvane.",
        "The seat of Norvane is Tarrowby.",
        "The river Lune flows through Tarrowby.",
    )
    right = await asking(base)(says("Lune", *sentences), asked, recipe="steps-unasked", k=8)
    assert right.candidate == "Lune"
    assert len(right.citations) == 3


async def test_a_disputed_answer_is_no_surer_than_the_other_leaves_it(
    works: KnowledgeBase,
) -> None:
    for choice in ("Odense", "Ribe", "none"):
        answer = await ask_model(works, "Odense", choice, question=BORN, recipe="steps")
        against = answer.signals.get("against", 0.0)
        assert choice == "Ribe" or answer.confidence <= max(against, 1 - against)
        if answer.candidate == "Ribe" and choice != "Ribe":
            assert answer.confidence <= answer.signals["alone"]


async def test_where_the_reader_finds_nothing_a_written_answer_is_trusted_less(
    works: KnowledgeBase,
) -> None:
    how = {"question": "Which village did Ole Falk leave?", "recipe": "steps"}
    answer = await ask_model(works, "Ribe", **how)
    assert answer.signals["unread"] == 1.0
    assert answer.candidate == "Ribe"
    once = await ask_model(works, "Ribe", **{**how, "recipe": "steps-once"})
    assert "unread" not in once.signals
    assert answer.confidence < once.confidence


BORN = "Where was Ada Brink born?"


async def ask_without_model(works: KnowledgeBase, question: str, **how: Any) -> Answer:
    return await works.ask(question, k=3, manner=AskOptions(confidence=0.2), **how)


def says(short: str, *sentences: str) -> AgentScript:
    """A model that writes this in its own format, and keeps it when it is asked to choose."""
    sentences = sentences or (f"The answer is {short}.",)
    shown = [{"text": text, "sources": [1]} for text in sentences]
    written = {"enough": True, "sentences": shown, "short": short, "missing": ""}
    return AgentScript({"answer": written, "answer_graph": written})


def mumbles(_: Any) -> str:
    return "Well, let me think about this. It is hard to say, but much speaks for it."


UNRELIABLE = {
    "a lie": says("Buenos Aires"),
    "a lie beside a true sentence": says("Buenos Aires", "Storm Works makes pumps."),
    "prose": mumbles,
    "nothing": lambda _: "",
    "no JSON": lambda _: '{"answer": "Buenos Aires"',
}


@pytest.mark.parametrize("mode", ["open", "reject"])
@pytest.mark.parametrize("recipe", ["clew", "steps-plan"])
@pytest.mark.parametrize("model", one_in_three(UNRELIABLE.values()), ids=UNRELIABLE)
async def test_an_unreliable_model_is_no_worse_than_none(
    works: KnowledgeBase, model: Any, recipe: str, mode: Mode
) -> None:
    alone = await ask_without_model(works, BORN, mode=mode, recipe=recipe)
    answer = await asking(works)(model, BORN, mode=mode, recipe=recipe)
    assert alone.candidate == answer.candidate == "Ribe"
    assert answer.confidence == alone.confidence
    assert [c.quote for c in answer.citations] == [c.quote for c in alone.citations]
    assert answer.note.startswith(("the model ", "no passage supports what the model wrote"))
    assert "no language model is configured" not in answer.note


async def test_a_sentence_that_has_what_is_read_is_an_answer(works: KnowledgeBase) -> None:
    def prose(_: Any) -> str:
        return "Let me see what they say. Ada Brink was born in Ribe. [1]"

    answer = await asking(works)(prose, BORN, mode="reject")
    assert (answer.candidate, answer.verdict) == ("Ribe", "answered")
    assert answer.citations and answer.signals["agreed"] > 0.5


async def test_what_no_passage_has_is_not_offered_again(works: KnowledgeBase) -> None:
    """Where the model finds too little it may know the answer itself; a read one is better."""
    unwritten = {"enough": False, "sentences": [], "short": "", "missing": "x"}
    known = {"answer": "It is Buenos Aires.", "short": "Buenos Aires"}
    script = AgentScript({"answer": unwritten, "answer_graph": unwritten, "know": known})
    answer = await asking(works)(script, BORN, mode="open")
    assert answer.candidate == "Ribe" and answer.citations
    assert "the model wrote “Buenos Aires”" in answer.note


async def test_what_is_asked_with_or_computed_need_not_stand_in_a_passage(
    works: KnowledgeBase,
) -> None:
    question = "Did Ada Brink marry?"
    answer = await asking(works)(says("no", "Ada Brink did not marry."), question, mode="open")
    assert answer.candidate == "no"
    unread = "How many letters has the birthplace of Ada Brink, Ribe?"
    four = await asking(works)(says("Ribe", "She was born in Ribe."), unread, mode="open")
    assert four.candidate == "Ribe"


async def test_what_a_sentence_says_in_full_stands_where_the_model_keeps_it(
    base: KnowledgeBase,
) -> None:
    said = "The daily allowance is 65 euros in Norway and 50 euros in Poland."
    await base.take(stream([document("travel", said, title="Travel policy")]))
    sentence = {"text": "The daily allowance is 50 euros in Poland.", "sources": [1]}
    written = {"enough": True, "sentences": [sentence], "short": "50 euros", "missing": ""}

    def choose(message: str) -> dict[str, Any]:
        found = re.search(r"^(\d+): 50 euros$", message.rsplit("Answers:", 1)[-1], re.MULTILINE)
        return {"reason": "so it is said", "choice": int(found[1]) if found else 0}

    script = AgentScript({"answer": written, "answer_graph": written, "choose_answer": choose})
    asked = "What is the daily allowance in Poland?"
    answer = await asking(base)(script, asked, mode="reject", confidence=0.5)
    assert (answer.candidate, answer.verdict) == ("50 euros", "answered")
    assert (answer.signals["kept"], answer.signals["stated"]) == (1.0, 1.0)
    # The same answer to what the sentence does not say in full is contradicted by the reader.
    vague = await asking(base)(script, "What is the weekly allowance in Poland?", mode="open")
    assert vague.confidence < answer.confidence
    assert not vague.signals.get("stated")


@pytest.mark.parametrize("mode", ["open", "reject"])
async def test_values_that_no_passage_has_are_not_compared(
    works: KnowledgeBase, mode: Mode
) -> None:
    invented = {"quote": "", "source": 0, "answer": "yes"}
    script = AgentScript({"read": invented, "read_graph": invented})
    asked = "Were Ada Brink and Storm Works founded in the same town?"
    answer, alone = await asking(works)(script, asked, mode=mode), await works.ask(asked, mode=mode)
    assert "no passage has every value" in answer.note
    assert (answer.candidate, answer.confidence) == (alone.candidate, alone.confidence)
    assert answer.citations == alone.citations


@pytest.mark.parametrize("mode", ["open", "reject"])
async def test_what_the_reader_reads_is_cited_where_the_model_cites_nothing(
    works: KnowledgeBase, mode: Mode
) -> None:
    script = says("Ribe", "Her cradle was far to the west, in Ribe of all places on earth.")
    answer = await asking(works)(script, BORN, mode=mode, manner=AskOptions(confidence=0.2))
    alone = await ask_without_model(works, BORN, mode=mode)
    assert answer.candidate == "Ribe"
    assert answer.citations == alone.citations != ()
    assert answer.confidence == alone.confidence


def test_a_sentence_that_has_another_value_states_nothing(answers: tuple[Answer, Answer]) -> None:
    written, read = answers
    assert answers_as_well(replace(written, signals={"judged": 0.4}), read)
    assert not answers_as_well(replace(written, signals={"judged": -0.4}), read)
    assert answers_as_well(written, read)


@pytest.fixture
def answers() -> tuple[Answer, Answer]:
    one = Answer("q", "", "", "answered", (), Evidence(), (), 0.0)
    return one, replace(one, signals={"judged": 0.1})


MAGAZINES = {
    "Ribe Herald": "The Ribe Herald was a woman's magazine founded in Jutland in 1923.",
    "Lund Post": "The Lund Post is a Swedish weekly magazine about boats and harbours.",
    "Malmo Courier": "The Malmo Courier was a Swedish monthly magazine about gardens.",
}


@pytest.mark.parametrize(
    ("other", "written", "told"), [("Ribe Herald", "Yes", "no"), ("Malmo Courier", "Yes", "Yes")]
)
async def test_a_yes_about_two_things_is_compared_with_what_is_read_of_each(
    open_filled: OpenFilled, other: str, written: str, told: str
) -> None:
    async def fill(base: KnowledgeBase) -> None:
        pages = MAGAZINES.items()
        await base.take(stream([document(n.lower(), text, title=n) for n, text in pages]))

    sentence = {"text": "The Lund Post is a Swedish weekly magazine.", "sources": [1, 2, 3]}
    reply = {"enough": True, "sentences": [sentence], "short": written, "missing": ""}
    script = AgentScript({"answer": reply, "answer_graph": reply})
    question = f"Are the Lund Post and the {other} both Swedish magazines?"
    answer = await asking(await open_filled(fill))(script, question, recipe="steps")
    assert answer.candidate == told
    assert (answer.confidence < 0.5) == (told != written)
