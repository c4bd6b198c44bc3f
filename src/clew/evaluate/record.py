"""What one recipe did with one question: the value that is kept, compared and shown."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from clew.types import Usage

_SHOWN = 400  # characters of a passage that a record keeps
_KEPT = 5  # passages with text; of the others the name is enough


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
    """Names that may be the answer, best first, where the recipe ranks such."""
    answer: str = ""
    short: str = ""
    verdict: str = ""
    evidence: tuple[Mapping[str, Any], ...] = ()
    trace: tuple[Mapping[str, Any], ...] = ()
    unscored: Mapping[str, str] = field(default_factory=dict)
    """Metric → why it could not be told, so that no denominator shrinks in silence."""
    judge: str = ""
    """The model that judged, where one did."""
    skipped: tuple[str, ...] = ()
    """Metrics that this question has no gold for."""
    error: str = ""
    key: str = ""
    """Everything that decides the outcome, hashed."""

    def row(self) -> dict[str, Any]:
        """As one line of a journal."""
        return asdict(self)


_FIELDS = {one.name for one in fields(Record)}
_TUPLES = ("found", "ranked", "evidence", "trace", "skipped")


def record_of(row: Mapping[str, Any]) -> Record:
    """Read a record back; fields of another version are passed over."""
    known = {name: value for name, value in row.items() if name in _FIELDS}
    for name in _TUPLES:
        if name in known:
            known[name] = tuple(known[name] or ())
    if isinstance(known.get("usage"), Mapping):
        usage = {one.name for one in fields(Usage)} & known["usage"].keys()
        known["usage"] = Usage(**{name: known["usage"][name] for name in usage})
    return Record(**known)


def shown_passages(passages: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    """The best passages as a record keeps them."""
    return tuple(
        {
            "doc": one.doc,
            "title": one.title,
            "score": round(float(one.score), 4),
            "text": one.text[:_SHOWN],
        }
        for one in passages[:_KEPT]
    )


def shown_trace(trace: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    """The steps as a record keeps them."""
    return tuple(
        {
            "step": str(step.step)[:200],
            "output": str(step.output)[:200],
            "ms": round(1000 * step.seconds, 2),
        }
        for step in trace
    )
