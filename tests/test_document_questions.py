"""The bench of questions over documents: its questions are well formed, its scores are right."""

from dataclasses import replace
from pathlib import Path

import pytest
from bench.documents.__main__ import QUESTIONS, ask_question, report_recipe
from bench.documents.corpora import CORPORA, copy_files, select_files
from bench.documents.scoring import (
    UNANSWERABLE,
    DocumentQuestion,
    compare_twins,
    covers,
    load_questions,
    mentions,
    score_answer,
    squeeze,
    summarize,
)

from clew.agents.base import Answer
from clew.engine import KnowledgeBase
from clew.text.unicode import digest
from clew.types import Citation, Document, Evidence, Passage
from conftest import stream

ASKED = DocumentQuestion(
    "t-1",
    "How many lamps does the harbour light have?",
    "notes/light.txt",
    "The harbour light has seven lamps",
    kind="number",
    answers=("seven", "7"),
)
NOBODY = DocumentQuestion("t-2", "Who owns the moon?", kind=UNANSWERABLE)


def make_passage(text: str) -> Passage:
    return Passage("c1", "notes/light.txt", "Light", 1.0, text, 0, len(text))


def make_reply(quote: str, candidate: str = "", verdict: str = "answered") -> Answer:
    cited = (Citation("notes/light.txt", "c1", 0, len(quote), quote),) if quote else ()
    said = Answer("?", "bm25", f"“{quote}” [1]", verdict, cited, Evidence(), (), 0.0, candidate)  # type: ignore[arg-type]
    return replace(said, confidence=0.9)


def test_a_span_is_found_however_the_text_is_laid_out() -> None:
    assert covers("…\nThe har-\nbour light | has  SEVEN lamps.", ASKED.quote)
    assert covers("The harbour light has seven lam", ASKED.quote)
    assert not covers("The harbour light is old.", ASKED.quote)
    assert not covers("anything", "")
    assert covers("| Item: lamps | Limit: 7 |", "| lamps | | 7 |")  # a row, however it is laid out
    assert not covers("| Item: lamps | Limit: 9 |\n| Item: doors | Limit: 7 |", "| lamps | 7 |")


@pytest.mark.parametrize(
    ("text", "answer", "said"),
    [
        ("use --skip-locked here", "--skip-locked", True),
        ("the limit is 1,600", "16", False),
        ("pass -x to it", "-x", True),
        ("the ext-x file", "-x", False),
        ("密码应该由 6 到 8 个字符组成", "6 到 8 个字符", True),
    ],
)
def test_an_answer_is_looked_for_as_whole_words(text: str, answer: str, said: bool) -> None:
    assert mentions(text, answer) is said


def test_a_quote_of_the_gold_span_counts_and_a_wrong_name_is_counted_against() -> None:
    passages = [make_passage("The harbour light has seven lamps. It is old.")]
    right = score_answer(ASKED, passages, make_reply("The harbour light has seven lamps."), 1.0)
    assert (right.found, right.quoted, right.wrong_headline) == (True, True, False)
    wrong = score_answer(ASKED, [make_passage("Old.")], make_reply("It is old.", "Old"), 1.0)
    assert (wrong.found, wrong.quoted, wrong.wrong_headline) == (False, False, True)
    named = score_answer(ASKED, passages, make_reply("It is old.", "seven lamps"), 1.0)
    assert (named.quoted, named.wrong_headline) == (True, False)
    part = score_answer(ASKED, passages, make_reply("It is old.", "eve"), 1.0)
    assert part.wrong_headline


def test_an_unanswerable_question_is_right_only_when_nothing_is_named() -> None:
    refused = score_answer(NOBODY, [], make_reply("", verdict="refused"), 1.0)
    named = score_answer(NOBODY, [], make_reply("It is old.", "Old"), 1.0)
    assert (refused.refused, refused.wrong_headline, refused.quoted) == (True, False, None)
    assert named.wrong_headline
    assert summarize([refused, named])["unanswerable refused"] == 0.5


def test_a_row_of_a_table_is_found_by_its_values() -> None:
    row = DocumentQuestion("t-3", "?", "t.csv", "x", kind="table", cells=("Botswana", "BWA"))
    found = [make_passage("name: Botswana; alpha_3: BWA")]
    assert score_answer(row, found, make_reply(""), 1.0).found
    assert not score_answer(row, [make_passage("Botswana")], make_reply(""), 1.0).found


def test_twins_are_compared_with_their_originals() -> None:
    twin = DocumentQuestion("t-4", "lamps?", ASKED.file, ASKED.quote, kind="number", twin_of="t-1")
    first = score_answer(ASKED, [], make_reply(ASKED.quote), 1.0)
    second = score_answer(twin, [], make_reply("Old."), 1.0)
    compared = compare_twins([first, second])
    assert (compared["original"]["quoted"], compared["reworded"]["quoted"]) == (1.0, 0.0)
    assert compared["same"] == 0.0


def test_every_question_has_what_the_scores_need() -> None:
    everything = [question for name in CORPORA for question in load_questions(QUESTIONS, name)]
    ids = {question.id: question for question in everything}
    assert len(ids) == len(everything) >= 160
    for question in everything:
        assert question.corpus in CORPORA
        if question.kind != UNANSWERABLE:
            assert question.file, question.id
            assert question.answers, question.id
            assert all(squeeze(span) and len(span) <= 200 for span in question.spans), question.id
        if question.twin_of:
            assert ids[question.twin_of].split == question.split
    for name in CORPORA:
        held = [q.split == "held" for q in everything if q.corpus == name]
        assert 0.4 <= sum(held) / len(held) <= 0.6


def test_files_are_chosen_in_a_fixed_order_and_a_missing_package_is_named(tmp_path: Path) -> None:
    corpus = CORPORA["manual"]
    pages = tmp_path / "doc/postgresql-doc-15/html"
    pages.mkdir(parents=True)
    for number in range(5):
        (pages / f"p{number}.html").write_text(f"<p>page {number}</p>")
    gold = "doc/postgresql-doc-15/html/p3.html"
    chosen = select_files(corpus, [gold], tmp_path, pages=3)
    assert len(chosen) == 3
    assert gold in chosen
    assert chosen == select_files(corpus, [gold], tmp_path, pages=3)
    assert copy_files(chosen, tmp_path / "copy", tmp_path)
    assert not copy_files(chosen, tmp_path / "copy", tmp_path)
    with pytest.raises(SystemExit, match="apt-get install"):
        select_files(corpus, ["doc/postgresql-doc-15/html/none.html"], tmp_path)


async def test_a_knowledge_base_is_asked_and_reported(base: KnowledgeBase) -> None:
    text = "The harbour light has seven lamps. It is old."
    light = Document(digest("Light", text), text, "Light", ("notes/light.txt",))
    await base.take(stream([light]))
    score = await ask_question(base, ASKED, "bm25", "open")
    assert score.found
    assert report_recipe([score])["kinds"]["number"]["found"] == 1.0
