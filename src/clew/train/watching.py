"""Stopping criteria of a training run, and a warning when nothing is learned."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

from clew.train.settings import TrainSettings

LogFunction = Callable[[str], None]

STOPPED_BY_USER = "it was asked to stop"
_IDLE_STEPS = 3
"""Consecutive steps without a learning signal before a warning."""
_IDLE_MESSAGE = (
    "nothing is learned: in no group of the last steps did rewards differ; try a warm start "
    "(sft_epochs), a larger group or another model"
)


@dataclass
class StoppingCriteria:
    """Decides between steps whether the run ends."""

    settings: TrainSettings
    stop: Event
    tell: LogFunction
    end_reason: str = "all steps are done"
    idle_steps: int = 0

    def stop_reason(self, seconds: float, stale: int) -> str:
        """Return why the run ends now; empty if it continues."""
        s = self.settings
        if self.stop.is_set():
            return STOPPED_BY_USER
        if 0 < s.minutes * 60 <= seconds:
            return f"the {s.minutes:g} minutes were over"
        if 0 < s.patience <= stale:
            return f"no better dev F1 in {stale} checks"
        return ""

    def count_idle_steps(self, telling: float) -> None:
        """Count steps in which no group's rewards differ, and warn once."""
        self.idle_steps = 0 if telling else self.idle_steps + 1
        if self.idle_steps == _IDLE_STEPS:
            self.tell(_IDLE_MESSAGE)

    def report_end(self, step: int, served: str) -> None:
        """Log why and after how many steps the run ended."""
        self.tell(f"{step} step{'s' * (step != 1)} done ({self.end_reason}); {served}")
        if self.idle_steps >= _IDLE_STEPS:
            self.tell(_IDLE_MESSAGE)
