"""The operators of a logic form, and the check that a plan of them can run."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, Field

UNKNOWN = "?"
"""Stands for what a lookup is to find."""
LIST, TEXT, PLACE = "the result of an earlier step, such as #1", "a text", "a number from 1"
TESTS = ("=", "!=", "<", "<=", ">", ">=", "contains", "before", "after")
ORDERS = ("ascending", "descending")
COMPARISONS = ("earlier", "later", "larger", "smaller", "same", "difference")
Parameter = str | tuple[str, ...]
"""What an argument must be: one of the three above, or one of some words."""
OPERATORS: Mapping[str, tuple[Parameter, ...]] = {
    "retrieve": (TEXT, TEXT, TEXT),
    "filter": (LIST, TESTS, TEXT),
    "sort": (LIST, ORDERS),
    **dict.fromkeys(("count", "sum", "mean", "max", "min"), (LIST,)),
    "compare": (LIST, LIST, COMPARISONS),
    **dict.fromkeys(("intersect", "union", "difference"), (LIST, LIST)),
    "get": (LIST, PLACE),
}
_REFERENCE = re.compile(r"#(\d+)")


class PlannedStep(BaseModel, title="Step"):
    """One step as a model writes it."""

    question: str = Field(default="", description="what this step finds out, in words")
    op: str = ""
    args: list[str | int] = Field(default_factory=list)


class Plan(BaseModel):
    """A logic form as a model writes it."""

    reasoning: str = Field(
        default="", description="think first: what has to be known, in which order"
    )
    steps: list[PlannedStep] = Field(default_factory=list)


@dataclass(frozen=True)
class Operator:
    """A step that can run: its operator, its arguments, and its question in words."""

    op: str
    args: tuple[str, ...]
    question: str = ""

    @property
    def references(self) -> list[int]:
        """The numbers of the steps whose results it needs."""
        return find_references((*self.args, self.question))

    def fill(self, values: Mapping[int, str]) -> "Operator":
        """Return the step with references replaced by values."""

        def put(text: str) -> str:
            return _REFERENCE.sub(lambda ref: values.get(int(ref[1]), ref[0]), text)

        return replace(self, args=tuple(map(put, self.args)), question=put(self.question))

    def __str__(self) -> str:
        return f"{self.op}({', '.join(self.args)})"


def find_references(texts: Iterable[str]) -> list[int]:
    """Return the numbers of the steps that texts name, each once."""
    return list(dict.fromkeys(int(ref[1]) for text in texts for ref in _REFERENCE.finditer(text)))


def validate_plan(steps: Sequence[PlannedStep]) -> tuple[tuple[Operator, ...], str]:
    """Return the steps as operators, and what is wrong with them: "" where they can run."""
    plan, problems = [], [] if steps else ["there are no steps"]
    for number, step in enumerate(steps, start=1):
        operator = _read_step(step)
        plan.append(operator)
        problems += [f"step {number} ({operator}): {one}" for one in _check(operator, number)]
    return tuple(plan), "; ".join(problems)


def _read_step(step: PlannedStep) -> Operator:
    op = step.op.strip().casefold()
    args = [str(arg).strip() for arg in step.args]
    if op == "retrieve":
        args = [arg or UNKNOWN for arg in args] + [UNKNOWN] * (3 - len(args))
    return Operator(op, tuple(args), step.question.strip())


def _check(step: Operator, number: int) -> list[str]:
    parameters = OPERATORS.get(step.op)
    if parameters is None:
        return [f"there is no operator {step.op!r}; there are {', '.join(OPERATORS)}"]
    if len(step.args) != len(parameters):
        return [f"it has {len(step.args)} arguments and needs {len(parameters)}"]
    pairs = zip(step.args, parameters, strict=True)
    problems = [_describe(kind, arg) for arg, kind in pairs if not _fits(arg, kind)]
    problems += [f"#{ref} is no earlier step" for ref in step.references if not 0 < ref < number]
    if step.op == "retrieve" and UNKNOWN not in step.args:
        problems.append("nothing is asked: one argument must be ?")
    if step.op == "retrieve" and step.args[0] == step.args[2] == UNKNOWN:
        problems.append("the subject or the object must be known")
    return problems


def _fits(arg: str, kind: Parameter) -> bool:
    if isinstance(kind, tuple):
        return arg in kind
    if kind == LIST:
        return _REFERENCE.fullmatch(arg) is not None
    return bool(arg) if kind == TEXT else arg.isdecimal() and int(arg) > 0


def _describe(kind: Parameter, arg: str) -> str:
    wanted = f"one of {', '.join(kind)}" if isinstance(kind, tuple) else kind
    return f"{arg!r} must be {wanted}"
