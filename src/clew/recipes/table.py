"""A recipe as a table: step, parameter, value, source."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from clew.retrieve.step import Chain, Fork, Step


def rows_of(recipe: Chain) -> list[dict[str, str]]:
    """One row per parameter of every step; a parameter's note names where its value is from."""
    notes = dict(recipe.notes)
    return [
        {
            "step": step,
            "parameter": name,
            "value": value,
            "source": notes.get(f"{step}.{name}", recipe.source),
        }
        for step, name, value in _rows(recipe.steps)
    ]


def agent_rows(agent: object, source: str) -> list[dict[str, str]]:
    """One row per parameter of an agent."""
    known = fields(agent) if is_dataclass(agent) else ()
    return [
        {
            "step": type(agent).__name__,
            "parameter": field.name,
            "value": repr(getattr(agent, field.name)),
            "source": source,
        }
        for field in known
    ]


def _rows(steps: tuple[Step, ...]) -> Iterator[tuple[str, str, str]]:
    for step in steps:
        kind = type(step).__name__
        if isinstance(step, Fork):
            yield kind, "join", step.join.__name__
            yield from _rows(step.branches)
        elif isinstance(step, Chain):
            yield from _rows(step.steps)
        elif is_dataclass(step) and fields(step):
            for field in fields(step):
                yield kind, field.name, repr(getattr(step, field.name))
        else:
            yield kind, "", ""
