"""AnonyRAG-style data: every name of a corpus and its questions replaced by a mark, consistently.

`Ilse Brandvik` is `[PERSON#7]` wherever she is named, so that what a model remembers from its
training cannot help it. A key file leads back to the very letters of the originals.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.errors import InputError
from clew.evaluate.anonymous_tasks import choices, reversions
from clew.evaluate.datasets import CORPUS, QUESTIONS
from clew.evaluate.kinds import UNCLEAR, kind_of
from clew.evaluate.marks import MARK, Names, hide, show
from clew.extract.offline import Offline
from clew.names import name_key, plain_title
from clew.text import clean, digest
from clew.types import LITERALS, Chunk, Document

KEY = "key.json"
_CLAUSE = re.compile(r",\s+[a-z]")  # "Demon Dice, first sold as …" is a sentence, not a name
_TEXTS = {
    CORPUS: ("title", "text"),
    QUESTIONS: ("question", "answer", "answers", "aliases", "entities"),
}
_KEPT = {CORPUS: ("id",), QUESTIONS: ("id", "type", "gold", "hops", "answerable")}


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
    """Questions of which no name was found: they are as they were."""


async def names_of(corpus: Sequence[Mapping[str, Any]]) -> Names:
    """Every name that the rules find in the corpus, and the short forms of one name only."""
    seen: dict[str, tuple[str, str]] = {}
    short: dict[str, set[str]] = {}
    extract = Offline()
    for row in corpus:
        title, text = clean(str(row.get("title", ""))), clean(str(row.get("text", "")))
        document = Document(digest(title, text), text, title, (str(row.get("id", "")),))
        chunk = Chunk(digest(document.id), document.id, 0, len(text), text, title)
        [found] = await extract(document, [chunk])
        for entity in found.entities:
            name = plain_title(entity.name)
            key = name_key(name)
            if entity.type in LITERALS or not key or _CLAUSE.search(name):
                continue
            known = seen.get(key)
            if known is None or known[1] == UNCLEAR:
                seen[key] = (known[0] if known else name, kind_of(name, text, entity.about))
            for said in (entity.name, *(text[start:end] for start, end in entity.spans)):
                short.setdefault(name_key(said), set()).add(key)
    names = Names()
    marks = {key: names.add(name, kind) for key, (name, kind) in seen.items()}
    for form, keys in short.items():
        if len(keys) == 1 and form:
            names.marks.setdefault(form, marks[next(iter(keys))])
    return names


async def anonymise(folder: Path, into: Path, seed: int = 0) -> Anonymised:
    """Write the anonymised corpus, questions, both tasks and the key file."""
    corpus, questions = _rows(folder / CORPUS), _rows(folder / QUESTIONS)
    names = await names_of(corpus)
    key: dict[str, Any] = {"marks": names.told, CORPUS: {}, QUESTIONS: {}}
    hidden = {
        CORPUS: [_hidden(row, CORPUS, names, key) for row in corpus],
        QUESTIONS: [_hidden(row, QUESTIONS, names, key) for row in questions],
    }
    picked, undone = choices(hidden[QUESTIONS], names, seed), reversions(hidden[QUESTIONS], names)
    _save(into, hidden | {"choice.jsonl": picked, "reversion.jsonl": undone}, key)
    left = sum(not MARK.search(row["question"]) for row in hidden[QUESTIONS])
    return Anonymised(
        *(into, len(corpus), len(questions), len(names.told), len(picked), len(undone)), left=left
    )


def _save(into: Path, files: Mapping[str, Sequence[Mapping[str, Any]]], key: object) -> None:
    into.mkdir(parents=True, exist_ok=True)
    for name, rows in files.items():
        _write(into / name, rows)
    (into / KEY).write_text(json.dumps(key, ensure_ascii=False), encoding="utf-8")


def restore(folder: Path, into: Path) -> int:
    """Undo: write corpus and questions with the names they had; say how many rows there are."""
    path = folder / KEY
    if not path.is_file():
        raise InputError(f"{folder} has no {KEY}; only `clew anonymise` makes folders to restore")
    key = json.loads(path.read_text(encoding="utf-8"))
    into.mkdir(parents=True, exist_ok=True)
    total = 0
    for name in (CORPUS, QUESTIONS):
        rows = [_shown(row, key[name].get(str(row["id"]), {})) for row in _rows(folder / name)]
        _write(into / name, rows)
        total += len(rows)
    return total


def _hidden(row: Mapping[str, Any], name: str, names: Names, key: dict[str, Any]) -> dict[str, Any]:
    """Only known fields are taken over: anything else could give the names away."""
    found: dict[str, Any] = {part: row[part] for part in _KEPT[name] if part in row}
    told: dict[str, Any] = {}
    for part in _TEXTS[name]:
        value = row.get(part)
        if isinstance(value, str):
            found[part], told[part] = hide(value, names)
        elif isinstance(value, list):
            pairs = [hide(str(one), names) for one in value]
            found[part], told[part] = [p[0] for p in pairs], [p[1] for p in pairs]
    key[name][str(found["id"])] = told
    return found


def _shown(row: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(row)
    for part, surfaces in told.items():
        if isinstance(row[part], list):
            found[part] = [show(o, s) for o, s in zip(row[part], surfaces, strict=True)]
        else:
            found[part] = show(row[part], surfaces)
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise InputError(f"there is no {path}; `clew anonymise` takes a folder with both files")
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InputError(f"{path.name}:{number} is not JSON ({error}); mend it") from error
        found.append({"id": number} | row)
    return found


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
