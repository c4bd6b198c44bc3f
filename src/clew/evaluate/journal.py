"""Records on disk, one line each, so that an interrupted run goes on where it stopped."""

import json
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TextIO

from clew.evaluate.record import Record, record_of

_DONE = '{"complete": true}'


class Journal:
    """Appends records; those of an earlier run that was cut short are known by their key."""

    def __init__(self, path: Path | None, *, fresh: bool = False) -> None:
        """Open; records of a complete run are passed over: it is measured anew."""
        self.path = path
        self.known: dict[str, Record] = {}
        self._file: TextIO | None = None
        if path is None:
            return
        found, complete = read_journal(path)
        if not complete and not fresh:
            self.known = {record.key: record for record in found if record.key}
        path.parent.mkdir(parents=True, exist_ok=True)
        # Rewritten beside and moved over: a torn last line never swallows the next record, and a
        # kill in between loses nothing.
        beside = path.with_name(path.name + ".new")
        self._file = beside.open("w", encoding="utf-8")
        self.write(self.known.values())
        beside.replace(path)

    def write(self, records: Iterable[Record]) -> None:
        """Keep records; a killed process loses none of them."""
        if self._file is not None:
            for record in records:
                self._file.write(json.dumps(record.row(), ensure_ascii=False) + "\n")
            self._file.flush()

    def finish(self) -> None:
        """Say that the run is complete: the next one begins afresh."""
        if self._file is not None:
            self._file.write(_DONE + "\n")
            self._file.flush()

    def __enter__(self) -> "Journal":
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


def read_journal(path: Path) -> tuple[list[Record], bool]:
    """The records of a file and whether its run came to an end; broken lines are passed over."""
    found: list[Record] = []
    complete = False
    if not path.is_file():
        return found, complete
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                row = json.loads(line)
            except ValueError:
                continue  # torn by a kill: its question is simply asked again
            if isinstance(row, dict) and "recipe" in row and "question" in row:
                found.append(record_of(row))
            elif isinstance(row, dict) and row.get("complete"):
                complete = True
    return found, complete
