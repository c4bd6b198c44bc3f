"""A yes or no is cited to passages about each thing that is asked about, or not at all."""

import pytest
from agent_asking import asking

from clew.engine import KnowledgeBase
from clew.testing.fakes import AgentScript
from conftest import document, stream

PAGES = {
    "Odd Vestby": "Odd Vestby was born in Ribe. He is a Danish film director and producer.",
    "Ruth Amsel": "Ruth Amsel was a film director. She came from Leipzig.",
    "Film directors": "A film director leads a film. Many directors of films write scripts, too.",
    "Tarn": "The Tarn is a river that rises near Pellworth.",
}


@pytest.fixture
async def directors(base: KnowledgeBase) -> KnowledgeBase:
    pages = [document(name.lower(), text, title=name) for name, text in PAGES.items()]
    await base.take(stream(pages))
    return base


def says(text: str) -> AgentScript:
    """A model that answers with this and cites every line."""
    sentence = {"text": text, "sources": [1, 2, 3, 4, 5, 6, 7, 8]}
    written = {"enough": True, "sentences": [sentence], "short": text, "missing": ""}
    return AgentScript({"answer": written, "answer_graph": written})


@pytest.mark.parametrize("recipe", ["bm25", "hypergraphrag"])
@pytest.mark.parametrize("said", ["yes", "The answer is no."])
async def test_two_subjects_need_a_passage_each(
    directors: KnowledgeBase, recipe: str, said: str
) -> None:
    question = "Are Odd Vestby and Ruth Amsel both film directors?"
    ask = asking(directors)
    answer = await ask(says(said), question, recipe=recipe, mode="reject", k=4)
    assert answer.verdict == "answered"
    assert {citation.doc for citation in answer.citations} == {"odd vestby", "ruth amsel"}
    assert all("film director" in citation.quote for citation in answer.citations)


async def test_one_subject_is_cited_to_a_page_that_mentions_it(directors: KnowledgeBase) -> None:
    ask = asking(directors)
    answer = await ask(says("yes"), "Is the Tarn a river?", recipe="bm25", mode="reject", k=4)
    assert {citation.doc for citation in answer.citations} == {"tarn"}


async def test_a_subject_that_no_passage_is_about_leaves_nothing_to_cite(
    directors: KnowledgeBase,
) -> None:
    ask = asking(directors)
    question = "Do Odd Vestby and Pellworth share a mayor?"
    answer = await ask(says("yes"), question, recipe="bm25", mode="reject", k=4)
    assert answer.verdict == "refused"
