"""The two AnonyRAG tasks: multiple choice of placeholders, and anonymity reversion."""

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from clew.evaluate.marks import PLACEHOLDER, PlaceholderMap

_OPTION_COUNT = 4
_WHOLE_PLACEHOLDER = re.compile(r"\[([A-Z]+)#(\d+)\]")
REVERSION_PROMPT = (
    "Below is a question with its answer. Names in it have been replaced by marks.\n\n"
    "Q: {question}\nA: {answer}\n\n"
    "Tell for each mark which name it stands for, one to a line, as MARK: name."
)


def build_choice_tasks(
    rows: Sequence[Mapping[str, Any]], names: PlaceholderMap, seed: int
) -> list[dict[str, Any]]:
    """Build multiple-choice rows from questions answered by one name, with distractors."""
    rng = random.Random(seed)
    by_kind: dict[str, list[str]] = {}
    for mark, entry in names.entries.items():
        by_kind.setdefault(entry["kind"], []).append(mark)
    found = []
    for row in rows:
        match = _WHOLE_PLACEHOLDER.fullmatch(str(row.get("answer", "")).strip())
        if match is None:
            continue
        right = f"{match[1]}#{match[2]}"
        others = [mark for mark in by_kind.get(match[1], []) if mark != right]
        if not others:
            continue
        marks = [right, *rng.sample(others, min(_OPTION_COUNT - 1, len(others)))]
        rng.shuffle(marks)
        options = {"ABCD"[at]: f"[{mark}]" for at, mark in enumerate(marks)}
        letter = next(key for key, mark in options.items() if mark == f"[{right}]")
        kept = {part: row[part] for part in ("id", "question", "gold") if part in row}
        found.append(kept | {"type": "choice", "options": options, "answer": letter})
    return found


def build_reversion_tasks(
    rows: Sequence[Mapping[str, Any]], names: PlaceholderMap
) -> list[dict[str, Any]]:
    """Build rows that ask which names the placeholders of a question and its answer stand for."""
    found = []
    for row in rows:
        answer = row.get("answer") or "; ".join(row.get("answers") or ())
        marks = dict.fromkeys(PLACEHOLDER.findall(f"{row['question']} {answer}"))
        originals = {
            mark[1:-1]: _name_forms(names.entries[mark[1:-1]])
            for mark in marks
            if mark[1:-1] in names.entries
        }
        if not originals:
            continue
        text = REVERSION_PROMPT.format(question=row["question"], answer=answer)
        gold = "\n".join(f"{mark}: {forms[0]}" for mark, forms in originals.items())
        kept = {part: row[part] for part in ("id", "gold") if part in row}
        found.append(
            kept | {"question": text, "answer": gold, "type": "reversion", "originals": originals}
        )
    return found


def _name_forms(entry: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys([entry["name"], *entry["forms"]]))
