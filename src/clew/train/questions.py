"""Training questions: read from a dataset folder, split into train and dev by a seed."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clew.errors import InputError
from clew.evaluate.datasets import deduplicate_ids, parse_question, read_flag

Triple = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Task:
    """A question with its gold answers and, where known, its gold triples."""

    id: str
    question: str
    answers: tuple[str, ...]
    evidence: tuple[Triple, ...] = ()
    type: str = ""


def load_tasks(path: Path) -> list[Task]:
    """Read `questions.jsonl` (or the folder that holds it); every question needs an answer."""
    file = path / "questions.jsonl" if path.is_dir() else path
    if not file.is_file():
        raise InputError(f"{path} has no questions.jsonl; give a dataset folder or such a file")
    tasks = _make_ids_distinct([task for task in _read_tasks(file) if task is not None])
    if not tasks:
        raise InputError(f"{file} has no questions; write one JSON object per line")
    without = sum(not task.answers for task in tasks)
    if without:
        raise InputError(
            f"{without} of {len(tasks)} questions in {file} have no answer; training needs "
            "`answer` or `answers` in every row"
        )
    return tasks


def _read_tasks(file: Path) -> Iterator[Task | None]:
    try:
        with file.open(encoding="utf-8-sig") as opened:
            for number, line in enumerate(opened, start=1):
                if line.strip():
                    yield _parse_task(
                        _parse_row(file, number, line), f"{file.name}:{number}", number
                    )
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 ({error.reason}); save it as UTF-8") from None


def _make_ids_distinct(tasks: Sequence[Task]) -> list[Task]:
    """Make ids distinct: batches and the split are drawn by id."""
    ids = deduplicate_ids([task.id for task in tasks])
    return [replace(task, id=new_id) for task, new_id in zip(tasks, ids, strict=True)]


def _parse_row(file: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"{file.name}:{number} is not JSON ({error}); fix or delete it") from None
    if not isinstance(row, dict) or not isinstance(row.get("question"), str):
        raise InputError(f"{file.name}:{number} has no `question`; fix or delete that line")
    return row


def _parse_task(row: dict[str, Any], where: str, number: int) -> Task | None:
    """Parse a row; None for a question that is marked as unanswerable (some are, for `reject`)."""
    try:
        question = parse_question(row, number)
        evidence = tuple(map(_parse_triple, row.get("gold_triples") or ()))
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} cannot be read: {error}; fix or delete that line") from None
    if not read_flag(row, "answerable", True):  # an empty answer is rather a mistake here
        return None
    return Task(question.id, question.prompt_text(), question.answers, evidence, question.type)


def _parse_triple(given: Any) -> Triple:
    if not isinstance(given, list) or len(given) != 3:
        raise ValueError("each of 'gold_triples' must be a list of head, relation and tail")
    head, relation, tail = map(str, given)
    return head, relation, tail


def split_tasks(tasks: Sequence[Task], held: int, seed: int) -> tuple[list[Task], list[Task]]:
    """Split into train and held-out tasks by id and seed, whatever the file's order."""
    if not 0 < held < len(tasks):
        raise InputError(f"cannot hold out {held} of {len(tasks)} questions; choose fewer")
    order = sorted(tasks, key=lambda task: _random_key(task.id, seed))
    return order[held:], order[:held]


def select_batch(tasks: Sequence[Task], step: int, size: int, seed: int) -> list[Task]:
    """Select the tasks of one step; each epoch has its own shuffle, computed without state."""
    positions = [divmod(position, len(tasks)) for position in range(step * size, (step + 1) * size)]
    epochs = {
        epoch: _shuffle_tasks(tasks, epoch, seed) for epoch in {epoch for epoch, _ in positions}
    }
    return [epochs[epoch][at] for epoch, at in positions]


def _shuffle_tasks(tasks: Sequence[Task], epoch: int, seed: int) -> list[Task]:
    return sorted(tasks, key=lambda task: _random_key(task.id, seed * 1_000_003 + epoch + 1))


def _random_key(name: str, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=8).digest()
