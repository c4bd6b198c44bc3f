"""Dataset folders: `corpus.jsonl` and `questions.jsonl`, read row by row, bad rows named."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clew.errors import InputError
from clew.evaluate.fields import flag, groups, mapping, text_list, words_of

QUESTIONS, CORPUS = "questions.jsonl", "corpus.jsonl"


@dataclass(frozen=True, slots=True)
class Question:
    """One question with what is known to be right about it."""

    id: str
    text: str
    answers: tuple[str, ...] = ()
    """Every answer that counts as right, other names of the same thing among them."""
    gold: tuple[str, ...] = ()
    type: str = ""
    entities: tuple[str, ...] = ()
    """Where a graph question starts, when the data set says so."""
    options: Mapping[str, str] | None = None
    """Letter → text, for multiple choice."""
    originals: Mapping[str, Sequence[str]] | None = None
    """Mark → the names it may stand for, for anonymity reversion."""
    answerable: bool = True
    evidence: tuple[str, ...] = ()
    """Gold knowledge in words, where the data set has it."""
    aliases: tuple[tuple[str, ...], ...] = ()
    """Those of the answers that are names of one thing, a tuple for each thing with several."""

    def wanted(self) -> tuple[tuple[str, ...], ...]:
        """The different answers, each with all its names."""
        named = {name for group in self.aliases for name in group}
        return (*self.aliases, *((one,) for one in self.answers if one not in named))

    def asked(self) -> str:
        """The question as it is put: with its options, one to a line."""
        if not self.options:
            return self.text
        return "\n".join([self.text, *(f"{key}. {text}" for key, text in self.options.items())])


@dataclass(frozen=True)
class Dataset:
    """A folder's questions and, when it has one, its corpus."""

    name: str
    questions: tuple[Question, ...]
    corpus: Path | None
    problems: tuple[str, ...] = ()
    """What is wrong with single rows, one sentence each; rows that cannot be read are left out."""
    unread: int = 0
    """Rows that are left out."""


def load_dataset(path: Path) -> Dataset:
    """Read a dataset folder, or one file of questions."""
    folder, questions = (path.parent, path) if path.is_file() else (path, path / QUESTIONS)
    if not questions.is_file():
        raise InputError(
            f"{path} has no {QUESTIONS}; a dataset folder holds that and {CORPUS}, and "
            "`clew dataset convert` makes one"
        )
    problems: list[str] = []
    doubts: list[str] = []
    found = list(_questions(questions, problems, doubts))
    unread = len(problems)
    problems += doubts
    corpus = folder / CORPUS if (folder / CORPUS).is_file() else None
    found = _distinct(found, problems)
    problems += _doubts(found, corpus)
    name = path.stem if path.is_file() else folder.resolve().name
    return Dataset(name, tuple(found), corpus, tuple(problems), unread)


def _questions(path: Path, problems: list[str], doubts: list[str]) -> Iterator[Question]:
    for number, row in _rows(path, problems):
        try:
            question = question_of(row, number)
        except (TypeError, ValueError) as error:
            problems.append(f"{path.name}:{number}: cannot be read ({error})")
            continue
        empty = sum(not one.strip() for one in _answers(row))
        if empty:
            doubts.append(f"{path.name}:{number}: {empty} of its answers empty; left out")
        yield question


def question_of(row: Mapping[str, Any], number: int) -> Question:
    """One row of `questions.jsonl` as a question."""
    answers = groups(row, "aliases", _answers(row))
    options, originals = mapping(row, "options"), mapping(row, "originals")
    return Question(
        id=str(number if row.get("id") is None else row["id"]),
        text=str(row["question"]),
        answers=tuple(dict.fromkeys(name for group in answers for name in group)),
        gold=text_list(row, "gold"),
        type=str(row.get("type") or ""),
        entities=text_list(row, "entities"),
        options={letter: str(text) for letter, text in options.items()} if options else None,
        originals={mark: text_list(originals, mark) for mark in originals} if originals else None,
        answerable=flag(row, "answerable", True),
        evidence=text_list(row, "evidence"),
        aliases=tuple(group for group in answers if len(group) > 1),
    )


def _answers(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What stands under `answers`, else under `answer`; either may be one or several."""
    return words_of(row, "answers") or words_of(row, "answer")


def _rows(path: Path, problems: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
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
            yield number, row


def _distinct(questions: Sequence[Question], problems: list[str]) -> list[Question]:
    """Records are kept by id, so two questions may not share one."""
    own = distinct([question.id for question in questions])
    found = []
    for question, name in zip(questions, own, strict=True):
        if name != question.id:
            problems.append(f"question {question.id!r}: its id is taken; counted on its own")
        found.append(replace(question, id=name))
    return found


def distinct(ids: Sequence[str]) -> list[str]:
    """Every id once: the second of a kind has `~2` behind it."""
    seen: Counter[str] = Counter()
    found = []
    for name in ids:
        seen[name] += 1
        found.append(f"{name}~{seen[name]}" if seen[name] > 1 else name)
    return found


def _doubts(questions: Sequence[Question], corpus: Path | None) -> list[str]:
    """Gold that no corpus row has, and questions without any gold: they stay, and are named."""
    known = _ids(corpus) if corpus else None
    found = []
    for question in questions:
        lost = [doc for doc in question.gold if known is not None and doc not in known]
        if lost:
            found.append(f"question {question.id!r}: gold {lost[0]!r} is not in {CORPUS}")
        if not (question.answers or question.gold or question.originals) and question.answerable:
            found.append(f"question {question.id!r}: neither answer nor gold; nothing to score")
    return found


def _ids(corpus: Path) -> set[str]:
    found = set()
    with corpus.open(encoding="utf-8-sig", errors="replace") as file:
        for line in file:
            try:
                row = json.loads(line)
            except ValueError:
                continue  # the reader names it when the corpus is taken in
            if isinstance(row, dict) and "id" in row:
                found.add(str(row["id"]))
    return found
