"""Ablation grids: one TOML or YAML file says which recipes, numbers of theirs, modes and depths.

recipes = ["clew", "naive"]
modes = ["open", "reject"]       # with --answers
k = [5, 20]

[[vary]]
recipe = "clew"
set = { "Walk.hops" = [1, 2, 3] }
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from clew.agents.answer import Mode
from clew.errors import ConfigError
from clew.evaluate.grid_file import fitting, read_told
from clew.recipes import RECIPES, asked_named
from clew.recipes.agents import AGENTS, AgentRecipe
from clew.retrieve.step import Chain


@dataclass(frozen=True)
class Case:
    """One row of the table: a recipe (by name), how it is asked, and what the row is called."""

    label: str
    recipe: str
    mode: Mode = "open"
    k: int = 0


@dataclass(frozen=True)
class Grid:
    """All rows, and the recipes that were made for them."""

    cases: tuple[Case, ...]
    variants: Mapping[str, "Variant"]
    """Name → what it stands for, as `agent+retriever`."""
    note: str = ""
    """What of the grid was not followed."""


@dataclass(frozen=True)
class Variant:
    """An agent and a retriever of which some numbers are others than usual."""

    agent: AgentRecipe
    retrieve: Chain

    @property
    def name(self) -> str:
        """What both are known by together."""
        return f"{self.agent.name}+{self.retrieve.name}"


def plain_grid(
    names: Sequence[str], modes: Sequence[Mode] = ("open",), *, answers: bool = True
) -> Grid:
    """Recipes by name, in each mode."""
    for name in names:
        asked_named(name)
    modes, depths, note = _told_apart(modes, [0], answers)
    return Grid(_crossed({name: name for name in names}, modes, depths), {}, note)


def read_grid(path: Path, *, answers: bool = True) -> Grid:
    """Read a grid file; every name and number is checked before anything runs."""
    told = read_told(path)
    variants: dict[str, Variant] = {}
    for recipe, settings in told.vary:
        variants |= _variants(recipe, settings)
    for name in told.recipes:
        asked_named(name)
    names = {name: name for name in told.recipes}
    names |= {label: variant.name for label, variant in variants.items()}
    modes, depths, note = _told_apart(told.modes, told.depths, answers)
    return Grid(_crossed(names, modes, depths), variants, note)


def _told_apart(
    modes: Sequence[Mode], depths: Sequence[int], answers: bool
) -> tuple[Sequence[Mode], Sequence[int], str]:
    """Modes and depths that make a difference; a search is the same in all of them."""
    if answers or (len(modes) < 2 and len(depths) < 2):
        return modes, depths, ""
    note = "modes and k only matter to answers: every recipe is run once; add --answers for each"
    return modes[:1], [max(depths)], note


@contextmanager
def known(variants: Mapping[str, Variant]) -> Iterator[None]:
    """Make variants known by name for as long as they are run."""
    RECIPES.update({one.retrieve.name: one.retrieve for one in variants.values()})
    AGENTS.update({one.agent.name: one.agent for one in variants.values()})
    try:
        yield
    finally:
        for one in variants.values():
            RECIPES.pop(one.retrieve.name, None)
            AGENTS.pop(one.agent.name, None)


def varied(recipe: Any, place: str, value: Any) -> Any:
    """The recipe with one number changed: `Walk.hops` is the field `hops` of every step `Walk`."""
    step, _, name = place.rpartition(".")
    changed, times = _changed(recipe, step, name, value)
    if not times:
        raise ConfigError(f"no {place!r} to vary; `clew recipes NAME` lists steps and parameters")
    return changed


def _changed(value: Any, step: str, name: str, new: Any) -> tuple[Any, int]:
    if isinstance(value, tuple):
        parts = [_changed(part, step, name, new) for part in value]
        times = sum(number for _, number in parts)
        return (tuple(part for part, _ in parts) if times else value), times
    if not is_dataclass(value) or isinstance(value, type):
        return value, 0
    changes: dict[str, Any] = {}
    times = 0
    for one in fields(value):
        if not one.init:
            continue
        if type(value).__name__ == step and one.name == name:
            changes[name], number = fitting(value, name, new), 1
        else:
            inner, number = _changed(getattr(value, one.name), step, name, new)
            if number:
                changes[one.name] = inner
        times += number
    return (replace(value, **changes) if changes else value), times


def _variants(name: str, settings: Mapping[str, Any]) -> dict[str, Variant]:
    base = asked_named(name)
    places = list(settings)
    lists = [value if isinstance(value, list) else [value] for value in settings.values()]
    found = {}
    for values in product(*lists):
        pair: Any = (base.agent, base.retrieve)
        for place, value in zip(places, values, strict=True):
            pair = varied(pair, place, value)
        told = ",".join(f"{p}={v}" for p, v in zip(places, values, strict=True))
        label = f"{name}[{told}]"
        agent, retrieve = pair
        plain = label.replace("+", "/")  # a plus joins an agent to its retriever
        variant = Variant(AgentRecipe(f"agent of {plain}", agent), replace(retrieve, name=plain))
        found[label] = variant
    return found


def _crossed(
    names: Mapping[str, str], modes: Sequence[Mode], depths: Sequence[int]
) -> tuple[Case, ...]:
    cases = []
    for (label, name), mode, k in product(names.items(), modes, depths):
        label += f" ({mode})" if len(modes) > 1 else ""
        label += f" k={k}" if len(depths) > 1 else ""
        cases.append(Case(label, name, mode, k))
    return tuple(cases)
