"""What comes back from asking: the answer, its citations, and how it came about."""

from dataclasses import dataclass
from typing import Literal

from clew.context import TraceStep
from clew.types import Citation, Evidence, Usage

Verdict = Literal["answered", "refused"]
Mode = Literal["open", "reject"]


@dataclass(frozen=True)
class Answer:
    """An answer; `candidate` is the short form where one could be named."""

    question: str
    recipe: str
    answer: str
    verdict: Verdict
    citations: tuple[Citation, ...]
    evidence: Evidence
    trace: tuple[TraceStep, ...]
    seconds: float
    candidate: str = ""
    note: str = ""
    usage: Usage = Usage()
    missing: str = ""
    """What a refusal says was not there."""
    complete: bool = True
    """False when a budget ended before the work was done: this is the best answer so far."""


@dataclass(frozen=True)
class Results:
    """What a search found."""

    question: str
    recipe: str
    evidence: Evidence
    trace: tuple[TraceStep, ...]
    seconds: float
    usage: Usage = Usage()
