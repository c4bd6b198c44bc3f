"""Writes what the query scorer learns about answers: spans that were read, and yes or no.

    python -m bench.query_scorer.spans --out SPANS.gz --data DATA [--most 2000]

Questions come from `bench.reader.notes`, from the SQuAD articles and the 2Wiki questions that the
reader may be trained on. Right is the span asked for with its page and sentence; wrong are other
spans that the reader names in the same texts and in similar ones. For questions to be answered by
yes or no, the sentence that decides is right, the others of the text are wrong.
"""

import argparse
import gzip
import json
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.machine import print_result
from bench.reader.examples import Example, Passage, load_2wiki, load_squad
from bench.reader.notes import NOTES, Note, read_notes
from clew.reader.query_scorer import find_told, say_answer, say_statement
from clew.reader.span_reader import SpanReader
from clew.text.sentences import sentence_spans

Item = tuple[Any, ...]
_READ = 8  # spans of the reader for a question
_STATEMENTS = 10  # sentences that do not decide
_BRIDGED = 0.7  # share of answers over two texts that come with the sentence between


def find_bridge(passages: Sequence[Passage], at: int) -> str:
    """Return the sentence of another text that mentions the title of the answer's text."""
    title = passages[at].title.split(" (")[0]
    for number, passage in enumerate(passages):
        found = passage.text.find(title) if number != at else -1
        if found >= 0:
            return f"{passage.title}: {find_told(passage.text, found, found + 1)}"
    return ""


class SpanWriter:
    """Makes right and wrong items of questions by reading their texts."""

    def __init__(self, seed: int = 3, workers: int = 0) -> None:
        """Open the reader of the package."""
        self.rng = random.Random(seed)
        self.reader = SpanReader.load(workers=workers)

    def list_items(self, example: Example, others: Sequence[Passage]) -> list[Item]:
        """Return the right span, and spans of these and other texts that are wrong."""
        texts = [*example.passages, *others]
        found = self.reader.read(
            example.question,
            [one.text for one in texts],
            titles=[one.title for one in texts],
            most=_READ,
        )
        items: list[Item] = []
        gold = example.answer
        bridge = (
            find_bridge(example.passages, gold[0]) if gold and len(example.passages) > 1 else ""
        )
        if gold is not None:
            items.append((self._say(texts[gold[0]], gold[1], gold[2], bridge), 1, "span"))
        for span in found:
            if gold is None or not self._is_near(span, gold, texts):
                kept = bridge if gold is None or span.passage == gold[0] else ""
                said = self._say(texts[span.passage], span.start, span.end, kept)
                items.append((said, 0, "span"))
        return items

    def _is_near(self, span: Any, gold: tuple[int, int, int], texts: Sequence[Passage]) -> bool:
        """Whether a span overlaps the right one, or says the same elsewhere."""
        if span.passage == gold[0] and span.start < gold[2] and gold[1] < span.end:
            return True
        said = texts[gold[0]].text[gold[1] : gold[2]].lower()
        return said in span.text.lower() or span.text.lower() in said

    def _say(self, passage: Passage, start: int, end: int, bridge: str) -> str:
        told = find_told(passage.text, start, end)
        if bridge and self.rng.random() < _BRIDGED:
            told = f"{bridge} {told}"
        return say_answer(passage.text[start:end], passage.title, told)

    def write_examples(
        self, examples: Sequence[Example], others: Sequence[Passage], *, held: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Yield single questions with their items."""
        for one in examples:
            near = self.rng.sample(list(others), min(1, len(others)))
            items = self.list_items(one, near)
            yield {"q": one.question, "held": held, "none": one.answer is None, "items": items}

    def write_notes(self, notes: Sequence[Note]) -> Iterator[dict[str, Any]]:
        """Yield the questions of the notes; wordings of one question share their items."""
        for note in notes:
            for ask in note.asks:
                if ask.statement is not None:
                    items = self._list_statements(note.passages[ask.doc], ask.statement)
                elif ask.is_closed:
                    items = self._list_statements(note.passages[ask.doc], ("", ""))
                else:
                    rest = [one for one in note.passages if one not in ask.example.passages]
                    items = self.list_items(ask.example, [*rest, *note.similar[:1]])
                    items += self._list_near(ask.near, note.passages)
                for question in ask.wordings:
                    yield {"q": question, "held": note.held, "none": ask.none, "items": items}

    def _list_near(self, near: str, passages: Sequence[Passage]) -> list[Item]:
        """Return what seems to answer a question that the texts do not answer, as wrong."""
        found = [(one, one.text.find(near)) for one in passages if near and near in one.text]
        return [(self._say(one, at, at + len(near), ""), 0, "span") for one, at in found[:1]]

    def _list_statements(self, passage: Passage, says: tuple[str, str]) -> list[Item]:
        """Return the sentence that decides a question, and others of its text."""
        sentence, decision = says
        at = passage.text.find(sentence) if sentence else -1
        items: list[Item] = []
        if at >= 0:
            told = find_told(passage.text, at, at + len(sentence))
            items.append((say_statement(passage.title, told), 1, "state", int(decision == "yes")))
        wrong = [
            (say_statement(passage.title, find_told(passage.text, start, end)), 0, "state")
            for start, end in sentence_spans(passage.text)
            if at < 0 or end <= at or at + len(sentence) <= start
        ]
        return [*items, *self.rng.sample(wrong, min(_STATEMENTS, len(wrong)))]


def write_part(given: argparse.Namespace, part: int) -> list[str]:
    """Return the lines of one of the workers' parts."""
    writer = SpanWriter(part, workers=0 if given.workers == 1 else 1)
    squad = load_squad(given.data / "squad2", held=False)[: given.most]
    wiki = load_2wiki(given.data / "2wiki")[: given.most]
    pages = list({one.passages[0].id: one.passages[0] for one in [*squad, *wiki]}.values())
    own = slice(part, None, given.workers)
    rows = [
        *writer.write_examples([*squad, *wiki][own], pages),
        *writer.write_notes(read_notes(given.notes)[: given.most][own]),
    ]
    return [json.dumps(row, ensure_ascii=False) for row in rows]


def main() -> None:
    """Write the items."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--out", type=Path, required=True)
    ask.add_argument("--data", type=Path, required=True)
    ask.add_argument("--notes", type=Path, default=NOTES)
    ask.add_argument("--most", type=int, default=10**9, help="questions of each kind")
    ask.add_argument("--workers", type=int, default=1, help="processes")
    given = ask.parse_args()
    with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:
        parts = list(pool.map(write_part, repeat(given), range(given.workers)))
    lines = [line for part in parts for line in part]
    with gzip.open(given.out, "wt", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in lines)
    print_result(
        "query_scorer.spans", {"questions": len(lines)}, {"bytes": given.out.stat().st_size}
    )


if __name__ == "__main__":
    main()
