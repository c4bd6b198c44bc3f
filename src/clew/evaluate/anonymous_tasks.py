"""The two AnonyRAG tasks: multiple choice of placeholders, and anonymity reversion."""

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from clew.evaluate.marks import MARK, Names

_OPTIONS = 4
_ONLY_MARK = re.compile(r"\[([A-Z]+)#(\d+)\]")
REVERSION = (
    "Below is a question with its answer. Names in it have been replaced by marks.\n\n"
    "Q: {question}\nA: {answer}\n\n"
    "Tell for each mark which name it stands for, one to a line, as MARK: name."
)


def choices(rows: Sequence[Mapping[str, Any]], names: Names, seed: int) -> list[dict[str, Any]]:
    """Build multiple-choice rows from questions answered by one name, with distractors."""
    rng = random.Random(seed)
    by_kind: dict[str, list[str]] = {}
    for mark, entry in names.told.items():
        by_kind.setdefault(entry["kind"], []).append(mark)
    found = []
    for row in rows:
        match = _ONLY_MARK.fullmatch(str(row.get("answer", "")).strip())
        if match is None:
            continue
        right = f"{match[1]}#{match[2]}"
        others = [mark for mark in by_kind.get(match[1], []) if mark != right]
        if not others:
            continue
        marks = [right, *rng.sample(others, min(_OPTIONS - 1, len(others)))]
        rng.shuffle(marks)
        options = {"ABCD"[at]: f"[{mark}]" for at, mark in enumerate(marks)}
        letter = next(key for key, mark in options.items() if mark == f"[{right}]")
        kept = {part: row[part] for part in ("id", "question", "gold") if part in row}
        found.append(kept | {"type": "choice", "options": options, "answer": letter})
    return found


def reversions(rows: Sequence[Mapping[str, Any]], names: Names) -> list[dict[str, Any]]:
    """Build rows that ask which names the placeholders of a question and its answer stand for."""
    found = []
    for row in rows:
        answer = row.get("answer") or "; ".join(row.get("answers") or ())
        marks = dict.fromkeys(MARK.findall(f"{row['question']} {answer}"))
        originals = {
            mark[1:-1]: _forms(names.told[mark[1:-1]]) for mark in marks if mark[1:-1] in names.told
        }
        if not originals:
            continue
        text = REVERSION.format(question=row["question"], answer=answer)
        gold = "\n".join(f"{mark}: {forms[0]}" for mark, forms in originals.items())
        kept = {part: row[part] for part in ("id", "gold") if part in row}
        found.append(
            kept | {"question": text, "answer": gold, "type": "reversion", "originals": originals}
        )
    return found


def _forms(entry: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys([entry["name"], *entry["forms"]]))
