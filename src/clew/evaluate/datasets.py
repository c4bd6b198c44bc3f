"""Read data set folders (`corpus.jsonl`, `questions.jsonl`): validated questions and bad rows."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clew.errors import InputError

Row = Mapping[str, Any]


def format_options(question: str, options: Mapping[str, str]) -> str:
    """Return the question followed by its options, one per line."""
    return "\n".join([question, *(f"{letter}. {text}" for letter, text in options.items())])


def read_text_list(row: Row, name: str) -> tuple[str, ...]:
    """Read a text, or a list of texts and numbers, as texts; raise ValueError otherwise."""
    value = row.get(name)
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,) if value else ()
    if isinstance(value, list | tuple):
        odd = [_describe_type(one) for one in value if not _is_text_or_number(one)]
        if odd:
            raise ValueError(f"{name!r} has {odd[0]} in its list, not only texts")
        return tuple(map(str, value))
    raise ValueError(f"{name!r} is {_describe_type(value)}, not a text or a list of texts")


def read_answer_list(row: Row, name: str) -> tuple[str, ...]:
    """Like `read_text_list`, but also accept a single number and keep an empty text."""
    value = row.get(name)
    return (str(value),) if _is_text_or_number(value) else read_text_list(row, name)


def group_aliases(row: Row, name: str, answers: Sequence[str]) -> list[tuple[str, ...]]:
    """Group answers with their aliases: a list per answer, or one list for a single answer.

    With several answers and one flat list the owner is unknown: each name is its own group.
    """
    value = row.get(name)
    if isinstance(value, list | tuple) and any(isinstance(one, list | tuple) for one in value):
        lists = [read_text_list({name: one}, name) for one in value]
        if len(lists) != len(answers):
            raise ValueError(f"{name!r} has {len(lists)} lists for {len(answers)} answers")
    else:
        names = read_text_list(row, name)
        if len(answers) != 1:
            return [(one,) for one in [*answers, *names] if one.strip()]
        lists = [names]
    found = [
        tuple(filter(str.strip, [answer, *more]))
        for answer, more in zip(answers, lists, strict=True)
    ]
    return [tuple(dict.fromkeys(group)) for group in found if group]


def read_mapping(row: Row, name: str) -> dict[str, Any]:
    """Read an object; a missing one is empty."""
    value = row.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"{name!r} is {_describe_type(value)}, not an object")
    return {str(key): one for key, one in (value or {}).items()}


def read_flag(row: Row, name: str, default: bool) -> bool:
    """Read a JSON boolean; texts such as "false" are ambiguous and raise ValueError."""
    value = row.get(name)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{name!r} is {_describe_type(value)}, not true or false")
    return default if value is None else value


def _is_text_or_number(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _describe_type(value: object) -> str:
    kinds = {str: "a text", list: "a list", dict: "an object", bool: "true or false"}
    return "null" if value is None else kinds.get(type(value), f"the number {value}")


QUESTIONS_FILE, CORPUS_FILE = "questions.jsonl", "corpus.jsonl"


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its gold answers and gold evidence."""

    id: str
    text: str
    answers: tuple[str, ...] = ()
    """Every accepted answer, including aliases of the same thing."""
    gold: tuple[str, ...] = ()
    type: str = ""
    entities: tuple[str, ...] = ()
    """Topic entities of a graph question, where the data set gives them."""
    options: Mapping[str, str] | None = None
    """Letter → text, for multiple choice."""
    originals: Mapping[str, Sequence[str]] | None = None
    """Placeholder → the names it may stand for, for anonymity reversion."""
    answerable: bool = True
    evidence: tuple[str, ...] = ()
    """Gold evidence as text, where the data set has it."""
    aliases: tuple[tuple[str, ...], ...] = ()
    """Groups of answers that are names of one thing, for things with several names."""
    statements: tuple[str, ...] = ()
    """What a summary must say, one sentence each."""

    def answer_groups(self) -> tuple[tuple[str, ...], ...]:
        """Return the distinct answers, each with all its names."""
        named = {name for group in self.aliases for name in group}
        return (*self.aliases, *((answer,) for answer in self.answers if answer not in named))

    def prompt_text(self) -> str:
        """Return the question text followed by its options, one per line."""
        return format_options(self.text, self.options) if self.options else self.text


@dataclass(frozen=True)
class Dataset:
    """The questions of a folder and, if present, its corpus file."""

    name: str
    questions: tuple[Question, ...]
    corpus: Path | None
    problems: tuple[str, ...] = ()
    """Problems of single rows, one sentence each; unreadable rows are left out."""
    unread: int = 0
    """Number of rows that were left out."""


def load_dataset(path: Path) -> Dataset:
    """Read a data set folder, or one file of questions."""
    folder, questions = (path.parent, path) if path.is_file() else (path, path / QUESTIONS_FILE)
    if not questions.is_file():
        raise InputError(
            f"{path} has no {QUESTIONS_FILE}; a dataset folder has that and {CORPUS_FILE}; "
            "`clew dataset convert` writes one"
        )
    problems: list[str] = []
    doubts: list[str] = []
    found = list(_parse_questions(questions, problems, doubts))
    unread = len(problems)
    problems += doubts
    corpus = folder / CORPUS_FILE if (folder / CORPUS_FILE).is_file() else None
    found = _make_ids_unique(found, problems)
    problems += _check_gold(found, corpus)
    name = path.stem if path.is_file() else folder.resolve().name
    return Dataset(name, tuple(found), corpus, tuple(problems), unread)


def _parse_questions(path: Path, problems: list[str], doubts: list[str]) -> Iterator[Question]:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for number, row in read_json_lines(file, path.name, problems):
            if not isinstance(row.get("question"), str):
                problems.append(f"{path.name}:{number}: no 'question'")
                continue
            try:
                question = parse_question(row, number)
            except (TypeError, ValueError) as error:
                problems.append(f"{path.name}:{number}: cannot be read ({error})")
                continue
            empty = sum(not one.strip() for one in _read_answers(row))
            if empty and question.answerable:
                doubts.append(f"{path.name}:{number}: {empty} empty answers were ignored")
            yield question


def parse_question(row: Mapping[str, Any], number: int) -> Question:
    """Convert one row of `questions.jsonl` to a question."""
    answers = group_aliases(row, "aliases", _read_answers(row))
    options, originals = read_mapping(row, "options"), read_mapping(row, "originals")
    return Question(
        id=str(number if row.get("id") is None else row["id"]),
        text=str(row["question"]),
        answers=tuple(dict.fromkeys(name for group in answers for name in group)),
        gold=read_text_list(row, "gold"),
        type=str(row.get("type") or ""),
        entities=read_text_list(row, "entities"),
        options={letter: str(text) for letter, text in options.items()} if options else None,
        originals={mark: read_text_list(originals, mark) for mark in originals}
        if originals
        else None,
        answerable=read_flag(row, "answerable", not _says_none(row)),
        evidence=read_text_list(row, "evidence"),
        aliases=tuple(group for group in answers if len(group) > 1),
        statements=read_text_list(row, "statements"),
    )


def _says_none(row: Row) -> bool:
    """Whether a row says that there is no answer: an empty one, and no other gold."""
    given = [row[name] for name in ("answer", "answers") if row.get(name) is not None]
    gold = ("gold", "originals", "evidence", "statements", "options")
    said = any(one.strip() for one in _read_answers(row))
    return bool(given) and not said and not any(row.get(name) for name in gold)


def _read_answers(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the field `answers`, else `answer`; either may be one text or a list."""
    return read_answer_list(row, "answers") or read_answer_list(row, "answer")


def read_json_lines(
    lines: Iterable[str], name: str, problems: list[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number, object) of the lines; invalid ones of the file `name` go to `problems`."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            problems.append(f"{name}:{number}: not JSON ({error})")
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            problems.append(f"{name}:{number}: is not an object")


def write_json_lines(path: Path, rows: Iterable[Row]) -> None:
    """Write one JSON object per line."""
    path.write_bytes(b"".join(_encode_row(row) for row in rows))


def _encode_row(row: Row) -> bytes:
    try:
        return json.dumps(row, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate, which JSON can escape and UTF-8 cannot encode
        return json.dumps(row).encode() + b"\n"


def _make_ids_unique(questions: Sequence[Question], problems: list[str]) -> list[Question]:
    """Give every question its own id, since records are stored by id."""
    unique = deduplicate_ids([question.id for question in questions])
    found = []
    for question, name in zip(questions, unique, strict=True):
        if name != question.id:
            problems.append(
                f"question {question.id!r}: duplicate id; counted as a separate question"
            )
        found.append(replace(question, id=name))
    return found


def deduplicate_ids(ids: Sequence[str]) -> list[str]:
    """Append `~2`, `~3` … to repeated ids."""
    seen: Counter[str] = Counter()
    found = []
    for name in ids:
        seen[name] += 1
        found.append(f"{name}~{seen[name]}" if seen[name] > 1 else name)
    return found


def to_corpus_id(name: str) -> str:
    """Return the id of a document in its corpus, also if `clew add corpus.jsonl` named it."""
    folder, mark, row = name.rpartition(f"{CORPUS_FILE}#")
    return row if mark and (not folder or folder.endswith("/")) else name


def _check_gold(questions: Sequence[Question], corpus: Path | None) -> list[str]:
    """Report gold ids missing from the corpus and questions without gold; both are kept."""
    known = _read_corpus_ids(corpus) if corpus else None
    found = []
    for question in questions:
        missing = [doc for doc in question.gold if known is not None and doc not in known]
        if missing:
            found.append(f"question {question.id!r}: gold {missing[0]!r} is not in {CORPUS_FILE}")
        if not (question.answers or question.gold or question.originals) and question.answerable:
            found.append(
                f"question {question.id!r}: has neither answer nor gold, so nothing is scored"
            )
    return found


def _read_corpus_ids(corpus: Path) -> set[str]:
    with corpus.open(encoding="utf-8-sig", errors="replace") as file:
        # Invalid lines are reported by the reader when the corpus is added.
        return {str(row["id"]) for _, row in read_json_lines(file, "", []) if "id" in row}
