"""Follow-up questions: what the model condenses, and what rules make of them without it."""

import pytest
from agent_asking import ASKED, CONCLUDED, Ask, asking

from clew.agents.ask import AskOptions
from clew.agents.conversation import ConversationTurn, extract_answer_name, resolve_pronouns
from clew.engine import KnowledgeBase
from clew.index.view import View
from clew.testing.fakes import AgentScript
from conftest import one_in_three

WHO = "Who designed Marrow Bridge?"
BY_CODE = "Best-supported candidate: Ilse Brandvik [1]\n“It was designed by Ilse Brandvik.” [1] (…)"


@pytest.fixture
def ask(valley: KnowledgeBase) -> Ask:
    """Ask the valley with a scripted model."""
    return asking(valley)


@pytest.fixture
async def view(valley: KnowledgeBase) -> View:
    """What the valley knows."""
    async with valley.store.snapshot() as snapshot:
        return (await valley.context(snapshot, "x")).view


@pytest.mark.parametrize(
    ("asked", "answer", "follow_up", "alone"),
    [
        (WHO, BY_CODE, "Where was she born?", "Where was Ilse Brandvik born?"),
        (WHO, BY_CODE, "Where was her father born?", "Where was Ilse Brandvik's father born?"),
        (WHO, BY_CODE, "Who married her?", "Who married Ilse Brandvik?"),
        (WHO, BY_CODE, "Who worked with her in Vessen", "Who worked with her in Vessen"),
        (WHO, BY_CODE, "Where does it stand?", "Where does Marrow Bridge stand?"),
        (WHO, "It was designed by Ilse Brandvik. [1]", "When did she die?", None),
        ("Who was Ilse Brandvik?", "An engineer.", "When did she die?", None),
        ("When did Ilse Brandvik die?", "1921 [1]", "And where was she born?", None),
        ("Where did Ilse Brandvik die?", "Vessen [1]", "How is its air?", "How is Vessen's air?"),
        (WHO, BY_CODE, "Did she build it?", "Did Ilse Brandvik build Marrow Bridge?"),
        (WHO, "Refused: no passage says it.", "Where was she born?", None),
        (WHO, "", "Where was she born?", None),
        ("Was Ilse Brandvik a poet?", "no [1]", "What was she?", "What was Ilse Brandvik?"),
        ("谁设计了玛罗桥？", "伊尔莎 [1]", "她出生在哪里？", "伊尔莎出生在哪里？"),
    ],
)
def test_a_pronoun_gives_way_to_what_it_means(
    view: View, asked: str, answer: str, follow_up: str, alone: str | None
) -> None:
    if alone is None:
        alone = follow_up.replace("she", "Ilse Brandvik")
        if answer.startswith("Refused") or not answer:  # a bridge is no she
            alone = follow_up
    assert resolve_pronouns(view, follow_up, [ConversationTurn(asked, answer)]) == alone


def test_a_conversation_goes_on(view: View) -> None:
    turns = [ConversationTurn(WHO, BY_CODE)]
    turns.append(ConversationTurn("Where was she born?", "Hallowmere [1]"))
    assert resolve_pronouns(view, "When did she die?", turns) == "When did Ilse Brandvik die?"
    assert resolve_pronouns(view, "Where is it?", turns) == "Where is Hallowmere?"
    turns.append(
        ConversationTurn("Where is it?", "“Hallowmere is a fishing town on the Grey Coast.” [1]")
    )
    asked = resolve_pronouns(view, "Who was her father?", turns)
    assert asked == "Who was Ilse Brandvik's father?"


def test_names_of_answers(view: View) -> None:
    assert extract_answer_name(view, WHO, BY_CODE) == "Ilse Brandvik"
    assert extract_answer_name(view, WHO, "Ilse  Brandvik [1][2] .") == "Ilse Brandvik"
    told = "Ilse Brandvik [1]. She was born in Hallowmere, near Vessen [2]."
    assert extract_answer_name(view, WHO, told) == "Ilse Brandvik"
    assert extract_answer_name(view, WHO, "3 May 1888 [1]") == ""
    assert extract_answer_name(view, WHO, "Anton Reeve and Ilse Brandvik made it together.") == ""


async def test_without_a_model_the_last_answer_stands_for_the_pronoun(
    valley: KnowledgeBase,
) -> None:
    first = await valley.ask(WHO)
    history = (ConversationTurn(WHO, first.answer),)
    answer = await valley.ask("Where was she born?", manner=AskOptions(history=history))
    assert first.candidate == "Ilse Brandvik"
    assert answer.trace[0].output == "Where was Ilse Brandvik born?"


@pytest.mark.parametrize(
    ("asked", "answer", "follow_up", "alone"),
    one_in_three(
        [
            (ASKED, "Hallowmere [1]", "And who lives there?", "Who lives in Hallowmere?"),
            (ASKED, "Hallowmere [1]", "And where was Clara Lindqvist born?", None),
            (ASKED, "Hallowmere [1]", "So who was Anton Reeve, then?", None),
            (ASKED, "", "Is there a school in Vessen?", "Is there a school in Vessen?"),
            (
                "Where was Ilse Brandvik born?",
                "",
                "What about Anton Reeve?",
                "Where was Anton Reeve born?",
            ),
            (
                "Where was Ilse Brandvik born?",
                "",
                "And Anton Reeve?",
                "Where was Anton Reeve born?",
            ),
            (WHO, "", "And why?", "Why (Marrow Bridge)?"),
            (
                "How many bridges by Ilse Brandvik are there?",
                "",
                "What about the ones by Anton Reeve?",
                "How many bridges by Anton Reeve are there?",
            ),
            (
                "How many stone bridges by Ilse Brandvik are there?",
                "",
                "And the iron ones by Anton Reeve?",
                "How many iron bridges by Anton Reeve are there?",
            ),
            ("How do I read a log?", "", "And on errors?", "On errors (How do I read a log)?"),
            (
                "In which town was the engineer of Marrow Bridge born?",
                "Hallowmere",
                "Where did she study?",
                "Where did the engineer of Marrow Bridge study?",
            ),
        ]
    ),
)
async def test_without_a_model_the_earlier_question_is_not_asked_again(
    valley: KnowledgeBase, asked: str, answer: str, follow_up: str, alone: str | None
) -> None:
    history = (ConversationTurn(asked, answer),)
    found = await valley.ask(follow_up, manner=AskOptions(history=history))
    first, _, rest = follow_up.partition(" ")
    expected = alone or rest[:1].upper() + rest[1:]
    assert found.trace[0].output == expected, first


@pytest.mark.parametrize("said", ["lorem ipsum", {"question": ""}, {"question": "Zzz qqq?"}])
async def test_garbage_is_condensed_by_rules_and_said(ask: Ask, said: object) -> None:
    told = AgentScript({"condense": said, "answer": CONCLUDED})  # type: ignore[dict-item]
    manner = AskOptions(history=(ConversationTurn(WHO, BY_CODE),))
    answer = await ask(told, "Where was she born?", recipe="reader+clew", manner=manner)
    step = answer.trace[0]
    assert step.step == "condense"
    assert step.output.startswith("Where was Ilse Brandvik born? (")
    assert "not usable" in step.output
    assert answer.question == "Where was she born?"
    assert [look.input for look in answer.trace if look.step == "retrieve"] == [
        "Where was Ilse Brandvik born?"
    ]


async def test_what_the_model_condenses_is_taken(ask: Ask) -> None:
    told = AgentScript({"condense": {"question": ASKED}, "answer": CONCLUDED})
    manner = AskOptions(history=(ConversationTurn(WHO, BY_CODE),))
    answer = await ask(told, "Where was she born?", recipe="reader+clew", manner=manner)
    assert answer.trace[0].output == ASKED


@pytest.mark.parametrize(
    ("asked", "said", "kept"),
    [
        ("Where was Clara Lindqvist born?", "Where was Anton Reeve born?", False),
        ("Where was Clara Lindqvist born?", "Where was Clara Lindqvist, the poet, born?", True),
        ("Where did she die?", "Where was Ilse Brandvik born?", False),
        ("When did she die?", "When did Ilse Brandvik, its designer, die?", True),
        ("How long is the bridge?", "How long is Marrow Bridge?", True),
        ("Where was the designer born?", "Where was Ilse Brandvik born?", True),
        ("她出生在哪里？", "伊尔莎出生在哪里？", True),
        ("她出生在哪里？", "谁设计了玛罗桥？", False),
    ],
)
async def test_a_condensed_question_still_asks_what_was_asked(
    ask: Ask, asked: str, said: str, kept: bool
) -> None:
    told = AgentScript({"condense": {"question": said}, "answer": CONCLUDED})
    history = (
        ConversationTurn(WHO, BY_CODE),
        ConversationTurn("Who was Anton Reeve?", "Anton Reeve was a poet. [1]"),
    )
    answer = await ask(told, asked, recipe="reader+clew", manner=AskOptions(history=history))
    assert (answer.trace[0].output == said) == kept
