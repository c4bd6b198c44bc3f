"""AnonyRAG-style data: every name of a corpus and its questions replaced by a mark, consistently.

`Ilse Brandvik` is `[PERSON#7]` wherever she is named, so that what a model remembers from its
training cannot help it. A key file leads back to the very letters of the originals.
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
"""Part of a row → what its marks stand for, in order."""


@dataclass(frozen=True)
class Anonymised:
    """What was written."""

    folder: Path
    passages: int
    questions: int
    names: int
    choice: int
    reversion: int
    left: int
    """Questions in which no name was found: they are as they were."""
    problems: tuple[str, ...] = ()
    """Rows that could not be read, or not to the letter, one sentence each."""


async def anonymise(folder: Path, into: Path, seed: int = 0) -> Anonymised:
    """Write the anonymised corpus, questions, both tasks and the key file."""
    _elsewhere(folder, into)
    problems: list[str] = []
    rows = {name: _rows(folder / name, problems) for name in (CORPUS, QUESTIONS)}
    names = await names_of(rows[CORPUS], [str(row["question"]) for row in rows[QUESTIONS]])
    key: dict[str, Any] = {"marks": names.told}
    hidden: dict[str, list[dict[str, Any]]] = {}
    for name, read in rows.items():
        told: dict[str, list[Told]] = defaultdict(list)
        hidden[name] = [_hidden(row, name, names, told) for row in read]
        key[name] = told
    asked = hidden[QUESTIONS]
    picked, undone = choices(asked, names, seed), reversions(asked, names)
    _save(into, hidden | {"choice.jsonl": picked, "reversion.jsonl": undone}, key)
    left = sum(not MARK.search(row["question"]) for row in asked)
    sizes = (len(rows[CORPUS]), len(asked), len(names.told), len(picked), len(undone), left)
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
    """Undo: write corpus and questions with the names they had; say how many rows there are."""
    _elsewhere(folder, into)
    key = _key(folder)
    problems: list[str] = []
    shown: dict[str, list[dict[str, Any]]] = {}
    for name in (CORPUS, QUESTIONS):
        rows = _rows(folder / name, problems)
        if problems:
            raise InputError(f"{problems[0]}; a row that is damaged cannot be restored")
        shown[name] = _shown_rows(rows, key[name], name)
    into.mkdir(parents=True, exist_ok=True)
    for name, rows in shown.items():
        _write(into / name, rows)
    return sum(map(len, shown.values()))


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
    """Rows with their names; those that share an id are told apart by their order alone."""
    held = Counter(str(row["id"]) for row in rows)
    met: Counter[str] = Counter()
    found = []
    for row in rows:
        doc = str(row["id"])
        told = key.get(doc, ())
        if not told or (len(told) > 1 and len(told) != held[doc]) or len(told) < held[doc]:
            raise InputError(
                f"{name}: {held[doc]} rows have the id {doc!r}, the key knows {len(told)}; "
                "restore the files as they were written"
            )
        found.append(_shown(row, told[met[doc]], f"{name}, row {doc!r}"))
        met[doc] += 1
    return found


def _hidden(
    row: Mapping[str, Any], name: str, names: Names, key: dict[str, list[Told]]
) -> dict[str, Any]:
    """Only known fields are taken over: anything else could give the names away."""
    found: dict[str, Any] = {part: row[part] for part in _KEPT[name] if part in row}
    told: Told = {}
    for part in _TEXTS[name]:
        value = row.get(part)
        if isinstance(value, str | list):
            found[part], told[part] = _marked(value, names)
        elif isinstance(value, int | float):
            found[part] = value  # a number is no name
    key[str(found["id"])].append(told)
    return found


def _marked(value: Any, names: Names) -> tuple[Any, Any]:
    """A text, or a list of texts and lists, with marks; and what they stand for in its shape."""
    if not isinstance(value, list):
        return hide(str(value), names)
    pairs = [_marked(one, names) for one in value]
    return [text for text, _ in pairs], [surfaces for _, surfaces in pairs]


def _shown(row: Mapping[str, Any], told: Told, where: str) -> dict[str, Any]:
    found = dict(row)
    for part, surfaces in told.items():
        try:
            found[part] = _unmarked(row.get(part), surfaces)
        except ValueError:
            raise InputError(
                f"{where}: its {part} has not the marks that the key knows; "
                "restore the files as they were written"
            ) from None
    return found


def _unmarked(value: Any, surfaces: Any) -> Any:
    """The text or texts as they were; refused when marks were added or lost."""
    if isinstance(value, list):
        return [_unmarked(one, known) for one, known in zip(value, surfaces, strict=True)]
    if not isinstance(value, str) or len(MARK.findall(value)) != len(surfaces):
        raise ValueError
    return show(value, surfaces)


def _rows(path: Path, problems: list[str]) -> list[dict[str, Any]]:
    """The rows that can be read; the others are named."""
    if not path.is_file():
        raise InputError(f"there is no {path}; `clew anonymise` takes a folder with both files")
    found = []
    # By line feed alone: a JSON string may hold other signs that end a line.
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
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can hold and UTF-8 cannot
        return json.dumps(row).encode() + b"\n"
