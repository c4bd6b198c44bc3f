"""Progress: bars on a terminal, a plain line per stage otherwise, nothing with --json."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from clew.cli.door import err

Tell = Callable[[str, int, int], None]


@contextmanager
def progress(quiet: bool) -> Iterator[Tell]:
    """Give a function that is told (stage, done, total)."""
    if quiet:
        yield lambda stage, done, total: None
    elif err.is_terminal:
        with _bars() as bars:
            yield _on_bars(bars)
    else:
        yield _in_lines()


def _bars() -> Progress:
    columns = (
        TextColumn("{task.description:>8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=err, transient=True)


def _on_bars(bars: Progress) -> Tell:
    tasks = {}

    def tell(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total or None)
        bars.update(tasks[stage], completed=done, total=total or None)

    return tell


def _in_lines() -> Tell:
    def tell(stage: str, done: int, total: int) -> None:
        if total and done == total:
            err.print(f"{stage}: {done}")

    return tell
