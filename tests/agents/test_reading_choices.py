"""What a question asks for, and whether a page says that an answer is it."""

from dataclasses import replace

import pytest

from clew.agents.answering.parts import split_questions
from clew.agents.reading.answer import split_statements
from clew.agents.reading.choose import find_asked_stem, match_page
from clew.agents.reading.spans import end_before_predicate, keep_in_line, move_to_counted
from clew.engine import KnowledgeBase
from clew.reader.span_reader import READER_FILE, find_reader
from clew.types import Passage
from conftest import document, stream

COUNTY = "Marl County is a county in the north. It has 30,000 inhabitants."
PERSON = "Ana Roth (born 1931) is a composer. Her songs are sung in Orm."
FILM = "Ash is a 1961 film. It was shot near Orm."


def page(text: str) -> Passage:
    return Passage("c", "doc", "", 1.0, text, 0, len(text))


@pytest.mark.parametrize(
    ("question", "stem"),
    [
        ("In which county does Orm lie?", "count"),
        ("What is the name of the airport in Orm?", "airpo"),
        ("What kind of bridge crosses the Tarn?", "bridg"),
        ("Orm lies in what Norwegian county?", "count"),
        ("Where does Orm lie?", ""),
    ],
)
def test_the_noun_that_is_asked_for(question: str, stem: str) -> None:
    assert find_asked_stem(question) == stem


@pytest.mark.parametrize(
    ("question", "text", "said"),
    [
        ("Who directed the film that was shot near Orm?", FILM, -1),
        ("By whom was it directed?", PERSON, 1),
        ("Where was the composer born?", PERSON, -1),
        ("When was it shot?", FILM, -1),
        ("In what county does Orm lie?", COUNTY, 1),
        ("In what county does Orm lie?", FILM, -1),
        ("How is Orm called?", FILM, 0),
    ],
)
def test_a_page_says_whether_its_subject_is_what_is_asked_for(
    question: str, text: str, said: float
) -> None:
    assert match_page(question, page(text)) == said
    assert match_page(question, None) == 0


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Who built Ash Hall and when was Ana Roth born?", 2),
        ("Who built Ash Hall? When was Ana Roth born?", 2),
        ("Who is the mother of Ana Roth and when did she die?", 2),
        ("Who built Ash Hall and who leads the Orm office?", 2),
        ("Who built Ash Hall and how many rooms has it?", 2),
        ("When is the summer fair and who is the treasurer?", 2),
        ("Who built Ash Hall? Why?", 1),
        ("Who is the man who built Ash Hall and who leads the Orm office?", 1),
        ("Where do the Tarn and the Orm meet?", 1),
        ("Which town was Ana Roth born in? A) Orm B) Ash Hall", 1),
    ],
)
def test_halves_that_ask_for_themselves_are_questions(text: str, parts: int) -> None:
    assert len(split_questions(text)) == parts


@pytest.mark.parametrize("options", ["\nA) Vessen\nB) Hallowmere", " A) Vessen B) Hallowmere"])
async def test_options_are_no_part_of_what_is_read_for(valley: KnowledgeBase, options: str) -> None:
    asked = "Which town was Ilse Brandvik born in?"
    plain = await valley.ask(asked)
    chosen = await valley.ask(asked + options)
    assert chosen.candidate == plain.candidate == "Hallowmere"
    assert not chosen.parts


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("Where does the road from Elm lead?", ["Elm road to Fir"]),
        ("What leads to Elm?", ["Oak road to Elm"]),
        ("Who built Elm?", ["Elm road to Fir"]),
        ("Where is it?", None),
    ],
)
def test_of_rows_of_a_graph_those_with_the_name_are_read(
    question: str, left: list[str] | None
) -> None:
    text = "Ash road to Oak\nOak road to Elm\nElm road to Fir"
    rows = Passage("p", "d", "", 1.0, text, 100, 100 + len(text))
    found = split_statements(question, ["Elm"] if left else [], [rows])
    assert [one.text for one in found] == (left or [text])
    assert all(text[one.start - 100 : one.end - 100] == one.text for one in found)
    titled = replace(rows, title="Roads")
    assert split_statements(question, ["Elm"], [titled]) == [titled]


@pytest.mark.parametrize(
    ("question", "counted"),
    [
        ("How many cars are carried by the ferry?", "38"),
        ("How many passengers does it carry?", "220"),
        ("How many dogs does it carry?", "220"),
    ],
)
def test_a_number_is_that_of_what_is_counted(question: str, counted: str) -> None:
    text = "The ferry carries 220 passengers and 38 cars."
    at = text.index("220")
    start, end = move_to_counted(question, text, at, at + 3)
    assert text[start:end] == counted


def test_a_short_answer_in_code_is_one_line() -> None:
    text = "```\nraise MyError(1)\n\ntry:\n    run()\n```\n\nIt ends with\nthe last one."
    at = text.index("MyError")
    start, end = keep_in_line(text, at, text.index("run"))
    assert text[start:end] == "MyError(1)"
    assert keep_in_line(text, text.index("ends"), len(text)) == (text.index("ends"), len(text) - 1)


async def test_a_heading_is_an_answer_only_over_what_is_said_of_it(base: KnowledgeBase) -> None:
    mill = (
        "# Mill\n\n## 2 Sluice gates\n\n### Splitting the flow\n\nThe board W divides the stream."
    )
    people = "# Keepers\n\n## Ida Lorne\n\nBorn in Orm in 1903, and a miller from 1930 on."
    await base.take(stream([document("m.md", mill), document("k.md", people)]))
    gates = await base.ask("Which sluice gates are there?")
    assert all(one.quote.count("\n") or one.quote[0] != "#" for one in gates.citations)
    assert "Sluice" not in gates.candidate
    miller = await base.ask("Who was a miller from 1930 on?")
    assert any("Born in Orm" in one.quote for one in miller.citations)


@pytest.mark.parametrize(
    ("span", "kept"),
    [
        ("Vera Tasch and opened in 1932", "Vera Tasch"),
        ("Ana de la Roth, and later became its warden", "Ana de la Roth"),
        ("Orm but was moved in 1901", "Orm"),
        ("Crime and Punishment in one volume", ""),
        ("Ana Roth and colleagues in Orm", ""),
        ("Ana Roth and her wounded brother", ""),
        ("Marks and Spencer", ""),
        ("designed the mill and opened it in 1932", ""),
        ("Ana Roth and three others", ""),
    ],
)
def test_a_name_ends_before_what_the_sentence_goes_on_to_say(span: str, kept: str) -> None:
    text = f"It was built by the engineer {span}."
    start = text.index(span)
    assert text[start : end_before_predicate(text, start, len(text) - 1)] == (kept or span)


@pytest.mark.skipif(not READER_FILE.is_file(), reason="the reader's weights are not installed")
@pytest.mark.parametrize(
    ("question", "named"),
    [("Who designed Grell Bridge?", "Vera Tasch"), ("Where was Vera Tasch born?", "Hask")],
)
async def test_who_did_it_is_told_without_what_else_was_done(
    base: KnowledgeBase, question: str, named: str
) -> None:
    bridge = (
        "# Grell Bridge\n\nGrell Bridge is a bridge in Tolm. It was designed by the engineer "
        "Vera Tasch and opened in 1932. It is 210 metres long."
    )
    person = "# Vera Tasch\n\nVera Tasch was an engineer. She was born in Hask and died in 1960."
    await base.take(stream([document("a.md", bridge), document("b.md", person)]))
    base.reader = find_reader(None)
    assert (await base.ask(question)).candidate == named
