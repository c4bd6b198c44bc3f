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

from clew.cli.common import err
from clew.types import Usage

ProgressCallback = Callable[[str, int, int], None]
UsageFunction = Callable[[], Usage]
_MODEL_STAGES = frozenset({"extract", "describe"})  # stages that call models
_UNITS = {  # by stage: singular, plural
    "read": ("document", "documents"),
    "file": ("byte", "bytes"),
    "rows": ("row", "rows"),
    "extract": ("document", "documents"),
    "embed": ("text", "texts"),
    "grow": ("tree", "trees"),
    "describe": ("community", "communities"),
}
_LINE_INTERVAL = 10.0  # seconds between two lines of the same stage


def no_usage() -> Usage:
    """Return no usage, for work that calls no model."""
    return Usage()


@contextmanager
def show_progress(quiet: bool, usage: UsageFunction = no_usage) -> Iterator[ProgressCallback]:
    """Yield a callback for (stage, done, total); `usage` returns the usage so far."""
    if quiet:
        yield lambda stage, done, total: None
    elif err.is_terminal:
        with _make_bars() as bars:
            yield _report_on_bars(bars, usage)
    else:
        yield _report_in_lines(usage)


def format_usage(usage: Usage) -> str:
    """Format usage as calls, tokens and money; "" for none."""
    tokens = usage.prompt_tokens + usage.completion_tokens
    if not tokens:
        return ""
    money = f", cost {usage.money:.4f}" if usage.money else ""
    return f"{usage.calls} calls, {tokens:,} tokens{money}"


def _make_bars() -> Progress:
    columns = (
        TextColumn("{task.description:>8}"),
        BarColumn(),
        MofNCompleteColumn(),
        _SpeedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[spent]}"),
    )
    return Progress(*columns, console=err, transient=True)


def _report_on_bars(bars: Progress, usage: UsageFunction) -> ProgressCallback:
    tasks = {}

    def report(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total or None, spent="")
        cost = format_usage(usage()) if stage in _MODEL_STAGES else ""
        bars.update(tasks[stage], completed=done, total=total or None, spent=cost)

    return report


class _SpeedColumn(ProgressColumn):
    """Column with the rate."""

    def render(self, task: Task) -> Text:
        speed = task.speed or task.finished_speed
        return Text(_format_rate(speed) if speed else "")


def _format_rate(speed: float) -> str:
    """Format a rate per second, or per minute if it is low."""
    if speed >= 10:
        return f"{speed:,.0f}/s"
    return f"{speed:.1f}/s" if speed >= 0.1 else f"{speed * 60:.1f}/min"


def _format_count(stage: str, done: int, total: int) -> str:
    """Format the progress of a stage with its unit; "done" for a stage of one step."""
    one, several = _UNITS.get(stage, ("", ""))
    if done == total == 1 and not one:
        return "done"
    of = f" of {total}" if total and done != total else ""
    return f"{done}{of} {one if done == 1 and not of else several}".rstrip()


def _report_in_lines(usage: UsageFunction) -> ProgressCallback:
    began: dict[str, tuple[float, int]] = {}
    last: dict[str, float] = {}
    ended: dict[str, int] = {}

    def report(stage: str, done: int, total: int) -> None:
        now = monotonic()
        since, first = began.setdefault(stage, (now, done))
        if total and done == total:
            if ended.get(stage) != total:  # the end may be reported twice
                err.print(f"{stage}: {_format_count(stage, done, total)}")
            ended[stage] = total
        elif now - last.setdefault(stage, now) > _LINE_INTERVAL:
            last[stage] = now
            speed = (done - first) / max(now - since, 1e-9)
            left = f", {(total - done) / speed:.0f} s left" if total and speed else ""
            paid = f"; {cost}" if stage in _MODEL_STAGES and (cost := format_usage(usage())) else ""
            err.print(
                f"{stage}: {_format_count(stage, done, total)}{left} ({_format_rate(speed)}){paid}"
            )

    return report
