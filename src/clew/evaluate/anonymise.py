"""Anonymise a data set as AnonyRAG does: each name becomes a placeholder, consistently.

`Ilse Brandvik` is `[PERSON#7]` wherever she is named, so that a model cannot answer from what it
memorised in training. A key file restores the original text exactly.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.errors import InputError
from clew.evaluate.anonymous_names import names_of
from clew.evaluate.anonymous_tasks import choices, reversions
from clew.evaluate.datasets import CORPUS, QUESTIONS
from clew.evaluate.marks import MARK, Names, hide, show

KEY = "key.json"
_TEXTS = {
    CORPUS: ("title", "text"),
    QUESTIONS: ("question", "answer", "answers", "aliases", "entities"),
}
_KEPT = {CORPUS: ("id",), QUESTIONS: ("id", "type", "gold", "hops", "answerable")}
Told = dict[str, Any]
"""Field of a row → the originals of its placeholders, in order."""


@dataclass(frozen=True)
class Anonymised:
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


async def anonymise(folder: Path, into: Path, seed: int = 0) -> Anonymised:
    """Write the anonymised corpus, the questions, both AnonyRAG tasks and the key file."""
    _elsewhere(folder, into)
    problems: list[str] = []
    rows = {name: _rows(folder / name, problems) for name in (CORPUS, QUESTIONS)}
    names = await names_of(rows[CORPUS], [str(row["question"]) for row in rows[QUESTIONS]])
    key: dict[str, Any] = {"marks": names.told}
    anonymised: dict[str, list[dict[str, Any]]] = {}
    for name, read in rows.items():
        originals: dict[str, list[Told]] = defaultdict(list)
        anonymised[name] = [_hidden(row, name, names, originals) for row in read]
        key[name] = originals
    questions = anonymised[QUESTIONS]
    choice, reversion = choices(questions, names, seed), reversions(questions, names)
    _save(into, anonymised | {"choice.jsonl": choice, "reversion.jsonl": reversion}, key)
    left = sum(not MARK.search(row["question"]) for row in questions)
    sizes = (len(rows[CORPUS]), len(questions), len(names.told), len(choice), len(reversion), left)
    return Anonymised(into, *sizes, problems=tuple(problems))


def _elsewhere(folder: Path, into: Path) -> None:
    if into.resolve() == folder.resolve():
        raise InputError(f"--out is {folder} itself, whose files would be lost; name another")


def _save(into: Path, files: Mapping[str, Sequence[Mapping[str, Any]]], key: object) -> None:
    into.mkdir(parents=True, exist_ok=True)
    for name, rows in files.items():
        _write(into / name, rows)
    (into / KEY).write_text(json.dumps(key), encoding="utf-8")


def restore(folder: Path, into: Path) -> int:
    """Write corpus and questions with their original names; return the number of rows."""
    _elsewhere(folder, into)
    key = _key(folder)
    problems: list[str] = []
    restored: dict[str, list[dict[str, Any]]] = {}
    for name in (CORPUS, QUESTIONS):
        rows = _rows(folder / name, problems)
        if problems:
            raise InputError(f"{problems[0]}; a row that is damaged cannot be restored")
        restored[name] = _shown_rows(rows, key[name], name)
    into.mkdir(parents=True, exist_ok=True)
    for name, rows in restored.items():
        _write(into / name, rows)
    return sum(map(len, restored.values()))


def _key(folder: Path) -> dict[str, dict[str, list[Told]]]:
    path = folder / KEY
    if not path.is_file():
        raise InputError(f"{folder} has no {KEY}; only `clew anonymise` makes folders to restore")
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        # A key of an earlier version has one entry for an id, not a list of them.
        return {
            name: {i: one if isinstance(one, list) else [one] for i, one in read[name].items()}
            for name in (CORPUS, QUESTIONS)
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} cannot be read ({error}); anonymise the folder again") from error


def _shown_rows(
    rows: Sequence[Mapping[str, Any]], key: Mapping[str, Sequence[Told]], name: str
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
                f"{name}: {sizes[doc]} rows have the id {doc!r}, the key knows {len(kept)}; "
                "restore the files as they were written"
            )
        found.append(_shown(row, kept[used[doc]], f"{name}, row {doc!r}"))
        used[doc] += 1
    return found


def _hidden(
    row: Mapping[str, Any], name: str, names: Names, key: dict[str, list[Told]]
) -> dict[str, Any]:
    """Anonymise one row; only known fields are copied, since others could reveal names."""
    anonymised: dict[str, Any] = {field: row[field] for field in _KEPT[name] if field in row}
    originals: Told = {}
    for field in _TEXTS[name]:
        value = row.get(field)
        if isinstance(value, str | list):
            anonymised[field], originals[field] = _marked(value, names)
        elif isinstance(value, int | float):
            anonymised[field] = value  # numbers are not names
    key[str(anonymised["id"])].append(originals)
    return anonymised


def _marked(value: Any, names: Names) -> tuple[Any, Any]:
    """Replace names in a text or a nested list; return it and the originals, nested alike."""
    if not isinstance(value, list):
        return hide(str(value), names)
    pairs = [_marked(one, names) for one in value]
    return [text for text, _ in pairs], [surfaces for _, surfaces in pairs]


def _shown(row: Mapping[str, Any], originals: Told, where: str) -> dict[str, Any]:
    restored = dict(row)
    for field, surfaces in originals.items():
        try:
            restored[field] = _unmarked(row.get(field), surfaces)
        except ValueError:
            raise InputError(
                f"{where}: its {field} has not the marks that the key knows; "
                "restore the files as they were written"
            ) from None
    return restored


def _unmarked(value: Any, surfaces: Any) -> Any:
    """Restore a text or a nested list; raise ValueError if placeholders were added or lost."""
    if isinstance(value, list):
        return [_unmarked(one, known) for one, known in zip(value, surfaces, strict=True)]
    if not isinstance(value, str) or len(MARK.findall(value)) != len(surfaces):
        raise ValueError
    return show(value, surfaces)


def _rows(path: Path, problems: list[str]) -> list[dict[str, Any]]:
    """Read the rows of a JSONL file; unreadable ones are added to `problems`."""
    if not path.is_file():
        raise InputError(f"there is no {path}; `clew anonymise` takes a folder with both files")
    found = []
    # Split at line feeds only: a JSON string may contain other line separators (U+2028).
    for number, raw in enumerate(path.read_bytes().split(b"\n"), start=1):
        where = f"{path.name}:{number}"
        if not raw.strip():
            continue
        try:
            row = json.loads(_decoded(raw, where, problems))
        except ValueError as error:
            problems.append(f"{where}: not JSON ({error})")
            continue
        if not isinstance(row, dict):
            problems.append(f"{where}: is no object")
        elif path.name == QUESTIONS and not isinstance(row.get("question"), str):
            problems.append(f"{where}: no 'question'")
        else:
            found.append({"id": number} | row)
    return found


def _decoded(raw: bytes, where: str, problems: list[str]) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        problems.append(f"{where}: not UTF-8; what cannot be read is \ufffd")
        return raw.decode("utf-8-sig", errors="replace")


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_bytes(b"".join(_line(row) for row in rows))


def _line(row: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(row, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate, which JSON can escape and UTF-8 cannot encode
        return json.dumps(row).encode() + b"\n"
