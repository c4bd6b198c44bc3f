"""Asks questions over two linked things, in two halves, and for what no document says.

`python -m bench.linked [--set port,valley] [--show]`, without a model. `port` was written before
the rules for them were mended and read while they were; `valley` was written with it, run unseen,
and its misses read once after that.
`kind` of a question: sum, diff, more, yesno (computed from two values), halves (two things asked;
`half`: one of them is not said), several, hops, step, none (not said), with `de` and `zh`.

Reported per kind: right and told (a confidence of at least .5), right but not told, wrong and told,
neither, and how many right answers cite every value or hop they rest on.
"""

import argparse
import json
import re
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import clew
from bench.machine import print_result, read_jsonl
from clew.agents.base import Answer

FOLDER = Path(__file__).parent
TOLD = 0.5
_MARKS = re.compile(r"[^\w.%]+")


def normalise(text: str) -> str:
    """Return a text as it is compared: small letters, no marks, no commas within numbers."""
    plain = re.sub(r"(?<=\d),(?=\d)", "", text.casefold())
    return " ".join(_MARKS.sub(" ", plain).split()).rstrip(".")


def contains(text: str, gold: str) -> bool:
    """Whether a text has a gold value, as whole words where its script has spaces."""
    said, wanted = normalise(text), normalise(gold)
    if not wanted.isascii():
        return wanted in said
    return re.search(rf"(?<![\w.]){re.escape(wanted)}(?!\w|\.\d)", said) is not None


def is_right(row: dict[str, Any], answer: Answer) -> bool:
    """Whether an answer has a gold value, or all parts of one ("A; B"), and not what it must not.

    What is computed, compared or asked by halves must be named; the rest may be quoted.
    """
    if row.get("not") and contains(answer.answer, row["not"]):
        return False
    told = [part for part in answer.parts if part.verdict == "answered"]
    texts = [one.candidate or one.answer for one in told] or [answer.candidate or answer.answer]
    said = " ; ".join(texts)
    return any(all(contains(said, part) for part in gold.split(";")) for gold in row["answers"])


def cites_all(row: dict[str, Any], answer: Answer) -> bool:
    """Whether the quotes have every value and hop that an answer rests on."""
    quotes = " ".join(one.quote for one in answer.citations)
    return all(one in quotes for one in row["cites"])


def judge(row: dict[str, Any], answer: Answer) -> str:
    """Return what became of a question."""
    told = answer.verdict == "answered" and answer.confidence >= TOLD
    if not row["answers"]:
        return "wrong, told" if told else "rightly not told"
    if is_right(row, answer):
        return "right, told" if told else "right, not told"
    return "wrong, told" if told else "not answered"


def ask_set(name: str, *, show: bool) -> dict[str, dict[str, int]]:
    """Ask a set's questions in a knowledge base of its documents."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    with tempfile.TemporaryDirectory() as folder, clew.open(f"{folder}/kb") as kb:
        kb.add([str(FOLDER / name / "corpus.jsonl")])
        for row in read_jsonl(FOLDER / name / "questions.jsonl"):
            answer = kb.ask(row["question"], recipe="clew")
            outcome, all_cited = judge(row, answer), cites_all(row, answer)
            found[row["kind"]][outcome] += 1
            if outcome.startswith("right,"):
                found[row["kind"]]["cites all"] += all_cited
            if show:
                said = answer.candidate or f"“{answer.answer[:90]}”"
                lacks = "" if all_cited or not outcome.startswith("right,") else " (cites less)"
                print(f"{row['kind']:8} {outcome:16} {answer.confidence:.2f} {row['question']}")
                gold = "; ".join(row["answers"][:1]) or "—"
                print(f"{'':8} {gold} | {said}{lacks} | {answer.missing or answer.note}")
    return found


def main() -> None:
    """Ask the sets and print what became of their questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", default="port,valley")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    for name in given.set.split(","):
        found = ask_set(name, show=given.show)
        total: dict[str, int] = defaultdict(int)
        for outcomes in found.values():
            for outcome, count in outcomes.items():
                total[outcome] += count
        print_result(f"linked {name}", dict(total), {"kinds": len(found)})
        for kind, outcomes in found.items():
            print(f"  {kind:8} {json.dumps(outcomes)}")


if __name__ == "__main__":
    main()
