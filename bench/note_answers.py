"""What speaks for each answer about the notes that nothing was trained on, to fit the confidence.

`python -m bench.note_answers --kbs DIR --rows FILE [--candidates FILE] [--most 8] [--together 6]
[--part N --parts M]` makes small knowledge bases, each of a few notes that are held out with their
neighbours, asks some questions about each in one of their wordings, and appends a line for each
answer, as `bench.answer_sets --rows` does, and for the candidates of each question, as
`bench.confidence candidates` does. With `--quoted` nothing is named, and what is quoted first is
right if it has the answer, to fit the confidence of quotes; with `--closed` only questions of yes
or no are asked. With `--statements` nothing is asked: each line has what the scorer says of a
sentence that decides a question of yes or no, to fit what says yes.
"""

import argparse
import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.answer_sets import RIGHT, Asked
from bench.confidence import label_candidates
from bench.machine import print_result
from bench.reader.notes import NOTES, Note, NoteAsk, read_notes
from clew.agents.core.confidence import JUDGED, load_shipped_models
from clew.agents.base import Answer
from clew.agents.reading.decide import describe_saying
from clew.agents.rules.operators import is_polar
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.evaluate.metrics.answers import f1, sub_exact_match
from clew.reader.query_scorer import QueryScorer, find_told, say_statement

SEED = 5


async def open_notes(folder: Path, notes: Sequence[Note]) -> KnowledgeBase:
    """Open the knowledge base of some notes and their neighbours, built if it is not there."""
    known = await asyncio.to_thread(folder.exists)
    kb = await KnowledgeBase.open(Settings(kb=folder), create=True)
    if not known:
        corpus = folder.with_suffix(".jsonl")
        texts = {one.id: one for note in notes for one in (*note.passages, *note.similar)}
        rows = ({"id": one.id, "title": one.title, "text": one.text} for one in texts.values())
        corpus.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        await kb.add([corpus])
    return kb


def choose_questions(
    note: Note, given: argparse.Namespace, rng: random.Random
) -> Iterator[tuple[NoteAsk, str]]:
    """Yield some questions, each in one wording."""
    asks = [one for one in note.asks if one.is_closed or not given.closed]
    for ask in rng.sample(asks, min(given.most, len(asks))):
        yield ask, rng.choice(ask.wordings)


def is_right(ask: NoteAsk, answer: Answer) -> bool:
    """Whether an answer is the span, quotes it first, or says yes or no as it is."""
    if ask.none:
        return False
    if ask.statement is not None:
        return answer.candidate.lower() == ask.statement[1]
    if answer.candidate:
        golds = ask.example.golds
        return f1(answer.candidate, golds) >= RIGHT or bool(
            sub_exact_match(answer.candidate, golds)
        )
    first = answer.citations[0].quote if answer.citations else ""
    return any(gold in first for gold in ask.example.golds)


def count_row(note: Note, question: str, answer: Answer) -> float:
    """Return how often a wrong answer counts: not if it is another note's and nothing is named.

    It may be right there: "When is breakfast?" can be asked about many of the notes.
    """
    texts = (f"{one.title} {one.text}" for one in note.passages)
    is_own = not answer.candidate or any(answer.candidate in text for text in texts)
    names = any(not word[:1].islower() for word in question.split()[1:])
    return float(is_own or names or answer.computed)


async def describe_note(
    kb: KnowledgeBase, number: int, note: Note, given: argparse.Namespace, rng: random.Random
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Ask the questions of a note; return the answers, and the candidates if they are wanted."""
    rows, candidates = [], []
    rank = load_shipped_models()[f"{JUDGED} rank" if kb.scorer else "rank"]
    for ask, question in choose_questions(note, given, rng):
        answer = await kb.ask(question)
        golds = ask.example.golds or ((ask.statement[1],) if ask.statement else ())
        head = {"set": f"notes:{number}", "wording": "plain", "id": question}
        rows.append(
            {
                **head,
                "question": question,
                "golds": golds,
                "short": answer.candidate,
                "right": (right := is_right(ask, answer)),
                "count": 1.0 if right else count_row(note, question, answer),
                "confidence": answer.confidence,
                "signals": dict(answer.signals),
            }
        )
        if given.candidates and ask.statement is None and not is_polar(question):
            found = await label_candidates(kb, Asked(question, question, ask.example.golds), rank)
            candidates.append({**head, "candidates": found})
    return rows, candidates


def describe_statements(number: int, note: Note, scorer: QueryScorer) -> list[dict[str, Any]]:
    """Return what the scorer says of each sentence that decides a question of yes or no."""
    rows = []
    for ask in note.asks:
        if ask.statement is None:
            continue
        page, (sentence, says) = note.passages[ask.doc], ask.statement
        start = max(0, page.text.find(sentence))
        told = find_told(page.text, start, start + len(sentence))
        for question in ask.wordings:
            _, yes = scorer.score_statements(question, [say_statement(page.title, told)])
            rows.append(
                {
                    "set": f"notes:{number}",
                    "wording": "plain",
                    "id": question,
                    "short": says,
                    "right": says == "yes",
                    "signals": describe_saying(question, sentence, float(yes[0])),
                }
            )
    return rows


def append_rows(file: Path | None, rows: list[dict[str, Any]]) -> None:
    """Append rows to a file, if there is one."""
    if file is not None:
        with file.open("a", encoding="utf-8") as opened:
            opened.writelines(f"{json.dumps(row)}\n" for row in rows)


async def ask_notes(given: argparse.Namespace, held: Sequence[tuple[int, Note]]) -> dict[str, int]:
    """Ask the questions of the notes held out, some notes together; count them."""
    rng, asked, right = random.Random(SEED), 0, 0
    for first in range(0, len(held), given.together):
        some = held[first : first + given.together]
        kb = await open_notes(given.kbs / f"notes{some[0][0]}", [note for _, note in some])
        try:
            for number, note in some:
                rows, candidates = await describe_note(kb, number, note, given, rng)
                append_rows(given.rows, rows)
                append_rows(given.candidates, candidates)
                asked, right = asked + len(rows), right + sum(row["right"] for row in rows)
        finally:
            await kb.close()
    return {"asked": asked, "right": right}


async def main() -> None:
    """Ask the questions of the notes held out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kbs", type=Path, required=True)
    parser.add_argument("--notes", type=Path, default=NOTES)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--candidates", type=Path)
    parser.add_argument("--most", type=int, default=8, help="questions of a note")
    parser.add_argument("--together", type=int, default=6, help="notes of a knowledge base")
    parser.add_argument("--quoted", action="store_true", help="quote units, name nothing")
    parser.add_argument("--closed", action="store_true", help="only questions of yes or no")
    parser.add_argument("--statements", action="store_true", help="ask nothing, score sentences")
    parser.add_argument("--part", type=int, default=0, help="of so many parts, for processes")
    parser.add_argument("--parts", type=int, default=1)
    given = parser.parse_args()
    held = [(number, one) for number, one in enumerate(read_notes(given.notes)) if one.held]
    held = held[given.part :: given.parts]
    if given.statements:
        scorer = QueryScorer.load()
        rows = [row for number, note in held for row in describe_statements(number, note, scorer)]
        append_rows(given.rows, rows)
        print_result("note_answers", {"statements": len(rows)}, {})
        return
    if given.quoted:
        patch("clew.agents.quote_units.is_technical", lambda *_: True).start()
        patch("clew.agents.quote_units.asks_one_thing", lambda _: False).start()
    given.kbs.mkdir(parents=True, exist_ok=True)
    print_result("note_answers", await ask_notes(given, held), {"most": given.most})


if __name__ == "__main__":
    asyncio.run(main())
