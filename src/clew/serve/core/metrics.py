"""Counters and histograms in Prometheus' text format, and spans where OpenTelemetry is there."""

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
_HELP = {
    "clew_requests_total": ("counter", "Answered requests by route and status."),
    "clew_request_seconds": ("histogram", "Seconds from a request to the end of its answer."),
    "clew_refused_total": ("counter", "Requests refused before their body was read, by reason."),
    "clew_in_work": ("gauge", "Requests in work or waiting."),
    "clew_streams": ("gauge", "Open event streams."),
    "clew_open_workspaces": ("gauge", "Open knowledge bases."),
    "clew_jobs": ("gauge", "Jobs by state."),
    "clew_model_calls_total": ("counter", "Model calls of questions, without cached ones."),
    "clew_model_money_total": ("counter", "Money spent on questions, by the configured prices."),
}
_Labels = tuple[tuple[str, str], ...]


class Metrics:
    """The figures of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, dict[_Labels, float]] = defaultdict(lambda: defaultdict(float))
        self._times: dict[_Labels, list[float]] = {}

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Add to a counter or a gauge."""
        with self._lock:
            self._values[name][tuple(sorted(labels.items()))] += amount

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        with self._lock:
            self._values[name][tuple(sorted(labels.items()))] = value

    def observe(self, seconds: float, **labels: str) -> None:
        """Record how long a request took."""
        with self._lock:
            row = self._times.setdefault(tuple(sorted(labels.items())), [0.0] * (len(_BUCKETS) + 2))
            row[bisect_left(_BUCKETS, seconds)] += 1
            row[-1] += seconds

    def format(self) -> str:
        """Return all figures as text."""
        with self._lock:
            values = {name: dict(rows) for name, rows in self._values.items()}
            times = {labels: list(row) for labels, row in self._times.items()}
        lines: list[str] = []
        for name, (kind, about) in _HELP.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
            if kind == "histogram":
                lines += _format_histogram(name, times)
            else:
                rows = values.get(name, {})
                lines += [f"{name}{_format_labels(k)} {v:g}" for k, v in sorted(rows.items())]
        return "\n".join(lines) + "\n"


def _format_histogram(name: str, times: Mapping[_Labels, list[float]]) -> Iterator[str]:
    for labels, row in sorted(times.items()):
        total = 0.0
        for bound, count in zip((*_BUCKETS, "+Inf"), row, strict=False):
            total += count
            yield f"{name}_bucket{_format_labels((*labels, ('le', str(bound))))} {total:g}"
        yield f"{name}_sum{_format_labels(labels)} {row[-1]:.6f}"
        yield f"{name}_count{_format_labels(labels)} {total:g}"


def _format_labels(labels: _Labels) -> str:
    if not labels:
        return ""
    escaped = [
        (name, value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))
        for name, value in labels
    ]
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}"


class Tracer:
    """Makes OpenTelemetry spans if its API is installed, else nothing."""

    def __init__(self, tracer: Any = None) -> None:
        self._tracer = tracer
        if tracer is not None:
            return
        if find_spec("opentelemetry") is not None and find_spec("opentelemetry.trace") is not None:
            self._tracer = import_module("opentelemetry.trace").get_tracer("clew.serve")

    @contextmanager
    def span(self, name: str, **attributes: str) -> Iterator[Callable[[str, str], None]]:
        """Trace what happens within the block; an attribute that is known later can be set."""
        if self._tracer is None:
            yield lambda name, value: None
            return
        with self._tracer.start_as_current_span(name, attributes=attributes) as made:
            yield made.set_attribute
