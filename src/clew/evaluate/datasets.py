"""Dataset folders: `corpus.jsonl` and `questions.jsonl`, read row by row, bad rows named."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.errors import InputError


@dataclass(frozen=True, slots=True)
class Question:
    """One question with what is known to be right about it."""

    id: str
    text: str
    answers: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    type: str = ""
    entities: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dataset:
    """A folder's questions and, when it has one, its corpus."""

    name: str
    questions: tuple[Question, ...]
    corpus: Path | None
    problems: tuple[str, ...] = ()


def load_dataset(folder: Path) -> Dataset:
    """Read a dataset folder."""
    questions = folder / "questions.jsonl"
    if not questions.is_file():
        raise InputError(
            f"{folder} has no questions.jsonl; a dataset folder holds that and corpus.jsonl"
        )
    corpus = folder / "corpus.jsonl"
    problems: list[str] = []
    found = tuple(
        _question(row, number) for number, row in enumerate(_rows(questions, problems), 1)
    )
    return Dataset(
        folder.resolve().name, found, corpus if corpus.is_file() else None, tuple(problems)
    )


def _question(row: dict[str, Any], number: int) -> Question:
    answers = row.get("answers") or [row[key] for key in ("answer",) if row.get(key) is not None]
    return Question(
        id=str(row.get("id", number)),
        text=str(row["question"]),
        answers=tuple(map(str, [*answers, *(row.get("aliases") or ())])),
        gold=tuple(map(str, row.get("gold") or ())),
        type=str(row.get("type", "")),
        entities=tuple(map(str, row.get("entities") or ())),
    )


def _rows(path: Path, problems: list[str]) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                problems.append(f"{path.name}:{number}: not JSON ({error})")
                continue
            if not isinstance(row, dict) or not isinstance(row.get("question"), str):
                problems.append(f"{path.name}:{number}: no 'question'")
                continue
            yield row
