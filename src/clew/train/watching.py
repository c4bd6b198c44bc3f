"""Stopping criteria of a training run, and a warning when nothing is learned."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

from clew.train.settings import TrainSettings

Tell = Callable[[str], None]

STOPPED = "it was asked to stop"
_IDLE = 3
"""Consecutive steps without a learning signal before a warning."""
_NOTHING = (
    "nothing is learned: in no group of the last steps did rewards differ; try a warm start "
    "(sft_epochs), a larger group or another model"
)


@dataclass
class Watch:
    """Decides between steps whether the run ends."""

    settings: TrainSettings
    stop: Event
    tell: Tell
    ended: str = "all steps are done"
    idle: int = 0

    def reason(self, seconds: float, stale: int) -> str:
        """Return why the run ends now; empty if it continues."""
        s = self.settings
        if self.stop.is_set():
            return STOPPED
        if 0 < s.minutes * 60 <= seconds:
            return f"the {s.minutes:g} minutes were over"
        if 0 < s.patience <= stale:
            return f"no better dev F1 in {stale} checks"
        return ""

    def seen(self, telling: float) -> None:
        """Count steps in which no group's rewards differ, and warn once."""
        self.idle = 0 if telling else self.idle + 1
        if self.idle == _IDLE:
            self.tell(_NOTHING)

    def conclude(self, step: int, served: str) -> None:
        """Log why and after how many steps the run ended."""
        self.tell(f"{step} step{'s' * (step != 1)} done ({self.ended}); {served}")
        if self.idle >= _IDLE:
            self.tell(_NOTHING)
