"""A plan: small questions, of which later ones may need earlier answers, and how to join them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

How = Literal[
    "earlier", "later", "larger", "smaller", "same", "both", "longer life", "shorter life"
]

_PLACE = re.compile(r"(?:(?:Entity|实体)\s?)?#([0-9]{1,2})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Join:
    """Compares the answers of some sub-questions (counted from 1); each stands for an option."""

    how: How
    places: tuple[tuple[int, ...], ...]
    options: tuple[str, ...]
    what: str = ""
    """For "both": what each is asked to be."""


@dataclass(frozen=True)
class Plan:
    """Sub-questions in logical order; `#1` stands for the answer to the first."""

    questions: tuple[str, ...]
    join: Join | None = None
    by: str = "rules"

    @property
    def simple(self) -> bool:
        """Whether the question stays whole."""
        return len(self.questions) <= 1

    def __str__(self) -> str:
        """As the trace shows it."""
        parts = [f"#{number} {text}" for number, text in enumerate(self.questions, start=1)]
        if self.join is not None:
            parts.append(f"{self.join.how}: {' or '.join(self.join.options)}")
        return "; ".join(parts)


def asked_of_each(
    how: How, options: tuple[str, ...], first: Sequence[str], templates: Sequence[str]
) -> Plan:
    """Every template asked of each option, or of who the questions before (`first`) find for it."""
    subjects = [f"#{number}" for number in range(1, len(first) + 1)] or list(options)
    questions, places = list(first), []
    for subject in subjects:
        begin = len(questions) + 1
        questions += [template.replace("{x}", subject) for template in templates]
        places.append(tuple(range(begin, len(questions) + 1)))
    return Plan(tuple(questions), Join(how, tuple(places), options))


def needs(question: str) -> set[int]:
    """The numbers of the earlier questions whose answers this one needs."""
    return {int(number) for number in _PLACE.findall(question)}


def grounded(question: str, answers: Mapping[int, str]) -> str:
    """The question with every placeholder filled that is known."""
    return _PLACE.sub(lambda found: answers.get(int(found[1])) or found[0], question)


def open_places(question: str) -> bool:
    """Whether a placeholder is left."""
    return _PLACE.search(question) is not None


def without_places(question: str) -> str:
    """The question with its open placeholders taken out, good enough to search with."""
    return " ".join(_PLACE.sub(" ", question).split())


def in_waves(questions: Sequence[str]) -> list[list[int]]:
    """Numbers (from 1) of the questions that can run side by side, wave by wave.

    A placeholder that points forward, at itself or nowhere can never be filled: it does not wait.
    """
    waves: list[list[int]] = []
    wave_of: dict[int, int] = {}
    for number, question in enumerate(questions, start=1):
        behind = [wave_of[one] for one in needs(question) if one in wave_of]
        at = 1 + max(behind, default=-1)
        wave_of[number] = at
        if at == len(waves):
            waves.append([])
        waves[at].append(number)
    return waves


@dataclass(frozen=True, slots=True)
class Sound:
    """What of a model's plan can be carried out, and what was left out and why."""

    questions: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As the trace shows it."""
        return "; ".join((str(Plan(self.questions)) or "nothing to ask", *self.dropped))


def sound(questions: Sequence[str], most: int) -> Sound:
    """Real questions, each once, whose placeholders all point back at questions that are kept.

    A question that can never be filled asks for nothing, so it goes, and with it what needs its
    answer. Dropping renumbers, so that answers still meet their questions.
    """
    kept: list[str] = []
    dropped: list[str] = []
    renumbered: dict[int, int] = {}
    for number, raw in enumerate(questions, start=1):
        text = " ".join(raw.split())
        open_ones = [one for one in sorted(needs(text)) if one not in renumbered]
        if open_ones:
            astray = _astray(open_ones[0], number, len(questions))
            dropped.append(f"dropped question {number}: #{open_ones[0]} {astray}")
            continue
        text = _PLACE.sub(lambda found: f"#{renumbered[int(found[1])]}", text)
        if text in kept:
            renumbered[number] = kept.index(text) + 1
            continue
        if len(kept) == most or not re.search(r"\w\w", _PLACE.sub(" ", text)):
            full = "the plan is full" if len(kept) == most else "it asks nothing"
            dropped.append(f"dropped question {number}: {full}")
            continue
        kept.append(text)
        renumbered[number] = len(kept)
    return Sound(tuple(kept), tuple(dropped))


def _astray(place: int, number: int, last: int) -> str:
    """Why a placeholder of the question `number` cannot be filled."""
    if place == number:
        return "points at itself"
    if number < place <= last:
        return "points forward"
    return "was dropped" if 1 <= place < number else "points nowhere"
