"""The two tasks of AnonyRAG: choose the right mark, and tell what the marks stand for."""

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
    """Multiple choice from questions whose answer is one name; others of its kind stand beside."""
    rng = random.Random(seed)
    by_kind: dict[str, list[str]] = {}
    for mark, told in names.told.items():
        by_kind.setdefault(told["kind"], []).append(mark)
    found = []
    for row in rows:
        only = _ONLY_MARK.fullmatch(str(row.get("answer", "")).strip())
        if only is None:
            continue
        right = f"{only[1]}#{only[2]}"
        others = [mark for mark in by_kind.get(only[1], []) if mark != right]
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
    """A question and its answer, both anonymised: which names were these?"""
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
        told = "\n".join(f"{mark}: {forms[0]}" for mark, forms in originals.items())
        kept = {part: row[part] for part in ("id", "gold") if part in row}
        found.append(
            kept | {"question": text, "answer": told, "type": "reversion", "originals": originals}
        )
    return found


def _forms(told: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys([told["name"], *told["forms"]]))
