"""Records: the output and scores of one recipe on one question."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from clew.types import Usage

_MAX_PASSAGE_CHARS = 400  # characters of a passage in a record
_MAX_PASSAGES = 5  # passages stored with text; the others by name only


@dataclass(frozen=True)
class Record:
    """One question under one recipe."""

    recipe: str
    question: str
    """The question's id."""
    values: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    usage: Usage = Usage()
    found: tuple[str, ...] = ()
    """Documents of the passages found, best first."""
    ranked: tuple[str, ...] = ()
    """Candidate answers, best first, for graph questions."""
    answer: str = ""
    short: str = ""
    verdict: str = ""
    evidence: tuple[Mapping[str, Any], ...] = ()
    trace: tuple[Mapping[str, Any], ...] = ()
    unscored: Mapping[str, str] = field(default_factory=dict)
    """Metric → why it has no value, so that no denominator shrinks silently."""
    judge: str = ""
    """Name of the judge model, if any."""
    skipped: tuple[str, ...] = ()
    """Metrics that this question has no gold for."""
    error: str = ""
    key: str = ""
    """Hash of everything that decides the result."""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a JSON object for the run log."""
        return asdict(self)


_FIELDS = {one.name for one in fields(Record)}
_TUPLE_FIELDS = ("found", "ranked", "evidence", "trace", "skipped")


def parse_record(row: Mapping[str, Any]) -> Record:
    """Convert a row of a run log to a record; unknown fields are ignored."""
    values = {name: value for name, value in row.items() if name in _FIELDS}
    for name in _TUPLE_FIELDS:
        if name in values:
            values[name] = tuple(values[name] or ())
    if isinstance(values.get("usage"), Mapping):
        usage = {one.name for one in fields(Usage)} & values["usage"].keys()
        values["usage"] = Usage(**{name: values["usage"][name] for name in usage})
    return Record(**values)


def trim_passages(passages: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    """Return the best passages, shortened for a record."""
    return tuple(
        {
            "doc": passage.doc,
            "title": passage.title,
            "score": round(float(passage.score), 4),
            "text": passage.text[:_MAX_PASSAGE_CHARS],
        }
        for passage in passages[:_MAX_PASSAGES]
    )


def trim_trace(trace: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    """Return the trace steps, shortened for a record."""
    return tuple(
        {
            "step": str(step.step)[:200],
            "output": str(step.output)[:200],
            "ms": round(1000 * step.seconds, 2),
        }
        for step in trace
    )
