"""When a run is to end and why, and whether anything is learned in it."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

from clew.train.settings import TrainSettings

Tell = Callable[[str], None]

STOPPED = "it was asked to stop"
_IDLE = 3
"""Steps from which nothing can be learned after which it is said."""
_NOTHING = (
    "nothing is learned: in no group of the last steps did rewards differ; try a warm start "
    "(sft_epochs), a larger group or another model"
)


@dataclass
class Watch:
    """Looks at a run between its steps."""

    settings: TrainSettings
    stop: Event
    tell: Tell
    ended: str = "all steps are done"
    idle: int = 0

    def reason(self, seconds: float, stale: int) -> str:
        """Why it is to end now; empty where it goes on."""
        s = self.settings
        if self.stop.is_set():
            return STOPPED
        if 0 < s.minutes * 60 <= seconds:
            return f"the {s.minutes:g} minutes were over"
        if 0 < s.patience <= stale:
            return f"no better dev F1 in {stale} checks"
        return ""

    def seen(self, telling: float) -> None:
        """Say it once when steps go by in which no group tells good from bad."""
        self.idle = 0 if telling else self.idle + 1
        if self.idle == _IDLE:
            self.tell(_NOTHING)

    def conclude(self, step: int, served: str) -> None:
        """The last words of a run."""
        self.tell(f"{step} step{'s' * (step != 1)} done ({self.ended}); {served}")
        if self.idle >= _IDLE:
            self.tell(_NOTHING)
