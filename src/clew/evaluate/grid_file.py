"""Read and validate grid files (TOML or YAML)."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError

from clew.agents.answer import Mode
from clew.errors import ConfigError, InputError

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
        raise ConfigError(f"{path} names no recipe; give `recipes` or `vary`")
    return GridSpec(recipes, modes, depths, vary)


def _load_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 ({error}); save it as such") from error
    if path.suffix.lower() in _YAML_SUFFIXES:
        return _load_yaml(path, text)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML ({error}); mend that line") from error


def _load_yaml(path: Path, text: str) -> dict[str, Any]:
    try:
        yaml: Any = import_module("yaml")
    except ImportError:
        raise ConfigError(f"{path.name} is YAML; `pip install pyyaml`, or write TOML") from None
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        message = " ".join(str(error).split())
        raise InputError(f"{path} is not YAML ({message}); mend that line") from error
    if not isinstance(data, dict):
        raise InputError(f"{path} is no list of keys; give `recipes: [clew, naive]`")
    return {str(key): value for key, value in data.items()}


def _check_keys(path: Path, data: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    unknown = set(data) - set(keys)
    if unknown:
        raise ConfigError(f"{path}: no key {min(unknown)!r}; have {', '.join(sorted(keys))}")


def _get_list(path: Path, data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key, [])
    if not isinstance(value, list):
        raise ConfigError(f"{path}: `{key}` is {value!r}; give a list in square brackets")
    return value


def _check_type(path: Path, key: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ConfigError(f"{path}: {value!r} under `{key}` is no {_TYPE_NAMES[kind]}")
    return value


_TYPE_NAMES = {str: "name", int: "whole number", dict: "table"}


def _check_depth(path: Path, value: Any) -> int:
    k = int(_check_type(path, "k", value, int))
    if k < 0:
        raise ConfigError(f"{path}: {k} under `k` is below nought; give 0 (as needed) or more")
    return k


def _check_mode(path: Path, mode: Any) -> Mode:
    if mode not in ("open", "reject"):
        raise ConfigError(f"{path}: no mode {mode!r}; have open, reject")
    return cast(Mode, mode)


def _parse_vary_block(path: Path, block: Any) -> tuple[str, Mapping[str, Any]]:
    """Return the recipe of a `vary` block and its varied parameters."""
    table = _check_type(path, "vary", block, dict)
    _check_keys(path, table, _VARY_KEYS)
    if "recipe" not in table:
        raise ConfigError(f"{path}: a block of `vary` names no `recipe`; give one")
    settings = _check_type(path, "set", table.get("set", {}), dict)
    return str(_check_type(path, "recipe", table["recipe"], str)), settings


def coerce_value(step: Any, name: str, value: Any) -> Any:
    """Convert a value to the type of the step's field `name`, or raise ConfigError."""
    place = f"{type(step).__name__}.{name}"
    kind = get_type_hints(type(step))[name]
    try:
        # Via JSON, because a file has lists and strings where a step has tuples and literals.
        converted = TypeAdapter(kind).validate_json(json.dumps(value), strict=True)
    except PydanticSchemaGenerationError:
        raise ConfigError(f"{place} is a step itself; only numbers and words are varied") from None
    except (ValidationError, TypeError, ValueError) as error:
        why = error.errors()[0]["msg"].lower() if isinstance(error, ValidationError) else str(error)
        raise ConfigError(f"{place} cannot be {value!r}: {why}") from None
    usual = getattr(step, name)
    if isinstance(converted, int) and not isinstance(converted, bool) and converted < 0 <= usual:
        raise ConfigError(f"{place} cannot be {value!r}: it is a number from 0 up")
    return converted
