"""Result types of `ask` and `search`: the answer, its citations, evidence, trace and cost."""

from dataclasses import dataclass
from typing import Literal

from clew.context import TraceStep
from clew.types import Citation, Evidence, Usage

Verdict = Literal["answered", "refused"]
Mode = Literal["open", "reject"]


@dataclass(frozen=True)
class Answer:
    """An answer; `candidate` is its short form, where there is one."""

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
    """For a refusal: what the evidence lacked."""
    complete: bool = True
    """False when a budget or a model ended the work early: this is the best answer so far."""


@dataclass(frozen=True)
class Results:
    """The evidence found by a search."""

    question: str
    recipe: str
    evidence: Evidence
    trace: tuple[TraceStep, ...]
    seconds: float
    usage: Usage = Usage()
