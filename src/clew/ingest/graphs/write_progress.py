"""Tells how far the write of an import is, as a share of the whole."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clew.ingest.embedding import ProgressCallback
from clew.store.protocol import Addition

# Where each phase of a write ends, in percent of its time; the time of each is linear in the rows.
_ENDS = {"stage": 54, "join": 68, "merge": 84, "columns": 95, "derive": 99}
_STARTS = dict(zip(_ENDS, (0, *_ENDS.values()), strict=False))


@dataclass(frozen=True)
class WriteProgress:
    """Reports the phases of a write as one stage, in percent."""

    report: ProgressCallback
    lines: int
    """Lines of all additions, about."""

    def count_additions(self, additions: Iterable[Addition]) -> Iterator[Addition]:
        """Yield the additions; report how many of the lines were in those that were taken."""
        taken = 0
        for addition in additions:
            yield addition
            taken += sum(chunk.text.count("\n") + 1 for chunk in addition.chunks)
            self("stage", min(taken, self.lines), self.lines)

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Report how far a phase is."""
        begin, end = _STARTS[phase], _ENDS[phase]
        self.report("write", begin + (end - begin) * done // max(total, 1), 100)
