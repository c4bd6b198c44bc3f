"""Logic forms: a plan of operators, typed and validated before it runs.

A step's arguments are words or references (`#1`) to earlier steps. Each step a model writes becomes
one of the operators below, or a message that says what is wrong with it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field

FilterTest = Literal["=", "!=", "<", "<=", ">", ">=", "contains", "before", "after"]
ComparisonKind = Literal["earlier", "later", "larger", "smaller", "same", "difference"]
Aggregation = Literal["count", "sum", "mean", "max", "min"]
SetOp = Literal["intersect", "union", "difference"]

# ASCII digits: "²" is a digit to Python too, and no number.
_REF = re.compile(r"(?<![A-Za-z0-9])#([0-9]{1,2})(?![0-9]*\])")  # not in the name PERSON#7
_INDEX = re.compile(r"[0-9]{1,3}")
MAX_STEPS = 8


@dataclass(frozen=True, slots=True)
class Retrieve:
    """Look up `relation` of `subject`; `?` marks the unknown. `asks` is the question in words."""

    subject: str
    relation: str
    object: str = "?"
    asks: str = ""

    @property
    def refs(self) -> list[int]:
        """The earlier steps whose results it needs."""
        return find_refs(self.subject, self.relation, self.object, self.asks)


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep the items of a step that pass a test."""

    of: int
    test: FilterTest
    value: str


@dataclass(frozen=True, slots=True)
class Sort:
    """Order the items of a step by number or date, else by name."""

    of: int
    falling: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Aggregate the items of a step into one value."""

    of: int
    how: Aggregation


@dataclass(frozen=True, slots=True)
class Compare:
    """Compare the first items of two steps."""

    left: int
    right: int
    how: ComparisonKind


@dataclass(frozen=True, slots=True)
class Combine:
    """Combine the items of two steps as sets."""

    left: int
    right: int
    how: SetOp


@dataclass(frozen=True, slots=True)
class Get:
    """The item at a position, from 1; all items when it is 0."""

    of: int
    place: int = 0


Operator = Retrieve | Filter | Sort | Aggregate | Compare | Combine | Get


def format_operator(step: Operator) -> str:
    """Format a step as a model reads it: `retrieve(#1, place of birth)`, `count(#1)`."""
    match step:
        case Retrieve():
            if step.asks:
                return f"answer({step.asks})"
            first = "" if step.object in ("", "?") else f", {step.object}"
            return f"retrieve({step.subject}, {step.relation}{first})"
        case Filter():
            return f"filter(#{step.of}, {step.test}, {step.value})"
        case Sort():
            return f"sort(#{step.of}, {'desc' if step.falling else 'asc'})"
        case Aggregate():
            return f"{step.how}(#{step.of})"
        case Get():
            return f"get(#{step.of}, {step.place})"
        case Combine():
            return f"{step.how}(#{step.left}, #{step.right})"
        case Compare():
            return f"compare(#{step.left}, #{step.right}, {step.how})"


class RawStep(BaseModel, title="Written"):
    """One step as a model writes it."""

    op: str
    args: list[str] = Field(default_factory=list)


class RawPlan(BaseModel, title="WrittenPlan"):
    """A plan as a model writes it."""

    steps: list[RawStep] = Field(default_factory=list)


@dataclass(frozen=True)
class LogicPlan:
    """Operators in order, and the problems of those that are invalid."""

    steps: tuple[Operator, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether it can run."""
        return bool(self.steps) and not self.problems

    def __str__(self) -> str:
        """Format for the trace."""
        return "; ".join(f"#{n} {step}" for n, step in enumerate(self.steps, start=1))


class _Fault(ValueError):  # noqa: N818  (reads as what it is)
    """An invalid step; the message lets a model repair it."""


def validate_plan(written: Sequence[RawStep]) -> LogicPlan:
    """Parse every step; one that cannot be parsed is a problem of the whole plan."""
    if not written:
        return LogicPlan(problems=("the plan has no steps",))
    steps: list[Operator] = []
    problems: list[str] = []
    for number, raw in enumerate(written[:MAX_STEPS], start=1):
        try:
            steps.append(_parse_step(raw, number))
        except _Fault as fault:
            problems.append(f"step {number} ({raw.op}): {fault}")
    if len(written) > MAX_STEPS:
        problems.append(f"{len(written)} steps are more than {MAX_STEPS}")
    if not any(isinstance(step, Retrieve) for step in steps):
        problems.append("no step retrieves anything")
    return LogicPlan(tuple(steps), tuple(problems))


def _parse_step(raw: RawStep, number: int) -> Operator:
    name = raw.op.strip().lower().replace("-", "_")
    args = [arg.strip() for arg in raw.args if arg.strip()]
    if name == "retrieve":
        return _parse_retrieve(args, number)
    if name in get_args(Aggregation):
        _check_arg_count(args, 1, 1)
        return Aggregate(_parse_ref(args[0], number), parse_choice(name, get_args(Aggregation)))
    if name in ("intersect", "union", "difference"):
        _check_arg_count(args, 2, 2)
        left, right = (_parse_ref(arg, number) for arg in args)
        return Combine(left, right, parse_choice(name, get_args(SetOp)))
    if name == "compare":
        _check_arg_count(args, 3, 3)
        how = parse_choice(args[2].lower(), get_args(ComparisonKind))
        return Compare(_parse_ref(args[0], number), _parse_ref(args[1], number), how)
    return _parse_list_operator(name, args, number)


def _parse_list_operator(name: str, args: list[str], number: int) -> Operator:
    if name == "filter":
        _check_arg_count(args, 3, 3)
        _check_refs(args[2:], number)
        return Filter(
            _parse_ref(args[0], number),
            parse_choice(args[1].lower(), get_args(FilterTest)),
            args[2],
        )
    if name == "sort":
        _check_arg_count(args, 1, 2)
        order = args[1].lower() if len(args) > 1 else "asc"
        return Sort(_parse_ref(args[0], number), parse_choice(order, ("asc", "desc")) == "desc")
    if name == "get":
        _check_arg_count(args, 1, 2)
        place = args[1] if len(args) > 1 else "0"
        if _INDEX.fullmatch(place) is None:
            raise _Fault(f"{place!r} is no place in a list")
        return Get(_parse_ref(args[0], number), int(place))
    raise _Fault(
        "there is no such operator; use retrieve, filter, sort, count, sum, mean, max, min, "
        "compare, intersect, union, difference or get"
    )


def _parse_retrieve(args: list[str], number: int) -> Retrieve:
    _check_arg_count(args, 2, 3)
    _check_refs(args, number)
    subject, relation, thing = [*args, "?"][:3]
    if subject == "?" and thing == "?":
        raise _Fault("subject and object are both unknown")
    return Retrieve(subject, relation, thing)


def find_refs(*texts: str) -> list[int]:
    """Return the step numbers that texts refer to, in order."""
    return [int(ref) for text in texts for ref in _REF.findall(text)]


def fill_refs(text: str, results: Mapping[int, str]) -> str:
    """Replace each reference by its result."""
    return _REF.sub(lambda ref: results[int(ref[1])], text)


def _check_refs(texts: Sequence[str], number: int) -> None:
    for ref in find_refs(*texts):
        if not 1 <= ref < number:
            raise _Fault(f"#{ref} is no earlier step")


def _check_arg_count(args: list[str], least: int, most: int) -> None:
    if not least <= len(args) <= most:
        raise _Fault(f"it has {len(args)} arguments and needs {least} to {most}")


def _parse_ref(arg: str, number: int) -> int:
    found = _REF.fullmatch(arg)
    if found is None:
        raise _Fault(f"{arg!r} must be a reference such as #1")
    if not 1 <= int(found[1]) < number:
        raise _Fault(f"{arg} is no earlier step")
    return int(found[1])


def parse_choice(word: str, allowed: Sequence[str]) -> Any:
    """Return the word if it is allowed."""
    if word not in allowed:
        raise _Fault(f"{word!r} is none of {', '.join(allowed)}")
    return word


def needs_all_items(plan: LogicPlan, number: int) -> bool:
    """Whether a later step needs all items of this one, not only the first."""
    later = enumerate(plan.steps[number:], start=number + 1)
    return any(_uses_all_items(plan, at, step, number) for at, step in later)


def _uses_all_items(plan: LogicPlan, at: int, step: Operator, number: int) -> bool:
    match step:
        case Filter() | Sort() | Aggregate():
            return step.of == number
        case Get():
            return step.of == number and step.place != 1
        case Combine():
            return number in (step.left, step.right)
        case Retrieve():  # to count the capitals of all provinces, each must be looked up
            return number in step.refs and needs_all_items(plan, at)
        case Compare():
            return False
