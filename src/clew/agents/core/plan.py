"""A plan: sub-questions with placeholders for earlier answers, and how to combine the answers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

JoinKind = Literal[
    "earlier",
    "later",
    "larger",
    "smaller",
    "same",
    "both",
    "longer life",
    "shorter life",
    "sum",
    "difference",
    "shortfall",
    "apart",
    "years before",
    "years after",
]
ARITHMETIC = frozenset(("sum", "difference", "shortfall", "apart", "years before", "years after"))
"""What is computed from values and is none of them: a total, or how much one exceeds another."""
AGE = "age"
"""The unit of a difference of two dates that is an age."""
# "PERSON#7" and "[人物#7]" are names, as anonymised texts write them.
_PLACEHOLDER = re.compile(
    r"(?:(?:Entity|实体)\s?|(?<![A-Za-z0-9]))#([0-9]{1,2})(?![0-9]*\])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Join:
    """Compares the answers of some sub-questions (numbered from 1); each stands for an option."""

    how: JoinKind
    question_numbers: tuple[tuple[int, ...], ...]
    options: tuple[str, ...]
    what: str = ""
    """For "both": what each is asked to be; for a difference: the unit asked for."""
    yes_no: bool = False
    """Whether it is asked if the first option wins, not which does."""


@dataclass(frozen=True)
class Plan:
    """Sub-questions in logical order; `#1` stands for the answer to the first."""

    questions: tuple[str, ...]
    join: Join | None = None
    by: str = "rules"

    @property
    def simple(self) -> bool:
        """Whether the question is not decomposed."""
        return len(self.questions) <= 1 and self.join is None

    def __str__(self) -> str:
        """Format for the trace."""
        parts = [f"#{number} {text}" for number, text in enumerate(self.questions, start=1)]
        if self.join is not None:
            parts.append(f"{self.join.how}: {' or '.join(self.join.options)}")
        return "; ".join(parts)


def plan_for_each(
    how: JoinKind, options: tuple[str, ...], first: Sequence[str], templates: Sequence[str]
) -> Plan:
    """Ask every template of each option, or of the answers to the questions in `first`."""
    subjects = [f"#{number}" for number in range(1, len(first) + 1)] or list(options)
    questions, places = list(first), []
    for subject in subjects:
        begin = len(questions) + 1
        questions += [template.replace("{x}", subject) for template in templates]
        places.append(tuple(range(begin, len(questions) + 1)))
    return Plan(tuple(questions), Join(how, tuple(places), options))


def find_placeholders(question: str) -> set[int]:
    """Return the numbers of the earlier questions whose answers this one needs."""
    return {int(number) for number in _PLACEHOLDER.findall(question)}


def fill_placeholders(question: str, answers: Mapping[int, str]) -> str:
    """Fill every placeholder whose answer is known."""
    return _PLACEHOLDER.sub(lambda found: answers.get(int(found[1])) or found[0], question)


def has_placeholders(question: str) -> bool:
    """Whether the question contains a placeholder."""
    return _PLACEHOLDER.search(question) is not None


def strip_placeholders(question: str) -> str:
    """Remove the placeholders; the rest is good enough to search with."""
    return " ".join(_PLACEHOLDER.sub(" ", question).split())


@dataclass(frozen=True, slots=True)
class ValidatedQuestions:
    """The valid questions of a model's plan, and what was dropped and why."""

    questions: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Format for the trace."""
        return "; ".join((str(Plan(self.questions)) or "nothing to ask", *self.dropped))


def validate_questions(questions: Sequence[str], most: int) -> ValidatedQuestions:
    """Keep distinct questions whose placeholders all point back at questions that are kept.

    A question that can never be filled is dropped, and with it those that need its answer. Dropping
    renumbers the placeholders.
    """
    kept: list[str] = []
    dropped: list[str] = []
    renumbered: dict[int, int] = {}
    for number, raw in enumerate(questions, start=1):
        text = " ".join(raw.split())
        open_ones = [n for n in sorted(find_placeholders(text)) if n not in renumbered]
        if open_ones:
            astray = _explain_bad_placeholder(open_ones[0], number, len(questions))
            dropped.append(f"dropped question {number}: #{open_ones[0]} {astray}")
            continue
        text = _PLACEHOLDER.sub(lambda found: f"#{renumbered[int(found[1])]}", text)
        if text in kept:
            renumbered[number] = kept.index(text) + 1
            continue
        if len(kept) == most or not re.search(r"\w\w", _PLACEHOLDER.sub(" ", text)):
            full = "the plan is full" if len(kept) == most else "it asks nothing"
            dropped.append(f"dropped question {number}: {full}")
            continue
        kept.append(text)
        renumbered[number] = len(kept)
    return ValidatedQuestions(tuple(kept), tuple(dropped))


def _explain_bad_placeholder(place: int, number: int, last: int) -> str:
    if place == number:
        return "points at itself"
    if number < place <= last:
        return "points forward"
    return "was dropped" if 1 <= place < number else "points nowhere"
