"""Writes what the query scorer learns from answers that the product itself proposes.

    python -m bench.query_scorer.candidates --out FILE.gz --data DATA --kbs KBS [--sets SETS]
        [--part N --parts M] [--most 10] [--together 6]

Spans of one text alone (`spans`) are easier to tell apart than the candidates of a question over
several pages, each with the sentences that led to it. Questions come from `bench.reader.notes`,
over knowledge bases of a few notes each, and from the 2Wiki questions that may be trained on. Right
is a candidate that says what is asked for; every eighth note is held out. `--part` of `--parts`
writes a share of the notes and sets, for several processes.
"""

import argparse
import asyncio
import gzip
import json
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from bench.answer_sets import RIGHT, open_set, read_questions
from bench.confidence import find_candidates
from bench.machine import print_result
from bench.note_answers import open_notes
from bench.reader.notes import NOTES, Note, NoteAsk, read_notes
from clew.agents.core.confidence import JUDGED, LogisticModel, load_shipped_models
from clew.engine import KnowledgeBase
from clew.evaluate.metrics.answers import f1

SEED = 11


def choose_asks(note: Note, most: int, rng: random.Random) -> list[NoteAsk]:
    """Return the questions over several texts, then some of the others that have a span or none."""
    asks = [ask for ask in note.asks if ask.statement is None and not ask.is_closed]
    several = [ask for ask in asks if len(ask.example.passages) > 1]
    rest = [ask for ask in asks if ask not in several]
    return [*several, *rng.sample(rest, min(len(rest), max(0, most - len(several))))]


async def make_line(
    kb: KnowledgeBase, question: str, golds: Sequence[str], rank: LogisticModel, *, held: bool
) -> dict[str, Any]:
    """Return a question with its candidates, each right or wrong."""
    found = await find_candidates(kb, question, rank)
    items = [
        (one.said, int(bool(golds) and f1(one.candidate.text, golds) >= RIGHT), "span")
        for one in found
    ]
    return {"q": question, "held": held, "none": not golds, "items": items}


async def write_notes(given: argparse.Namespace, rank: LogisticModel) -> AsyncIterator[Any]:
    """Yield the questions of this part's notes."""
    rng, notes = random.Random(SEED), read_notes(given.notes)
    groups = [notes[at : at + given.together] for at in range(0, len(notes), given.together)]
    for number, group in enumerate(groups):
        if number % given.parts != given.part:
            continue
        kb = await open_notes(given.kbs / f"notes-{number}", group)
        try:
            for note in group:
                for ask in choose_asks(note, given.most, rng):
                    golds = () if ask.none else ask.example.golds
                    question = rng.choice(ask.wordings)
                    yield await make_line(kb, question, golds, rank, held=note.held)
        finally:
            await kb.close()


async def write_sets(given: argparse.Namespace, rank: LogisticModel) -> AsyncIterator[Any]:
    """Yield this part's questions of data sets."""
    for spec in filter(None, given.sets.split(",")):
        name, first, last = spec.split(":")
        asked = read_questions(given.data / name, int(first), int(last), "plain")
        kb = await open_set(given, name)
        try:
            for one in asked[given.part :: given.parts]:
                yield await make_line(kb, one.text, one.golds, rank, held=False)
        finally:
            await kb.close()


async def write_all(given: argparse.Namespace) -> int:
    """Write this part; return the number of questions."""
    count, rank = 0, load_shipped_models()[f"{JUDGED} rank"]
    given.kbs.mkdir(parents=True, exist_ok=True)
    with gzip.open(given.out, "wt", encoding="utf-8") as out:
        for lines in (write_sets(given, rank), write_notes(given, rank)):
            async for line in lines:
                if line["items"]:
                    out.write(json.dumps(line, ensure_ascii=False) + "\n")
                    count += 1
    return count


def main() -> None:
    """Write the candidates."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--out", type=Path, required=True)
    ask.add_argument("--data", type=Path, required=True)
    ask.add_argument("--kbs", type=Path, required=True)
    ask.add_argument("--sets", default="2wiki:400:1000")
    ask.add_argument("--notes", type=Path, default=NOTES)
    ask.add_argument("--part", type=int, default=0)
    ask.add_argument("--parts", type=int, default=1)
    ask.add_argument("--most", type=int, default=10, help="questions about each note")
    ask.add_argument("--together", type=int, default=6, help="notes in a knowledge base")
    given = ask.parse_args()
    count = asyncio.run(write_all(given))
    print_result("query_scorer.candidates", {"questions": count}, {"part": given.part})


if __name__ == "__main__":
    main()
