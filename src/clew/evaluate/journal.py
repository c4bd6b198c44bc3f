"""Run log: one JSON record per line, so that an interrupted run can be resumed."""

import json
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TextIO

from clew.evaluate.record import Record, parse_record

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
