"""Progress display: bars on a terminal, else a line per stage; nothing with --json."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import RenderableType
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.spinner import Spinner
from rich.text import Text

from clew.cli.common import err
from clew.llm.limits import ModelWait, WaitListener
from clew.types import Usage

ProgressCallback = Callable[[str, int, int], None]
UsageFunction = Callable[[], Usage]
_MODEL_STAGES = frozenset({"extract", "passages", "describe"})  # stages that call models
_SLOW_STAGES = _MODEL_STAGES | {"embed", "write"}  # reported while they are waited for
_SMALL_STAGES = frozenset({"file"})  # most is still to come when they end, so no time is estimated
_FOLLOWED = {stage: " to extract" for stage in ("extract", "passages")} | {"embed": " to embed"}
"""By stage that others follow: what an estimate is of."""
_PERCENT = 100  # total of a stage that is told in percent, if it has no unit
_UNITS = {  # by stage: singular, plural
    "read": ("document", "documents"),
    "file": ("byte", "bytes"),
    "rows": ("row", "rows"),
    "collect": ("part", "parts"),
    "extract": ("document", "documents"),
    "passages": ("passage", "passages"),
    "embed": ("text", "texts"),
    "grow": ("tree", "trees"),
    "describe": ("community", "communities"),
}
LINE_INTERVAL = 10.0  # seconds between two lines of the same stage


def no_usage() -> Usage:
    """Return no usage, for work that calls no model."""
    return Usage()


@contextmanager
def show_progress(quiet: bool, usage: UsageFunction = no_usage) -> Iterator[ProgressCallback]:
    """Yield a callback for (stage, done, total); `usage` returns the usage so far."""
    if quiet:
        yield lambda stage, done, total: None
    elif err.is_terminal:
        with _make_bars(usage) as bars:
            yield _report_on_bars(bars)
    else:
        lines = LineReport(usage)
        with _run_regularly(lines.report_waiting):
            yield lines


def format_usage(usage: Usage) -> str:
    """Format usage as calls, tokens and money; "" for none."""
    tokens = usage.prompt_tokens + usage.completion_tokens
    if not tokens:
        return ""
    money = f", cost {usage.money:.4f}" if usage.money else ""
    return f"{usage.calls} calls, {tokens:,} tokens{money}"


class UsageRate:
    """Formats model usage so far with its tokens per second, and how long the model has taken."""

    def __init__(self, usage: UsageFunction, clock: Callable[[], float] = monotonic) -> None:
        self._usage, self._clock = usage, clock
        self._first = self._last = usage()
        self._began = self._changed = clock()

    def __call__(self) -> str:
        """Format the usage since the beginning; after a while without a reply say so."""
        now, used = self._clock(), self._usage()
        if used != self._last:
            self._last, self._changed = used, now
        since = used - self._first
        shown = [format_usage(since)] if since.calls else []
        if since.completion_tokens:
            rate = since.completion_tokens / max(now - self._began, 1e-9)
            shown.append(f"{_format_rate(rate)[:-2]} tokens/s")
        if self._usage is not no_usage and now - self._changed > LINE_INTERVAL:
            shown.append(f"no reply for {now - self._changed:.0f} s")
        return ", ".join(shown)


@contextmanager
def _run_regularly(work: Callable[[], None]) -> Iterator[None]:
    """Call `work` every few seconds in the background: a slow model must not look like a hang."""
    ended = threading.Event()

    def loop() -> None:
        while not ended.wait(LINE_INTERVAL):
            work()

    thread = threading.Thread(target=loop, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def show_waiting(quiet: bool, live: bool = True) -> Iterator[WaitListener]:
    """Yield a listener that shows which model is waited for: on a terminal as a line that moves."""
    if quiet:
        yield lambda event: None
        return
    report = WaitReport()
    if live and err.is_terminal:
        shown = Live(
            get_renderable=report.render,
            console=err,
            refresh_per_second=8,
            transient=True,
            redirect_stdout=False,  # what is piped stays what is piped
            redirect_stderr=False,
        )
        with shown:
            yield report
    else:
        with _run_regularly(report.print):
            yield report


class WaitReport:
    """Says which model is waited for, and for how long; each failure that is retried is a line."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._open: list[str] = []
        self._since = 0.0
        self._spinner = Spinner("dots")

    def __call__(self, event: ModelWait) -> None:
        """Note that a call was sent or has ended; print that one failed."""
        if event.state == "sent":
            self._since = self._since if self._open else self._clock()
            self._open.append(event.model)
        elif event.state == "ended":
            self._open.remove(event.model)
        else:
            err.print(
                f"{event.why.rstrip('.')}; asked again in {event.seconds:.0f} s",
                style="yellow",
                markup=False,
            )

    def render(self) -> RenderableType:
        """Return the line that moves; nothing where no model is waited for."""
        self._spinner.update(text=Text(line := self._describe(), no_wrap=True))
        return self._spinner if line else ""

    def print(self) -> None:
        """Print what is waited for, if anything is."""
        if line := self._describe():
            err.print(line, style="dim", markup=False)

    def _describe(self) -> str:
        waiting = self._open[:]  # another thread changes it
        if not waiting:
            return ""
        more = f" ({len(waiting)} calls)" if len(waiting) > 1 else ""
        return f"waiting for {waiting[0]}{more} for {self._clock() - self._since:.0f} s"


def _make_bars(usage: UsageFunction) -> Progress:
    columns = (
        TextColumn("{task.description:>8}"),
        BarColumn(),
        MofNCompleteColumn(),
        _SpeedColumn(),
        TimeRemainingColumn(),
        _UsageColumn(usage),
    )
    return Progress(*columns, console=err, transient=True)


def _report_on_bars(bars: Progress) -> ProgressCallback:
    tasks = {}

    def report(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total or None)
        bars.update(tasks[stage], completed=done, total=total or None)

    return report


class _UsageColumn(ProgressColumn):
    """Column with what the model has done so far; drawn again while a call runs."""

    max_refresh = 1.0

    def __init__(self, usage: UsageFunction) -> None:
        self._rate = UsageRate(usage)
        super().__init__()

    def render(self, task: Task) -> Text:
        working = task.description in _MODEL_STAGES and not task.finished
        return Text(self._rate() if working else "")


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
    """Format the progress of a stage with its unit; one without is of one step, or in percent."""
    one, several = _UNITS.get(stage, ("", ""))
    if not one and total in (1, _PERCENT):
        return "done" if done == total else f"{_PERCENT * done // total} %" if done else "…"
    of = f" of {total}" if total and done != total else ""
    return f"{done}{of} {one if done == 1 and not of else several}".rstrip()


class LineReport:
    """Reports progress in lines: one at the end of a stage, others at intervals."""

    def __init__(self, usage: UsageFunction, clock: Callable[[], float] = monotonic) -> None:
        self._rate, self._clock = UsageRate(usage, clock), clock
        self._began: dict[str, tuple[float, int]] = {}
        self._last: dict[str, float] = {}
        self._ended: dict[str, int] = {}
        self._now: tuple[str, int, int] | None = None
        """The slow stage that is worked on now, and how far it is."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report how far a stage is."""
        now = self._clock()
        self._began.setdefault(stage, (now, done))
        self._last.setdefault(stage, now)
        working = stage in _SLOW_STAGES and not (total and done == total)
        self._now = (stage, done, total) if working else None
        if total and done == total:
            if self._ended.get(stage) != total:  # the end may be reported twice
                err.print(f"{stage}: {_format_count(stage, done, total)}")
            self._ended[stage] = total
        else:
            self._report_at_interval(stage, done, total)

    def report_waiting(self) -> None:
        """Report a slow stage, though nothing of it was finished meanwhile."""
        if self._now is not None:
            self._report_at_interval(*self._now)

    def _report_at_interval(self, stage: str, done: int, total: int) -> None:
        now = self._clock()
        if now - self._last[stage] < LINE_INTERVAL:
            return
        self._last[stage] = now
        since, first = self._began[stage]
        speed = (done - first) / max(now - since, 1e-9)
        known = total and speed and stage not in _SMALL_STAGES
        then = _FOLLOWED.get(stage, "")
        left = f", {(total - done) / speed:.0f} s left{then}" if known else ""
        paid = f"; {cost}" if stage in _MODEL_STAGES and (cost := self._rate()) else ""
        rate = f" ({_format_rate(speed)})" if speed and stage in _UNITS else ""
        err.print(f"{stage}: {_format_count(stage, done, total)}{left}{rate}{paid}")
