"""On the GPU machine: a chat model words training questions anew; those still understood are kept.

    PYTHONPATH=. python3 -m bench.query_scorer.rephrase --model DIR/hf --pairs PAIRS.gz SPANS.gz \
        --start scorer.npz --out REPHRASED.gz --minutes 5

A new wording keeps every name and number of the question, and a scorer that was trained before
must find the right item among its first three (of a question without an answer, tell nothing).
So wordings that drifted go, and hard ones stay. What is held out is never worded anew.
"""

import argparse
import gzip
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.machine import print_result
from bench.query_scorer.train import QUESTIONS, Encoder, load_questions, read_logits, torch
from bench.reader.decode_batch import Job, JobRunner, Request
from bench.reader.generate import load_decoder
from bench.reader.model import ReaderModel, load_weights

STYLES = (
    "a full question in everyday words, as a colleague would say it",
    "three to seven key words in small letters, without a question mark",
    "a question that describes what is meant instead of using the same nouns and verbs",
    "a short question typed in a hurry",
)
FIRST = 3  # places within which the old scorer must have the right item
TOLD = 0.5  # chance from which an item of a question without an answer counts as told
_BEGIN = (
    "<|im_start|>system\nYou word questions anew without changing what they ask.<|im_end|>\n"
    "<|im_start|>user\nQuestion: {question}\n\n"
)
_REPLY = "<|im_end|>\n<|im_start|>assistant\n"
_KEPT = re.compile(r"\d[\d.,:%-]*|(?<=\s)[A-Z][\w'-]*")
_WORD = re.compile(r"\w+")


def list_kept(question: str) -> set[str]:
    """Return the numbers and names that every wording must have."""
    return {one.strip(".,").lower() for one in _KEPT.findall(question)}


def is_another(question: str, wording: str) -> bool:
    """Whether a wording keeps names and numbers, and is neither the same nor far longer."""
    said, new = _WORD.findall(question.lower()), _WORD.findall(wording.lower())
    if not 2 <= len(new) <= 2 * len(said) + 6 or set(new) == set(said):
        return False
    return all(one in wording.lower() for one in list_kept(question))


def gather(questions: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return questions with the same items together: they are wordings of one."""
    groups: dict[int, list[dict[str, Any]]] = {}
    for one in questions:
        if one["items"]:
            groups.setdefault(hash(json.dumps(one["items"])), []).append(one)
    return list(groups.values())


def write_wordings(group: list[dict[str, Any]], found: list[dict[str, Any]]) -> Job:
    """Ask for one wording in each style."""
    question = max((one["q"] for one in group), key=len)
    known = {one["q"].lower() for one in group}
    yield _BEGIN.format(question=question)
    for style in STYLES:
        task = (
            f"Write one other wording that asks exactly the same: {style}. Keep all names and "
            f"numbers. Write only the wording.{_REPLY}"
        )
        reply = (yield Request(task, 40, 0.7, stop="\n")).strip().strip('"').strip()
        if reply.lower() not in known and is_another(question, reply):
            known.add(reply.lower())
            found.append({**group[0], "q": reply})


def choose(model: Any, encode: Encoder, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the wordings that the old scorer understands."""
    device = next(model.parameters()).device.type
    with torch.inference_mode():
        for start in range(0, len(rows), QUESTIONS):
            some = rows[start : start + QUESTIONS]
            pairs = [(one["q"], item[0]) for one in some for item in one["items"]]
            chances = read_logits(model, encode(pairs), device)[:, 0].sigmoid().cpu().numpy()
            ends = np.cumsum([len(one["items"]) for one in some])[:-1]
            for one, own in zip(some, np.split(chances, ends), strict=True):
                if is_understood(one["items"], own):
                    yield one


def is_understood(items: list[Any], chance: Any) -> bool:
    """Whether a right item is among the first of its kind, or nothing is told if none is right."""
    right = [at for at, item in enumerate(items) if item[1]]
    if not right:
        return bool(chance.max() < TOLD)
    best = max(right, key=lambda at: chance[at])
    ahead = sum(
        chance[at] > chance[best]
        for at, item in enumerate(items)
        if not item[1] and item[2] == items[best][2]
    )
    return bool(ahead < FIRST)


def main() -> None:
    """Write the wordings that are kept."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--model", type=Path, required=True)
    ask.add_argument("--pairs", type=Path, nargs="+", required=True)
    ask.add_argument("--start", type=Path, required=True)
    ask.add_argument("--out", type=Path, required=True)
    ask.add_argument("--minutes", type=float, default=5.0, help="of writing, loading not counted")
    ask.add_argument("--rows", type=int, default=640)
    ask.add_argument("--room", type=int, default=256, help="tokens of question, request and reply")
    ask.add_argument("--part", type=int, default=0, help="which of --parts processes this is")
    ask.add_argument("--parts", type=int, default=1)
    ask.add_argument("--no-graphs", action="store_true")
    given = ask.parse_args()
    groups = gather(load_questions(given.pairs, held=False))[given.part :: given.parts]
    random.Random(given.part).shuffle(groups)
    found: list[dict[str, Any]] = []
    decoder, tokenizer = load_decoder(given.model, not given.no_graphs)
    runner = JobRunner(decoder, tokenizer, given.rows, given.room)
    jobs = (write_wordings(group, found) for group in groups)
    runner.run(jobs, time.monotonic() + 60 * given.minutes, lambda: None)
    weights, own = load_weights(given.start)
    model = ReaderModel(weights).to("cuda" if torch.cuda.is_available() else "cpu").eval()
    with gzip.open(given.out, "wt", encoding="utf-8", compresslevel=1) as out:
        kept = Counter[str]()
        for one in choose(model, Encoder(own), found):
            kept["none" if one["none"] else "answered"] += 1
            out.write(json.dumps(one, ensure_ascii=False) + "\n")
    counts = {"questions": runner.finished, "of": len(groups), "written": len(found), **kept}
    print_result("query_scorer.rephrase", counts, {"bytes": given.out.stat().st_size})


if __name__ == "__main__":
    main()
