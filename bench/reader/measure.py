"""Measures a reader on questions it was not trained on.

    python -m bench.reader.measure --data DATA [--file READER.onnx] [--kbs DIR] [--sets squad2,...]

SQuAD: the articles held out. HotpotQA, MuSiQue and the first 150 questions of 2Wiki: with gold
passages, and with --kbs (folders hotpotqa100, musique100 and 2wiki, which
are copied first) with what a recipe retrieves. Questions answered by yes or no count as wrong.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clew
from bench.reader.examples import Passage, load_squad, read_lines
from bench.reader.scoring import Scored, format_table, summarise
from clew.evaluate.metrics.answers import sub_exact_match
from clew.reader.span_reader import SpanReader

SETS = ("hotpotqa100", "musique100", "2wiki")
MOST = 150  # questions of a set


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its accepted answers and the passages to read."""

    question: str
    golds: tuple[str, ...]
    passages: tuple[Passage, ...]


def with_gold(folder: Path) -> list[Asked]:
    """Questions of a set with their gold passages."""
    corpus = {row["id"]: row for row in read_lines(folder / "corpus.jsonl")}
    made = []
    for row in list(read_lines(folder / "questions.jsonl"))[:MOST]:
        pages = [corpus[one] for one in row["gold"]]
        passages = tuple(Passage(str(p["id"]), p["title"], p["text"]) for p in pages)
        made.append(Asked(row["question"], (row["answer"], *row.get("aliases", ())), passages))
    return made


def with_retrieved(asked: Sequence[Asked], kb: Path, recipe: str, k: int) -> Iterator[Asked]:
    """The same questions with what a recipe finds in a copy of the knowledge base."""
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "kb"
        shutil.copytree(kb, copied)
        with clew.open(copied) as opened:
            for one in asked:
                found = opened.search(one.question, recipe=recipe, k=k).evidence.chunks
                passages = tuple(Passage(p.id, p.title, p.text) for p in found)
                yield Asked(one.question, one.golds, passages)


def read_all(reader: SpanReader, asked: Sequence[Asked]) -> list[Scored]:
    """The best span for every question."""
    made = []
    for one in asked:
        texts, titles = [p.text for p in one.passages], [p.title for p in one.passages]
        spans = reader.read(one.question, texts, titles=titles, most=1)
        best = max(spans, key=lambda span: span.score, default=None)
        made.append(Scored(best.text if best else "", best.score if best else -1e9, one.golds))
    return made


def score(results: Sequence[Scored]) -> dict[str, float]:
    """F1 and exact match of the best span, and whether it contains the answer."""
    row = summarise(results)
    hits = [sub_exact_match(one.text, one.golds) for one in results if one.golds]
    row["sub_em"] = round(100 * sum(hits) / max(1, len(hits)), 2)
    return row


def measure(given: argparse.Namespace) -> Iterator[tuple[str, dict[str, float]]]:
    """One row per set."""
    reader = SpanReader.load(given.file)
    chosen = given.sets.split(",")
    if "squad2" in chosen:
        held = load_squad(given.data / "squad2", held=True)
        asked = [Asked(one.question, one.golds, one.passages) for one in held]
        yield "squad2, held out", score(read_all(reader, asked))
    for name in (one for one in SETS if one in chosen):
        asked = with_gold(given.data / name)
        yield f"{name}, gold", score(read_all(reader, asked))
        if given.kbs:
            found = list(with_retrieved(asked, given.kbs / name, given.recipe, given.k))
            began = time.perf_counter()
            row = score(read_all(reader, found))
            row["ms"] = round(1000 * (time.perf_counter() - began) / len(found), 1)
            yield f"{name}, {given.k} found", row


def main() -> None:
    """Print the table, and write it where asked."""
    ask = argparse.ArgumentParser()
    ask.add_argument("--data", type=Path, required=True)
    ask.add_argument("--file", type=Path, help="a reader, if not the one of the package")
    ask.add_argument("--kbs", type=Path)
    ask.add_argument("--recipe", default="clew")
    ask.add_argument("-k", type=int, default=10)
    ask.add_argument("--sets", default=",".join(("squad2", *SETS)))
    ask.add_argument("--json", type=Path)
    given = ask.parse_args()
    rows: dict[str, Any] = {}
    for name, row in measure(given):
        rows[name] = row
        print(json.dumps({"set": name, **row}), flush=True)
    print(format_table(rows))
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
