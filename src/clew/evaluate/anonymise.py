"""Anonymise a data set as AnonyRAG does: each name becomes a placeholder.

`Ilse Brandvik` is `[PERSON#7]` wherever she is named, so that a model cannot answer from what it
memorised in training. A key file restores the original text exactly. AnonyRAG's two tasks are
made of it: multiple choice of placeholders, and anonymity reversion.
"""

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.errors import InputError
from clew.evaluate.datasets import CORPUS_FILE, QUESTIONS_FILE, read_json_lines, write_json_lines
from clew.evaluate.placeholders import (
    PLACEHOLDER,
    PlaceholderMap,
    collect_names,
    insert_placeholders,
    restore_names,
)

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


KEY_FILE = "key.json"
_TEXT_FIELDS = {
    CORPUS_FILE: ("title", "text"),
    QUESTIONS_FILE: ("question", "answer", "answers", "aliases", "entities"),
}
_COPIED_FIELDS = {
    CORPUS_FILE: ("id",),
    QUESTIONS_FILE: ("id", "type", "gold", "hops", "answerable"),
}
FieldOriginals = dict[str, Any]
"""Field of a row → the originals of its placeholders, in order."""


@dataclass(frozen=True)
class AnonymiseResult:
    """Counts of what was written."""

    folder: Path
    passages: int
    questions: int
    names: int
    choice: int
    reversion: int
    left: int
    """Questions in which no name was found; they are unchanged."""
    problems: tuple[str, ...] = ()
    """Rows that could not be read or decoded exactly, one sentence each."""


async def anonymise(folder: Path, into: Path, seed: int = 0) -> AnonymiseResult:
    """Write the anonymised corpus, the questions, both AnonyRAG tasks and the key file."""
    _check_output_folder(folder, into)
    problems: list[str] = []
    rows = {name: _read_rows(folder / name, problems) for name in (CORPUS_FILE, QUESTIONS_FILE)}
    names = await collect_names(
        rows[CORPUS_FILE], [str(row["question"]) for row in rows[QUESTIONS_FILE]]
    )
    key: dict[str, Any] = {"marks": names.entries}
    anonymised: dict[str, list[dict[str, Any]]] = {}
    for name, read in rows.items():
        originals: dict[str, list[FieldOriginals]] = defaultdict(list)
        anonymised[name] = [_anonymise_row(row, name, names, originals) for row in read]
        key[name] = originals
    questions = anonymised[QUESTIONS_FILE]
    choice = build_choice_tasks(questions, names, seed)
    reversion = build_reversion_tasks(questions, names)
    _write_files(into, anonymised | {"choice.jsonl": choice, "reversion.jsonl": reversion})
    (into / KEY_FILE).write_text(json.dumps(key), encoding="utf-8")
    left = sum(not PLACEHOLDER.search(row["question"]) for row in questions)
    return AnonymiseResult(
        *(into, len(rows[CORPUS_FILE]), len(questions), len(names.entries)),
        *(len(choice), len(reversion), left, tuple(problems)),
    )


def _check_output_folder(folder: Path, into: Path) -> None:
    if into.resolve() == folder.resolve():
        raise InputError(f"--out is {folder} itself and would overwrite it; choose another folder")


def _write_files(into: Path, files: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    into.mkdir(parents=True, exist_ok=True)
    for name, rows in files.items():
        write_json_lines(into / name, rows)


def restore(folder: Path, into: Path) -> int:
    """Write corpus and questions with their original names; return the number of rows."""
    _check_output_folder(folder, into)
    key = _read_key(folder)
    problems: list[str] = []
    restored: dict[str, list[dict[str, Any]]] = {}
    for name in (CORPUS_FILE, QUESTIONS_FILE):
        rows = _read_rows(folder / name, problems)
        if problems:
            raise InputError(f"{problems[0]}; a damaged row cannot be restored")
        restored[name] = _restore_rows(rows, key[name], name)
    _write_files(into, restored)
    return sum(map(len, restored.values()))


def _read_key(folder: Path) -> dict[str, dict[str, list[FieldOriginals]]]:
    path = folder / KEY_FILE
    if not path.is_file():
        raise InputError(
            f"{folder} has no {KEY_FILE}; only folders written by `clew anonymise` can be restored"
        )
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        # A key of an earlier version has one entry for an id, not a list of them.
        return {
            name: {i: one if isinstance(one, list) else [one] for i, one in read[name].items()}
            for name in (CORPUS_FILE, QUESTIONS_FILE)
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} cannot be read ({error}); anonymise the folder again") from error


def _restore_rows(
    rows: Sequence[Mapping[str, Any]], key: Mapping[str, Sequence[FieldOriginals]], name: str
) -> list[dict[str, Any]]:
    """Restore the names of all rows; rows that share an id are matched by their order."""
    sizes = Counter(str(row["id"]) for row in rows)
    used: Counter[str] = Counter()
    found = []
    for row in rows:
        doc = str(row["id"])
        kept = key.get(doc, ())
        if not kept or (len(kept) > 1 and len(kept) != sizes[doc]) or len(kept) < sizes[doc]:
            raise InputError(
                f"{name}: {sizes[doc]} rows have the id {doc!r}, but the key file has {len(kept)}; "
                "the files were changed after `clew anonymise` wrote them"
            )
        found.append(_restore_row(row, kept[used[doc]], f"{name}, row {doc!r}"))
        used[doc] += 1
    return found


def _anonymise_row(
    row: Mapping[str, Any], name: str, names: PlaceholderMap, key: dict[str, list[FieldOriginals]]
) -> dict[str, Any]:
    """Anonymise one row; only known fields are copied, since others could reveal names."""
    anonymised: dict[str, Any] = {
        field: row[field] for field in _COPIED_FIELDS[name] if field in row
    }
    originals: FieldOriginals = {}
    for field in _TEXT_FIELDS[name]:
        value = row.get(field)
        if isinstance(value, str | list):
            anonymised[field], originals[field] = _anonymise_value(value, names)
        elif isinstance(value, int | float):
            anonymised[field] = value  # numbers are not names
    key[str(anonymised["id"])].append(originals)
    return anonymised


def _anonymise_value(value: Any, names: PlaceholderMap) -> tuple[Any, Any]:
    """Replace names in a text or a nested list; return it and the originals, nested alike."""
    if not isinstance(value, list):
        return insert_placeholders(str(value), names)
    pairs = [_anonymise_value(one, names) for one in value]
    return [text for text, _ in pairs], [surfaces for _, surfaces in pairs]


def _restore_row(row: Mapping[str, Any], originals: FieldOriginals, where: str) -> dict[str, Any]:
    restored = dict(row)
    for field, surfaces in originals.items():
        try:
            restored[field] = _restore_value(row.get(field), surfaces)
        except ValueError:
            raise InputError(
                f"{where}: the placeholders in {field!r} do not match the key file; "
                "the file was changed after `clew anonymise` wrote it"
            ) from None
    return restored


def _restore_value(value: Any, surfaces: Any) -> Any:
    """Restore a text or a nested list; raise ValueError if placeholders were added or lost."""
    if isinstance(value, list):
        return [_restore_value(one, known) for one, known in zip(value, surfaces, strict=True)]
    if not isinstance(value, str) or len(PLACEHOLDER.findall(value)) != len(surfaces):
        raise ValueError
    return restore_names(value, surfaces)


def _read_rows(path: Path, problems: list[str]) -> list[dict[str, Any]]:
    """Read the rows of a JSONL file; unreadable ones are added to `problems`."""
    if not path.is_file():
        raise InputError(f"{path} does not exist; `clew anonymise` needs a folder with both files")
    # Split at line feeds only: a JSON string may contain other line separators (U+2028).
    lines = (
        _decode_line(raw, f"{path.name}:{number}", problems)
        for number, raw in enumerate(path.read_bytes().split(b"\n"), start=1)
    )
    found = []
    for number, row in read_json_lines(lines, path.name, problems):
        if path.name == QUESTIONS_FILE and not isinstance(row.get("question"), str):
            problems.append(f"{path.name}:{number}: no 'question'")
        else:
            found.append({"id": number} | row)
    return found


def _decode_line(raw: bytes, where: str, problems: list[str]) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        problems.append(f"{where}: not UTF-8; invalid bytes become \ufffd")
        return raw.decode("utf-8-sig", errors="replace")
