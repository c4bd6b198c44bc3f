"""Answers by a model: cited, checked, refused; whatever the model says."""

import json
from typing import Any

import pytest
from agent_asking import asking

from clew.agents.answering.read import (
    ReadAnswer,
    add_town,
    check_reading,
    choose_parent,
    select_passages_about,
)
from clew.agents.answering.write import NO_REPLY
from clew.agents.citing.support import find_best_span, find_citations, has_invented_name
from clew.agents.core.evidence_page import EvidencePage, build_page
from clew.agents.core.messages import UNSUPPORTED_MARK
from clew.engine import KnowledgeBase
from clew.layout import PASSAGES
from clew.types import Evidence, Passage

ASKED = "Where was the designer of Marrow Bridge born?"


def passage(text: str, title: str = "", start: int = 0) -> Passage:
    return Passage("c", "doc", title, 1.0, text, start, start + len(text))


def page_of(passages: list[Passage]) -> EvidencePage:
    return build_page(Evidence(tuple(passages)), PASSAGES)


def test_the_sentence_that_says_it_is_quoted() -> None:
    text = "It rained. She was born in Hallowmere and studied law. Later she left."
    place = find_best_span("Ilse Brandvik was born in Hallowmere.", passage(text, "Ilse Brandvik"))
    assert text[place.start : place.end] == "She was born in Hallowmere and studied law."


def test_a_citation_that_says_something_else_is_no_citation() -> None:
    passages = [passage("Pellworth is a market town.", start=40)]
    assert find_citations("Ilse was born in Hallowmere.", [1], passages) == []
    assert find_citations("Pellworth is a market town.", [0, 2, -1], passages) == []
    [found] = find_citations("Pellworth is a town with a market.", [1, 1], passages)
    assert (found.start, found.end, found.quote) == (40, 67, "Pellworth is a market town.")


def test_a_name_or_year_that_nobody_said_is_invented() -> None:
    texts = ["Where was Ilse Brandvik born?", "Hallowmere lies in Norway. It was founded in 1831."]
    assert has_invented_name("Ilse Brandvik is the child of Orla Quist.", texts)
    assert has_invented_name("It was founded in 1832.", texts)
    assert not has_invented_name("Ilse Brandvik was born in Hallowmere, a Norwegian town.", texts)
    assert not has_invented_name("It was founded in 1831 with 40 houses.", texts)


def test_the_page_about_a_name_stands_apart() -> None:
    pages = [
        passage("Otto ruled Marn.", "Otto (king)"),
        passage("Otto's son was Karl.", "Karl"),
        passage("Otto fell.", ""),
    ]
    near = select_passages_about(page_of(pages), ["Otto"])
    assert [p.text for p in near.passages] == ["Otto ruled Marn.", "Otto fell."]
    assert select_passages_about(page_of(pages), []).lines == ()


def test_what_was_asked_about_is_no_answer() -> None:
    asked = "Who is the mother of Medra?"
    page = page_of([passage("Medra was a daughter of Otto and Ida.", "Medra")])
    assert not check_reading(
        asked, ReadAnswer(source=1, answer="Medra"), page, ["Medra"]
    ).has_answer
    assert check_reading(asked, ReadAnswer(source=1, answer="Ida"), page, ["Medra"]).answer == "Ida"
    pages = page_of([passage("Otto Karl Vance was the father of Otto Vance Jr.", "Otto Vance")])
    asked, names = "Who is the child of Otto Vance?", ["Otto Vance"]
    assert not check_reading(
        asked, ReadAnswer(source=1, answer="Otto Karl Vance"), pages, names
    ).has_answer
    assert check_reading(
        asked, ReadAnswer(source=1, answer="Otto Vance Jr."), pages, names
    ).has_answer


def test_a_place_has_its_town() -> None:
    text = "Ada Brink, of Oslo, Norway, was born in Pell, Upper Marn, Norway."
    where = "Where was Ada Brink born?"
    assert add_town(where, "Norway", text) == "Pell, Upper Marn, Norway"
    assert add_town(where, "Pell", text) == "Pell"
    assert add_town("Which country is Ada Brink from?", "Norway", text) == "Norway"


@pytest.mark.parametrize(
    ("asked", "said", "meant"),
    [
        ("father", "Otto and Ida", "Otto"),
        ("mother", "Otto and Ida", "Ida"),
        ("mother", "King Otto and his wife Ida of Marn", "Ida of Marn"),
        ("father", "Ida and her husband, Otto", "Otto"),
        ("child", "Otto and Ida", "Otto and Ida"),
        ("father", "Otto", "Otto"),
    ],
)
def test_of_both_parents_the_one_asked_for(asked: str, said: str, meant: str) -> None:
    assert choose_parent(f"Who is the {asked} of Medra?", said) == meant


async def answered(valley: KnowledgeBase, said: Any, mode: Any = "open") -> Any:
    """Ask with a model that says `said`."""
    text = said if isinstance(said, str) else json.dumps(said)
    return await asking(valley)(lambda _: text, ASKED, recipe="reader+clew", mode=mode)


def written(valley_docs: list[str], *sentences: tuple[str, list[int]], **more: Any) -> Any:
    return {
        "enough": True,
        "sentences": [{"text": text, "sources": sources} for text, sources in sentences],
        "short": "Hallowmere",
        "missing": "",
        **more,
    }


async def _order(valley: KnowledgeBase) -> list[str]:
    return [p.doc for p in (await valley.search(ASKED, k=3)).evidence.chunks]


async def test_an_answer_is_cited_to_spans_that_exist(valley: KnowledgeBase) -> None:
    docs = await _order(valley)
    one, two = docs.index("bridge") + 1, docs.index("ilse") + 1
    answer = await answered(
        valley,
        written(
            docs,
            ("Marrow Bridge was designed by Ilse Brandvik.", [one]),
            ("Ilse Brandvik was born in Hallowmere.", [two]),
        ),
    )
    assert answer.verdict == "answered"
    assert answer.candidate == "Hallowmere"
    assert [c.doc for c in answer.citations] == ["bridge", "ilse"]
    assert answer.answer.endswith("Ilse Brandvik was born in Hallowmere. [2]")
    for citation in answer.citations:
        chunk = next(p for p in answer.evidence.chunks if p.id == citation.chunk)
        assert chunk.text[citation.start : citation.end] == citation.quote
    assert answer.usage.calls >= 1
    assert answer.note == ""


async def test_invented_sentences_are_marked_or_dropped(valley: KnowledgeBase) -> None:
    said = written([], ("Elephants invented the printing press.", [1, 99]))
    opened = await answered(valley, said)
    assert opened.answer == f"Elephants invented the printing press. {UNSUPPORTED_MARK}"
    assert opened.citations == ()
    assert (await answered(valley, said, "reject")).verdict == "refused"


async def test_reject_mode_refuses_and_says_what_is_missing(valley: KnowledgeBase) -> None:
    said = written([], enough=False, missing="the birthplace")
    answer = await answered(valley, said, "reject")
    assert (answer.verdict, answer.answer) == ("refused", "Refused: the birthplace.")
    said = written([], enough=False, missing="no passage answers: When was Ilse born?")
    answer = await answered(valley, said, "reject")
    assert answer.answer == "Refused: no passage answers: When was Ilse born?"


@pytest.mark.parametrize("said", ["", "I will not.", "{", '{"enough": "maybe"}', "[]", "x" * 5000])
async def test_nonsense_leaves_the_quotes_or_a_refusal(valley: KnowledgeBase, said: str) -> None:
    refused = await answered(valley, said, "reject")
    assert refused.verdict == "refused"
    answer = await answered(valley, said)
    assert answer.verdict == "answered" and answer.note.startswith(NO_REPLY)
    assert answer.citations and all(one.quote in answer.answer for one in answer.citations)
    assert len(answer.evidence.chunks) == len(refused.evidence.chunks) == 3


@pytest.mark.parametrize("said", ["Hallowmere", "Hallowmere.", "`Hallowmere` [2]"])
async def test_a_bare_name_is_an_answer_if_a_passage_has_it(
    valley: KnowledgeBase, said: str
) -> None:
    answer = await answered(valley, said, "reject")
    assert (answer.verdict, answer.candidate) == ("answered", "Hallowmere")
    assert "Hallowmere" in answer.citations[0].quote


@pytest.mark.parametrize("said", ["Rembrandt.", "No.", "unknown"])
async def test_a_bare_word_that_no_passage_has_is_no_answer(
    valley: KnowledgeBase, said: str
) -> None:
    assert (await answered(valley, said, "reject")).verdict == "refused"


async def test_two_passages_bear_what_the_model_laid_to_one(valley: KnowledgeBase) -> None:
    order = await _order(valley)
    sentence = "The designer of the Marrow Bridge, Ilse Brandvik, was born in Hallowmere."
    answer = await answered(valley, written([], (sentence, [order.index("bridge") + 1])), "reject")
    assert answer.verdict == "answered"
    assert {cited.doc for cited in answer.citations} == {"bridge", "ilse"}


async def test_a_model_that_says_nothing_leaves_the_quotes(valley: KnowledgeBase) -> None:
    ask = asking(valley)
    answer = await ask(lambda _: "", "Who designed the Marrow Bridge?", recipe="clew", mode="open")
    assert answer.verdict == "answered" and answer.note.startswith("the model gave no usable")
    assert any("Ilse Brandvik" in cited.quote for cited in answer.citations)
    read = await ask(lambda _: "", "Who designed the Marrow Bridge?", recipe="clew", mode="reject")
    assert read.citations and read.note.startswith("the model gave no usable")
    # A recipe without a reader has nothing to fall back on.
    how = {"recipe": "naive", "mode": "reject"}
    assert (await ask(lambda _: "", "Who designed the Marrow Bridge?", **how)).verdict == "refused"
