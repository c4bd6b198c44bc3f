"""Read rows of published data sets: JSON, JSON lines, Parquet and plain text."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from clew.errors import ConfigError, InputError

Row = Mapping[str, Any]


@dataclass
class ConvertedDataset:
    """A data set in the folder layout, and the problems of its conversion."""

    corpus: list[dict[str, Any]] = field(default_factory=list)
    questions: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    graphs: list[Path] = field(default_factory=list)
    """Triple files of the graph that the questions are about."""
    _ids: dict[tuple[str, str], int] = field(default_factory=dict, repr=False)

    def add_passage(self, title: str, text: str) -> int:
        """Add a passage unless it is there, by title and text; return its corpus id."""
        key = (title.strip(), text.strip())
        if key not in self._ids:
            self._ids[key] = len(self.corpus)
            self.corpus.append({"id": self._ids[key], "title": key[0], "text": key[1]})
        return self._ids[key]

    def add_problem(self, where: str, why: str) -> None:
        """Report a row that cannot be converted."""
        self.problems.append(f"{where}: {why}")


Loader = Callable[[Sequence[Path], ConvertedDataset], None]


def for_each_row(
    paths: Sequence[Path], found: ConvertedDataset, take: Callable[[Row, str], None], key: str = ""
) -> None:
    """Call `take` for every row; rows that lack a required field are reported and skipped."""
    places = relative_paths(paths)
    for path in paths:
        for number, row in _read_objects(path, places[path], found, key):
            where = f"{places[path]}:{number}"
            try:
                take(row, where)
            except KeyError as error:
                found.add_problem(where, f"no {error}")
            except (TypeError, ValueError, AttributeError, IndexError) as error:
                found.add_problem(where, f"not as published ({error})")


def relative_paths(paths: Sequence[Path]) -> dict[Path, str]:
    """Return each file's path relative to the common folder of all.

    Data sets have files of the same name in several folders (`1-hop/qa_dev.txt`, `2-hop/…`).
    """
    if not paths:
        return {}
    root = os.path.commonpath([path.resolve().parent for path in paths])
    return {path: path.resolve().relative_to(root).as_posix() for path in paths}


def _read_objects(
    path: Path, place: str, found: ConvertedDataset, key: str
) -> Iterator[tuple[int, Row]]:
    """Yield (number, object) of a file; `key` names the list inside a JSON object."""
    if path.suffix == ".parquet":
        rows: Iterator[tuple[int, Any]] = enumerate(_read_parquet(path), start=1)
    else:
        rows = _read_json_rows(path, place, found, key)
    for number, row in rows:
        if isinstance(row, dict):
            yield number, row
        else:
            found.add_problem(f"{place}:{number}", "is not an object")


def _read_json_rows(
    path: Path, place: str, found: ConvertedDataset, key: str
) -> Iterator[tuple[int, Any]]:
    text = _read_text(path)
    if path.suffix == ".json":
        try:
            whole = json.loads(text)
        except ValueError:
            whole = None  # some data sets publish JSON lines as `.json`
        if isinstance(whole, dict):
            whole = whole.get(key) if key in whole else [whole]
        if isinstance(whole, list):
            yield from enumerate(whole, start=1)
            return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except ValueError as error:
                found.add_problem(f"{place}:{number}", f"not JSON ({error})")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of a plain text file, without empty lines."""
    for number, line in enumerate(_read_text(path).split("\n"), start=1):
        if line.strip():
            yield number, line


def read_json_list(path: Path) -> list[Any]:
    """Read a file that is one JSON list; raise InputError if it is anything else."""
    try:
        whole = json.loads(_read_text(path))
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}); check the file") from error
    if not isinstance(whole, list):
        raise InputError(f"{path} is not a JSON list; check the file")
    return whole


def _read_text(path: Path) -> str:
    """Read a file with universal newlines; other separators (U+2028) do not end a line."""
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path") from error


def _read_parquet(path: Path) -> list[dict[str, Any]]:
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise ConfigError(
            f"{path.name} is Parquet; `pip install pyarrow`, or convert it to JSON lines first"
        ) from None
    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


def as_text_list(value: Any) -> list[str]:
    """Convert None, one value or a list to a list of texts."""
    if value is None:
        return []
    return [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]
