"""A question in another language than the documents is told so; it gets no confident answer."""

import pytest
from tests.conftest import stream

from clew.engine import KnowledgeBase
from clew.types import Document

MILL = "The Arbo mill in Torsby was founded in 1871 by Fredrik Berg. It made paper for newspapers."


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Wer hat die Mühle in Torsby gegründet?", "German"),
        ("Qui a fondé le moulin de Torsby ?", "French"),
        ("Chi ha fondato il mulino di Torsby?", "Italian"),
        ("Kto założył młyn w Torsby?", "Polish"),
        ("Кто основал мельницу в Торсбю?", "Cyrillic letters"),
        ("トシュビーの工場を設立したのは誰ですか？", "Japanese"),
    ],
)
async def test_a_refusal_names_both_languages(
    base: KnowledgeBase, question: str, language: str
) -> None:
    await base.take(stream([Document("d1", MILL, "Arbo mill", ("mill.md",))]))
    answer = await base.ask(question, mode="reject")
    if answer.verdict == "refused":
        assert f"in {language}, the passages found are in English" in answer.missing
    else:
        assert "Fredrik Berg" in answer.answer
    told = await base.ask(question)
    assert told.confidence >= 0.5 or f"the question is in {language}" in told.note + told.missing


async def test_a_question_in_the_language_of_the_documents_is_not(base: KnowledgeBase) -> None:
    await base.take(stream([Document("d1", MILL, "Arbo mill", ("mill.md",))]))
    answer = await base.ask("Who painted the museum of Visby?", mode="reject")
    assert answer.verdict == "refused"
    assert "the question is in" not in f"{answer.missing} {answer.note} {answer.answer}"
