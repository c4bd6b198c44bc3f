"""Progress: bars on a terminal, a plain line per stage otherwise, nothing with --json."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from clew.cli.door import err
from clew.types import Usage

Tell = Callable[[str, int, int], None]
Bill = Callable[[], Usage]
_PAID = frozenset({"extract", "describe"})  # stages in which models are asked
_UNITS = {  # of a stage: one, several
    "read": ("document", "documents"),
    "file": ("byte", "bytes"),
    "rows": ("row", "rows"),
    "extract": ("document", "documents"),
    "embed": ("text", "texts"),
    "grow": ("tree", "trees"),
    "describe": ("community", "communities"),
}
_EVERY = 10.0  # seconds between two lines on the same stage


def no_bill() -> Usage:
    """What is done asks no model."""
    return Usage()


@contextmanager
def progress(quiet: bool, bill: Bill = no_bill) -> Iterator[Tell]:
    """Give a function that is told (stage, done, total); `bill` says what it has cost so far."""
    if quiet:
        yield lambda stage, done, total: None
    elif err.is_terminal:
        with _bars() as bars:
            yield _on_bars(bars, bill)
    else:
        yield _in_lines(bill)


def spent(usage: Usage) -> str:
    """A bill in a few words; nothing for none."""
    tokens = usage.prompt_tokens + usage.completion_tokens
    if not tokens:
        return ""
    money = f", {usage.money:.4f} in money" if usage.money else ""
    return f"{usage.calls} calls, {tokens:,} tokens{money}"


def _bars() -> Progress:
    columns = (
        TextColumn("{task.description:>8}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Speed(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[spent]}"),
    )
    return Progress(*columns, console=err, transient=True)


def _on_bars(bars: Progress, bill: Bill) -> Tell:
    tasks = {}

    def tell(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total or None, spent="")
        said = spent(bill()) if stage in _PAID else ""
        bars.update(tasks[stage], completed=done, total=total or None, spent=said)

    return tell


class _Speed(ProgressColumn):
    """How many a second."""

    def render(self, task: Task) -> Text:
        speed = task.speed or task.finished_speed
        return Text(_rate(speed) if speed else "")


def _rate(speed: float) -> str:
    """How many a second; a minute where that would read as none."""
    if speed >= 10:
        return f"{speed:,.0f}/s"
    return f"{speed:.1f}/s" if speed >= 0.1 else f"{speed * 60:.1f}/min"


def _counted(stage: str, done: int, total: int) -> str:
    """How far a stage is, with what it counts; of what is one piece only that it is done."""
    one, several = _UNITS.get(stage, ("", ""))
    if done == total == 1 and not one:
        return "done"
    of = f" of {total}" if total and done != total else ""
    return f"{done}{of} {one if done == 1 and not of else several}".rstrip()


def _in_lines(bill: Bill) -> Tell:
    began: dict[str, tuple[float, int]] = {}
    last: dict[str, float] = {}
    ended: dict[str, int] = {}

    def tell(stage: str, done: int, total: int) -> None:
        now = monotonic()
        since, first = began.setdefault(stage, (now, done))
        if total and done == total:
            if ended.get(stage) != total:  # what is told twice is said once
                err.print(f"{stage}: {_counted(stage, done, total)}")
            ended[stage] = total
        elif now - last.setdefault(stage, now) > _EVERY:
            last[stage] = now
            speed = (done - first) / max(now - since, 1e-9)
            left = f", {(total - done) / speed:.0f} s left" if total and speed else ""
            paid = f"; {said}" if stage in _PAID and (said := spent(bill())) else ""
            err.print(f"{stage}: {_counted(stage, done, total)}{left} ({_rate(speed)}){paid}")

    return tell
