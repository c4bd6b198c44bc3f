"""Answers without a model over files that tell of several things, in English and in Chinese."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.ask import AskOptions
from clew.agents.conversation import ConversationTurn, needs_history
from clew.agents.core.types import Answer
from clew.agents.rules.english_answers import find_answer
from clew.agents.rules.english_questions import plan_by_rules
from clew.agents.rules.sections_about import find_sections
from clew.engine import KnowledgeBase
from clew.types import Passage
from conftest import document, stream

HEADED = """# Notes

## Tern Tower

Tern Tower is a lighthouse in Orm, Norway. It was designed by Liv Strand and completed in 1904. \
It is 38 metres tall.

## Liv Strand

Liv Strand (2 April 1861 – 9 May 1933) was a Norwegian architect. She was born in Bergen. \
Strand married the painter Aksel Moe in 1888. Her mother was Tora Strand.

## Aksel Moe

Aksel Moe (born 11 July 1855) was a Danish painter. He died in Aarhus in 1940.

## Gull Tower

Gull Tower was built in 1921. It was designed by Per Holt. It is 0.052 km tall.

## Per Holt

Per Holt was a Swedish engineer, born in Lund on 3 March 1880. He was the son of Knut Holt.
"""
PLAIN = """The Copper Song is a 1971 opera composed by Elena Marsh. It opened in Prague.
Elena Marsh was an English composer. She was born in Leeds on 5 June 1920 and died in York in 1999.
The Iron Song is a 1965 opera composed by Hugo Stern. Hugo Stern was born in Vienna in 1930.
Corvin Press was founded in 1890. Delta Press was founded in 1911 by Mara Quill.
"""
CHINESE = """《铜之歌》是1971年上映的电影，由陈雨执导。《铁之歌》是一部1965年的电影，导演为周海。
陈雨，1920年6月5日生于上海，1999年逝世于北京，中国导演。她的丈夫是作曲家赵峰。
赵峰是中国作曲家，1915年出生于天津，2003年去世。
周海（1930年3月2日—1988年），日本导演，生于大阪。周海的父亲是周大山，母亲是林芳。
"""


@pytest.fixture
async def shelf(base: KnowledgeBase) -> KnowledgeBase:
    """Three files of several subjects each; their names say nothing."""
    files = (("notes.md", HEADED), ("works.txt", PLAIN), ("zh.txt", CHINESE))
    await base.take(stream(document(name, text) for name, text in files))
    return base


async def asked(base: KnowledgeBase, question: str, mode: Any = "reject") -> Answer:
    answer = await base.ask(question, recipe="clew", mode=mode)
    for cited in answer.citations:
        assert cited.quote in HEADED + PLAIN + CHINESE
    return answer


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Which tower is taller, Tern Tower or Gull Tower?", "Gull Tower"),
        ("Which was completed first, Tern Tower or Gull Tower?", "Tern Tower"),
        ("Where was the designer of Tern Tower born?", "Bergen"),
        ("Who is the husband of the designer of Tern Tower?", "Aksel Moe"),
        ("When was the husband of the designer of Tern Tower born?", "11 July 1855"),
        ("Who is the father of the designer of Gull Tower?", "Knut Holt"),
        ("Who was born first, Liv Strand or Aksel Moe?", "Aksel Moe"),
        ("In which country is Tern Tower?", "Norway"),
        ("Who designed Gull Tower?", "Per Holt"),
        ("Where was the composer of The Iron Song born?", "Vienna"),
        ("Which opera has the composer who was born first, The Copper Song or The Iron Song?",)
        + ("The Copper Song",),
        ("Which was founded first, Corvin Press or Delta Press?", "Corvin Press"),
        ("When did Elena Marsh die?", "1999"),
        ("《铜之歌》的导演是谁？", "陈雨"),
        ("谁执导了《铁之歌》？", "周海"),
        ("《铁之歌》的导演的父亲是谁？", "周大山"),
        ("《铜之歌》的导演出生在哪里？", "上海"),
        ("陈雨的丈夫何时去世？", "2003年"),
        ("周海是什么时候去世的？", "1988年"),
        ("陈雨和周海谁更早出生？", "陈雨"),
        ("陈雨和周海谁活得更久？", "陈雨"),
        ("陈雨和周海是否来自同一国家？", "否"),
        ("《铜之歌》和《铁之歌》哪部电影更早上映？", "《铁之歌》"),
        ("《铜之歌》和《铁之歌》哪部电影的导演更晚出生？", "《铁之歌》"),
    ],
)
async def test_what_one_file_says_of_many(shelf: KnowledgeBase, question: str, said: str) -> None:
    assert (await asked(shelf, question)).candidate == said


@pytest.mark.parametrize(
    "question",
    [
        "Who is the mother of the designer of Gull Tower?",
        "Who is the father of the designer of Tern Tower?",
        "Who lived longer, Elena Marsh or Hugo Stern?",
        "Who is the founder of Corvin Press?",
        "Which is older, Tern Tower or Hugo Stern?",
        "火星总统是谁？",
        "王小波的出生地是哪里？",
        "陈雨的父亲是谁？",
        "陈雨和周海谁更高？",
    ],
)
async def test_what_no_file_says_is_refused_and_never_guessed(
    shelf: KnowledgeBase, question: str
) -> None:
    refused = await asked(shelf, question)
    assert refused.verdict == "refused"
    assert refused.missing
    assert not (await asked(shelf, question, "open")).candidate


async def test_a_chinese_question_that_names_its_subject_stands_alone(
    shelf: KnowledgeBase,
) -> None:
    history = (ConversationTurn("《铜之歌》的导演是谁？", "陈雨"),)
    answer = await shelf.ask("周海的母亲是谁？", recipe="clew", manner=AskOptions(history=history))
    assert answer.candidate == "林芳"


@pytest.mark.parametrize(
    ("question", "does"),
    [
        ("她出生在哪里？", True),
        ("那他的父亲呢？", True),
        ("为什么？", True),
        ("李明华出生在哪里？", False),
        ("那不勒斯在哪个国家？", False),
        ("马耳他的首都是哪里？", False),
        ("吉他是谁发明的？", False),
    ],
)
def test_what_leans_without_spaces(question: str, does: bool) -> None:
    assert needs_history(question) is does


def page(text: str, title: str = "") -> Passage:
    return Passage("c", "doc", title, 1.0, text, 0, len(text))


def parts(name: str, text: str, title: str = "") -> list[str]:
    return [text[start:end].strip() for start, end in find_sections(name, page(text, title))]


def test_a_run_of_sentences_ends_at_the_next_name() -> None:
    text = "Ana Roth was a poet. She wrote Ash. Roth lived alone. Otto Vance was a clerk. He died."
    assert parts("Ana Roth", text) == ["Ana Roth was a poet. She wrote Ash. Roth lived alone."]
    assert parts("Otto Vance", text) == ["Otto Vance was a clerk. He died."]
    assert parts("Ash", text) == []


def test_a_longer_name_and_what_is_its_own_begin_nothing() -> None:
    assert parts("Ana Roth", "Ana Roth Prize was founded in 1950. It is given yearly.") == []
    assert parts("Ana Roth", "Ana Roth's sister was born in 1950. She paints.") == []


def test_a_section_goes_on_to_the_next_of_its_rank() -> None:
    text = "# Ana Roth\n\nA poet.\n\n## Early life\n\nBorn in Marn.\n\n# Otto Vance\n\nA clerk."
    assert parts("Ana Roth", text) == ["A poet.\n\n## Early life\n\nBorn in Marn."]
    assert parts("Otto Vance", text) == ["A clerk."]
    # The file's title is its first heading: what follows under another is not about it.
    assert parts("Ana Roth", text, "Ana Roth") == parts("Ana Roth", text)


def test_a_line_of_its_own_is_a_heading() -> None:
    text = "Ana Roth\nA poet. She was born in Marn.\n\nOtto Vance\nA clerk. He was born in Orm."
    assert parts("Ana Roth", text) == ["A poet. She was born in Marn."]


def test_a_surname_means_the_one_who_bears_it() -> None:
    one = page("Ana Roth was born in Marn in 1888. She painted.")
    found = find_answer("When was Roth born?", "Roth", [one])
    assert found is not None
    assert found.text == "1888"
    two = page("Karl Roth was born in Orm in 1860. He sang.")
    assert find_answer("When was Roth born?", "Roth", [one, two]) is None


@given(
    st.text(alphabet="陈雨和与的导演父亲出生于在哪里谁是何时更早12年（－）《》#，？", max_size=60)
)
def test_any_chinese_text_gives_a_plan_and_a_reading_or_none(text: str) -> None:
    plan = plan_by_rules(text, [])
    assert plan.questions
    found = find_answer(f"{text[:9]}何时出生？", "", [page(text)])
    assert found is None or text[found.start : found.end] == found.text


def test_a_relative_of_the_subject_is_another() -> None:
    text = "陈雨是导演。他的父亲陈山1890年出生于济南。"
    assert find_answer("陈雨出生在哪里？", "", [page(text)]) is None
    place = find_answer("陈雨出生在哪里？", "", [page("陈雨是导演。他1920年出生于上海。")])
    assert place is not None
    assert place.text == "上海"


@pytest.mark.parametrize("order", ["Tell me about {}", "Who is {}?", "Please explain {}."])
async def test_of_one_thing_its_own_sentences_are_told(shelf: KnowledgeBase, order: str) -> None:
    answer = await asked(shelf, order.format("Per Holt"))
    assert answer.verdict == "answered"
    assert [cited.quote for cited in answer.citations] == [
        "Per Holt was a Swedish engineer, born in Lund on 3 March 1880.",
        "He was the son of Knut Holt.",
    ]
    assert answer.candidate == ""
    refused = await asked(shelf, order.format("Nils Vang"))
    assert refused.verdict == "refused"


async def test_quotes_about_something_else_are_called_the_nearest(shelf: KnowledgeBase) -> None:
    answer = await asked(shelf, "Who designed the Vang Tower?", "open")
    assert answer.answer.startswith("The documents do not mention")
    assert answer.candidate == ""
    known = await asked(shelf, "Who designed Tern Tower?", "open")
    assert known.candidate == "Liv Strand"
