"""Ablation grids: a TOML or YAML file of recipes, varied parameters, modes and depths.

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
from clew.evaluate.grid_file import coerce_value, read_grid_spec
from clew.recipes import RECIPES, resolve_recipe
from clew.recipes.agents import AGENTS, AgentRecipe
from clew.retrieve.step import Chain


@dataclass(frozen=True)
class Case:
    """One row of the table: its label, the recipe (by name), the mode and the depth."""

    label: str
    recipe: str
    mode: Mode = "open"
    k: int = 0


@dataclass(frozen=True)
class Grid:
    """All rows, and the recipe variants built for them."""

    cases: tuple[Case, ...]
    variants: Mapping[str, "Variant"]
    """Label → variant, registered as `agent+retriever`."""
    note: str = ""
    """Which part of the grid was ignored, and why."""


@dataclass(frozen=True)
class Variant:
    """An agent and a retriever with some parameters changed."""

    agent: AgentRecipe
    retrieve: Chain

    @property
    def name(self) -> str:
        """Recipe name of the pair."""
        return f"{self.agent.name}+{self.retrieve.name}"


def build_grid(
    names: Sequence[str], modes: Sequence[Mode] = ("open",), *, answers: bool = True
) -> Grid:
    """Build a grid of named recipes in each mode."""
    for name in names:
        resolve_recipe(name)
    modes, depths, note = _drop_redundant_axes(modes, [0], answers)
    return Grid(_cross_product({name: name for name in names}, modes, depths), {}, note)


def read_grid(path: Path, *, answers: bool = True) -> Grid:
    """Read a grid file; all names and values are checked before anything runs."""
    spec = read_grid_spec(path)
    variants: dict[str, Variant] = {}
    for recipe, settings in spec.vary:
        variants |= _build_variants(recipe, settings)
    for name in spec.recipes:
        resolve_recipe(name)
    names = {name: name for name in spec.recipes}
    names |= {label: variant.name for label, variant in variants.items()}
    modes, depths, note = _drop_redundant_axes(spec.modes, spec.depths, answers)
    return Grid(_cross_product(names, modes, depths), variants, note)


def _drop_redundant_axes(
    modes: Sequence[Mode], depths: Sequence[int], answers: bool
) -> tuple[Sequence[Mode], Sequence[int], str]:
    """Keep the modes and depths that matter; without answers they do not change the result."""
    if answers or (len(modes) < 2 and len(depths) < 2):
        return modes, depths, ""
    note = "modes and k only matter to answers: every recipe is run once; add --answers for each"
    return modes[:1], [max(depths)], note


@contextmanager
def register_variants(variants: Mapping[str, Variant]) -> Iterator[None]:
    """Register variants as recipes for the duration of the context."""
    RECIPES.update({variant.retrieve.name: variant.retrieve for variant in variants.values()})
    AGENTS.update({variant.agent.name: variant.agent for variant in variants.values()})
    try:
        yield
    finally:
        for variant in variants.values():
            RECIPES.pop(variant.retrieve.name, None)
            AGENTS.pop(variant.agent.name, None)


def vary_parameter(recipe: Any, place: str, value: Any) -> Any:
    """Return the recipe with one field changed: `Walk.hops` is `hops` of every step `Walk`."""
    step, _, name = place.rpartition(".")
    changed, times = _replace_field(recipe, step, name, value)
    if not times:
        raise ConfigError(f"no {place!r} to vary; `clew recipes NAME` lists steps and parameters")
    return changed


def _replace_field(value: Any, step: str, name: str, new: Any) -> tuple[Any, int]:
    if isinstance(value, tuple):
        parts = [_replace_field(part, step, name, new) for part in value]
        times = sum(number for _, number in parts)
        return (tuple(part for part, _ in parts) if times else value), times
    if not is_dataclass(value) or isinstance(value, type):
        return value, 0
    changes: dict[str, Any] = {}
    times = 0
    for item in fields(value):
        if not item.init:
            continue
        if type(value).__name__ == step and item.name == name:
            changes[name], number = coerce_value(value, name, new), 1
        else:
            inner, number = _replace_field(getattr(value, item.name), step, name, new)
            if number:
                changes[item.name] = inner
        times += number
    return (replace(value, **changes) if changes else value), times


def _build_variants(name: str, settings: Mapping[str, Any]) -> dict[str, Variant]:
    base = resolve_recipe(name)
    places = list(settings)
    lists = [value if isinstance(value, list) else [value] for value in settings.values()]
    found = {}
    for values in product(*lists):
        pair: Any = (base.agent, base.retrieve)
        for place, value in zip(places, values, strict=True):
            pair = vary_parameter(pair, place, value)
        values_text = ",".join(f"{p}={v}" for p, v in zip(places, values, strict=True))
        label = f"{name}[{values_text}]"
        agent, retrieve = pair
        plain = label.replace("+", "/")  # a plus joins an agent to its retriever
        variant = Variant(AgentRecipe(f"agent of {plain}", agent), replace(retrieve, name=plain))
        found[label] = variant
    return found


def _cross_product(
    names: Mapping[str, str], modes: Sequence[Mode], depths: Sequence[int]
) -> tuple[Case, ...]:
    cases = []
    for (label, name), mode, k in product(names.items(), modes, depths):
        label += f" ({mode})" if len(modes) > 1 else ""
        label += f" k={k}" if len(depths) > 1 else ""
        cases.append(Case(label, name, mode, k))
    return tuple(cases)
