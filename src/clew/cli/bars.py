"""Progress display: bars on a terminal, else a line per stage; nothing with --json."""

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
_PAID = frozenset({"extract", "describe"})  # stages that call models
_UNITS = {  # by stage: singular, plural
    "read": ("document", "documents"),
    "file": ("byte", "bytes"),
    "rows": ("row", "rows"),
    "extract": ("document", "documents"),
    "embed": ("text", "texts"),
    "grow": ("tree", "trees"),
    "describe": ("community", "communities"),
}
_EVERY = 10.0  # seconds between two lines of the same stage


def no_bill() -> Usage:
    """Return no usage, for work that calls no model."""
    return Usage()


@contextmanager
def progress(quiet: bool, bill: Bill = no_bill) -> Iterator[Tell]:
    """Yield a callback for (stage, done, total); `bill` returns the usage so far."""
    if quiet:
        yield lambda stage, done, total: None
    elif err.is_terminal:
        with _bars() as bars:
            yield _on_bars(bars, bill)
    else:
        yield _in_lines(bill)


def spent(usage: Usage) -> str:
    """Format usage as calls, tokens and money; "" for none."""
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
        cost = spent(bill()) if stage in _PAID else ""
        bars.update(tasks[stage], completed=done, total=total or None, spent=cost)

    return tell


class _Speed(ProgressColumn):
    """Column with the rate."""

    def render(self, task: Task) -> Text:
        speed = task.speed or task.finished_speed
        return Text(_rate(speed) if speed else "")


def _rate(speed: float) -> str:
    """Format a rate per second, or per minute if it is low."""
    if speed >= 10:
        return f"{speed:,.0f}/s"
    return f"{speed:.1f}/s" if speed >= 0.1 else f"{speed * 60:.1f}/min"


def _counted(stage: str, done: int, total: int) -> str:
    """Format the progress of a stage with its unit; "done" for a stage of one step."""
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
            if ended.get(stage) != total:  # the end may be reported twice
                err.print(f"{stage}: {_counted(stage, done, total)}")
            ended[stage] = total
        elif now - last.setdefault(stage, now) > _EVERY:
            last[stage] = now
            speed = (done - first) / max(now - since, 1e-9)
            left = f", {(total - done) / speed:.0f} s left" if total and speed else ""
            paid = f"; {cost}" if stage in _PAID and (cost := spent(bill())) else ""
            err.print(f"{stage}: {_counted(stage, done, total)}{left} ({_rate(speed)}){paid}")

    return tell
