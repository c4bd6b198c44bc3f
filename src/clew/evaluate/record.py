"""Records of one recipe on one question, and their log, from which a run can be resumed."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from clew.evaluate.datasets import to_corpus_id
from clew.types import Usage

_MAX_PASSAGE_CHARS = 400  # characters of a passage in a record
_MAX_PASSAGES = 5  # passages stored with text; the others by name only


@dataclass(frozen=True)
class Record:
    """One question under one recipe."""

    recipe: str
    question: str
    """The question's id."""
    values: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    usage: Usage = Usage()
    found: tuple[str, ...] = ()
    """Documents of the passages found, best first."""
    ranked: tuple[str, ...] = ()
    """Candidate answers, best first, for graph questions."""
    answer: str = ""
    short: str = ""
    verdict: str = ""
    signals: Mapping[str, float] = field(default_factory=dict)
    """What the confidence of the answer was computed from."""
    evidence: tuple[Mapping[str, Any], ...] = ()
    trace: tuple[Mapping[str, Any], ...] = ()
    unscored: Mapping[str, str] = field(default_factory=dict)
    """Metric → why it has no value, so that no denominator shrinks silently."""
    judge: str = ""
    """Name of the judge model, if any."""
    skipped: tuple[str, ...] = ()
    """Metrics that this question has no gold for."""
    error: str = ""
    key: str = ""
    """Hash of everything that decides the result."""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a JSON object for the run log."""
        return asdict(self)


_FIELDS = {one.name for one in fields(Record)}
_TUPLE_FIELDS = ("found", "ranked", "evidence", "trace", "skipped")


def parse_record(row: Mapping[str, Any]) -> Record:
    """Convert a row of a run log to a record; unknown fields are ignored."""
    values = {name: value for name, value in row.items() if name in _FIELDS}
    for name in _TUPLE_FIELDS:
        if name in values:
            values[name] = tuple(values[name] or ())
    if isinstance(values.get("usage"), Mapping):
        usage = {one.name for one in fields(Usage)} & values["usage"].keys()
        values["usage"] = Usage(**{name: values["usage"][name] for name in usage})
    return Record(**values)


def trim_passages(passages: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    """Return the best passages, shortened for a record."""
    return tuple(
        {
            "doc": to_corpus_id(passage.doc),
            "title": passage.title,
            "score": round(float(passage.score), 4),
            "text": passage.text[:_MAX_PASSAGE_CHARS],
        }
        for passage in passages[:_MAX_PASSAGES]
    )


def trim_trace(trace: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    """Return the trace steps, shortened for a record."""
    return tuple(
        {
            "step": str(step.step)[:200],
            "output": str(step.output)[:200],
            "ms": round(1000 * step.seconds, 2),
        }
        for step in trace
    )


_COMPLETE_LINE = '{"complete": true}'


class RunLog:
    """Appends records; those of an interrupted earlier run are in `known`, by key."""

    def __init__(self, path: Path | None, *, fresh: bool = False) -> None:
        """Open the log; records of a complete run are ignored, since it is measured again."""
        self.path = path
        self.known: dict[str, Record] = {}
        self._file: TextIO | None = None
        if path is None:
            return
        records, complete = read_run_log(path)
        if not complete and not fresh:
            self.known = {record.key: record for record in records if record.key}
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written to a temporary file and renamed: a partial last line never corrupts the next
        # record, and a kill in between loses nothing.
        temporary = path.with_name(path.name + ".new")
        self._file = temporary.open("w", encoding="utf-8")
        self.write(self.known.values())
        temporary.replace(path)

    def write(self, records: Iterable[Record]) -> None:
        """Append records and flush, so that a killed process loses none."""
        if self._file is not None:
            for record in records:
                self._file.write(json.dumps(record.to_dict(), ensure_ascii=False) + "\n")
            self._file.flush()

    def finish(self) -> None:
        """Mark the run as complete, so that the next one starts from the beginning."""
        if self._file is not None:
            self._file.write(_COMPLETE_LINE + "\n")
            self._file.flush()

    def __enter__(self) -> "RunLog":
        """Use as a context manager."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def read_run_log(path: Path) -> tuple[list[Record], bool]:
    """Return the records of a log and whether its run is complete; broken lines are skipped."""
    found: list[Record] = []
    complete = False
    if not path.is_file():
        return found, complete
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                row = json.loads(line)
            except ValueError:
                continue  # cut off by a kill: its question is asked again
            if isinstance(row, dict) and "recipe" in row and "question" in row:
                found.append(parse_record(row))
            elif isinstance(row, dict) and row.get("complete"):
                complete = True
    return found, complete
