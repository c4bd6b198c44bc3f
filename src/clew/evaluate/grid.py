"""Ablation grids: a TOML or YAML file of recipes, varied parameters, modes and depths.

recipes = ["clew", "naive"]
modes = ["open", "reject"]       # with --answers
k = [5, 20]

[[vary]]
recipe = "clew"
set = { "Walk.hops" = [1, 2, 3] }
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, cast

from clew.agents.base import Mode
from clew.errors import ConfigError, InputError
from clew.layout import Modality
from clew.recipes.agents import AGENTS, AgentRecipe
from clew.recipes.parameters import vary_parameter
from clew.recipes.registry import BUILT_IN, RECIPES, RecipeSet, resolve_recipe
from clew.retrieve.step import Chain

_GRID_KEYS = ("recipes", "modes", "k", "vary")
_VARY_KEYS = ("recipe", "set")
_YAML_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class GridSpec:
    """The validated content of a grid file."""

    recipes: tuple[str, ...]
    modes: tuple[Mode, ...]
    depths: tuple[int, ...]
    vary: tuple[tuple[str, Mapping[str, Any]], ...]
    """(recipe, parameter → values) of each `vary` block."""


def read_grid_spec(path: Path) -> GridSpec:
    """Read a grid file; errors name the offending key."""
    data = _load_file(path)
    _check_keys(path, data, _GRID_KEYS)
    recipes = tuple(
        str(_check_type(path, "recipes", one, str)) for one in _get_list(path, data, "recipes")
    )
    depths = tuple(_check_depth(path, one) for one in _get_list(path, data, "k") or [0])
    modes = tuple(_check_mode(path, one) for one in _get_list(path, data, "modes") or ["open"])
    vary = tuple(_parse_vary_block(path, one) for one in _get_list(path, data, "vary"))
    if not recipes and not vary:
        raise ConfigError(f"{path} has no recipe; add `recipes` or `vary`")
    return GridSpec(recipes, modes, depths, vary)


def _load_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 ({error}); save it as UTF-8") from error
    if path.suffix.lower() in _YAML_SUFFIXES:
        return _load_yaml(path, text)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not valid TOML ({error}); fix that line") from error


def _load_yaml(path: Path, text: str) -> dict[str, Any]:
    try:
        yaml: Any = import_module("yaml")
    except ImportError:
        raise ConfigError(f"{path.name} is YAML; `pip install pyyaml`, or write TOML") from None
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        message = " ".join(str(error).split())
        raise InputError(f"{path} is not valid YAML ({message}); fix that line") from error
    if not isinstance(data, dict):
        raise InputError(f"{path} is not a mapping; write e.g. `recipes: [clew, naive]`")
    return {str(key): value for key, value in data.items()}


def _check_keys(path: Path, data: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    unknown = set(data) - set(keys)
    if unknown:
        raise ConfigError(f"{path}: unknown key {min(unknown)!r}; known: {', '.join(sorted(keys))}")


def _get_list(path: Path, data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key, [])
    if not isinstance(value, list):
        raise ConfigError(f"{path}: `{key}` is {value!r}; give a list in square brackets")
    return value


def _check_type(path: Path, key: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ConfigError(f"{path}: {value!r} under `{key}` is not a {_TYPE_NAMES[kind]}")
    return value


_TYPE_NAMES = {str: "name", int: "whole number", dict: "table"}


def _check_depth(path: Path, value: Any) -> int:
    k = int(_check_type(path, "k", value, int))
    if k < 0:
        raise ConfigError(f"{path}: {k} under `k` is negative; use 0 (automatic) or more")
    return k


def _check_mode(path: Path, mode: Any) -> Mode:
    if mode not in ("open", "reject"):
        raise ConfigError(f"{path}: unknown mode {mode!r}; use open or reject")
    return cast(Mode, mode)


def _parse_vary_block(path: Path, block: Any) -> tuple[str, Mapping[str, Any]]:
    """Return the recipe of a `vary` block and its varied parameters."""
    table = _check_type(path, "vary", block, dict)
    _check_keys(path, table, _VARY_KEYS)
    if "recipe" not in table:
        raise ConfigError(f"{path}: a `vary` block has no `recipe`; add one")
    settings = _check_type(path, "set", table.get("set", {}), dict)
    return str(_check_type(path, "recipe", table["recipe"], str)), settings


@dataclass(frozen=True)
class Case:
    """One row of the table: its label, the recipe (by name) and what it is run with."""

    label: str
    recipe: str
    mode: Mode = "open"
    k: int = 0
    model: str = ""
    """The model that plans and answers; empty for the configured one."""
    evidence: Modality = "all"


@dataclass(frozen=True)
class GridAxes:
    """What each recipe is run with: all combinations, one row each."""

    modes: Sequence[Mode] = ("open",)
    depths: Sequence[int] = (0,)
    models: Sequence[str] = ("",)
    evidence: Sequence[Modality] = ("all",)


@dataclass(frozen=True)
class Grid:
    """All rows, and the recipe variants built for them."""

    cases: tuple[Case, ...]
    variants: Mapping[str, "Variant"]
    """Label → variant, registered as `agent+retriever`."""
    note: str = ""
    """Which part of the grid was ignored, and why."""


DEFAULT_AXES = GridAxes()


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
    names: Sequence[str],
    axes: GridAxes = DEFAULT_AXES,
    *,
    answers: bool = True,
    recipes: RecipeSet = BUILT_IN,
) -> Grid:
    """Build a grid of named recipes, one row for each combination of the axes."""
    for name in names:
        resolve_recipe(name, recipes)
    axes, note = _drop_redundant_axes(axes, answers)
    return Grid(_cross_product({name: name for name in names}, axes), {}, note)


def read_grid(
    path: Path,
    axes: GridAxes = DEFAULT_AXES,
    *,
    answers: bool = True,
    recipes: RecipeSet = BUILT_IN,
) -> Grid:
    """Read a grid file; all names and values are checked before anything runs.

    The file decides modes and depths, `axes` the models and the evidence.
    """
    spec = read_grid_spec(path)
    variants: dict[str, Variant] = {}
    for recipe, settings in spec.vary:
        variants |= _build_variants(recipe, settings, recipes)
    for name in spec.recipes:
        resolve_recipe(name, recipes)
    names = {name: name for name in spec.recipes}
    names |= {label: variant.name for label, variant in variants.items()}
    axes, note = _drop_redundant_axes(replace(axes, modes=spec.modes, depths=spec.depths), answers)
    return Grid(_cross_product(names, axes), variants, note)


def _drop_redundant_axes(axes: GridAxes, answers: bool) -> tuple[GridAxes, str]:
    """Keep the axes that matter; without answers none of them changes the result."""
    lists: Sequence[Sequence[Any]] = (axes.modes, axes.depths, axes.models, axes.evidence)
    if answers or all(len(values) < 2 for values in lists):
        return axes, ""
    note = (
        "mode, k, model and evidence only affect answers, so each recipe is run once; "
        "add --answers to vary them"
    )
    return GridAxes(axes.modes[:1], [max(axes.depths)]), note


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


def _build_variants(
    name: str, settings: Mapping[str, Any], recipes: RecipeSet
) -> dict[str, Variant]:
    base = resolve_recipe(name, recipes)
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


def _cross_product(names: Mapping[str, str], axes: GridAxes) -> tuple[Case, ...]:
    cases = []
    for (label, name), model, evidence, mode, k in product(
        names.items(), axes.models, axes.evidence, axes.modes, axes.depths
    ):
        label += f" · {model}" if len(axes.models) > 1 else ""
        label += f" · {evidence}" if len(axes.evidence) > 1 else ""
        label += f" ({mode})" if len(axes.modes) > 1 else ""
        label += f" k={k}" if len(axes.depths) > 1 else ""
        cases.append(Case(label, name, mode, k, model, evidence))
    return tuple(cases)
