"""Read and write the parameters of steps and agents as plain data: tables, lists, numbers, texts.

Works on any frozen dataclass by its type hints. A step that may be any step is a table with its
name under `step`; a step of a fixed class is a table of its parameters. Errors begin with the key.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from enum import Enum
from typing import Any, Literal, cast, get_args, get_origin

from clew.errors import ConfigError, suggest
from clew.recipes.steps import (
    JOINS,
    RECIPE_FIELDS,
    STEPS,
    default_value,
    type_hints,
    without_none,
)
from clew.retrieve.pack import NO_LIMIT
from clew.retrieve.step import Chain, Step

MAX_ITEMS = 200
"""Longest list in a recipe."""
_MAX_DEPTH = 12
_TAG = "step"


def check_keys(table: Any, known: Iterable[str], key: str) -> Mapping[str, Any]:
    """Return the table; raise if it is none, or has a key that is not known."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{key}: must be a table")
    names = list(known)
    for name in table:
        if not isinstance(name, str):
            raise ConfigError(f"{key}: {name!r} is not a text, and parameters are named by texts")
        if name not in names:
            hint = suggest(name, names) or f"; there are: {', '.join(names) or 'none'}"
            raise ConfigError(f"{key}.{name}: unknown parameter{hint}")
    return table


# -- reading


def read_value(kind: Any, data: Any, key: str, usual: Any = MISSING, depth: int = 0) -> Any:
    """Convert plain data to a value of the type `kind`, or raise an error that names the key.

    `usual` is the value it replaces: missing parameters of a table are taken from it.
    """
    if depth > _MAX_DEPTH:
        raise ConfigError(f"{key}: is nested more than {_MAX_DEPTH} deep")
    kind = without_none(kind)
    origin = get_origin(kind)
    if origin is tuple:
        return _read_list(kind, data, key, depth)
    if origin is Literal:
        return _read_choice({choice: choice for choice in get_args(kind)}, data, key)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _read_choice({choice.value: choice for choice in kind}, data, key)
    if kind is Step:
        return read_step(data, key, depth)
    if isinstance(kind, type) and is_dataclass(kind):
        return read_fields(kind, data, key, usual, depth)
    if kind in _READERS:
        return _READERS[kind](data, key, usual)
    if origin is not None and callable(kind):
        return _read_choice(JOINS, data, key)
    raise ConfigError(f"{key}: cannot be set in a file")


def read_step(data: Any, key: str, depth: int = 0) -> Step:
    """Read a step: its name, or a table with its name under `step` and its parameters."""
    table = {_TAG: data} if isinstance(data, str) else data
    if not isinstance(table, Mapping):
        raise ConfigError(f"{key}: must be a step's name or a table")
    name = table.get(_TAG)
    if not isinstance(name, str):
        raise ConfigError(f'{key}.{_TAG}: must name a step, e.g. {_TAG} = "Dense"')
    if name not in STEPS:
        hint = suggest(name, STEPS) or "; `clew recipes --steps` lists them"
        raise ConfigError(f"{key}.{_TAG}: unknown step {name!r}{hint}")
    given = {one: value for one, value in table.items() if one != _TAG}
    return cast(Step, read_fields(STEPS[name], given, key, MISSING, depth))


def read_fields(owner: type, data: Any, key: str, usual: Any = MISSING, depth: int = 0) -> Any:
    """Read a table as a dataclass: given parameters, the rest from `usual` or the defaults."""
    base: Any = usual if isinstance(usual, owner) else None
    known = {one.name: one for one in fields(cast(Any, owner)) if one.init}
    if owner is Chain:
        known = {name: one for name, one in known.items() if name not in RECIPE_FIELDS}
    values: dict[str, Any] = {}
    for name, value in check_keys(data, known, key).items():
        before = default_value(known[name]) if base is None else getattr(base, name)
        place = f"{key}.{name}"
        values[name] = read_value(type_hints(owner)[name], value, place, before, depth + 1)
    for name, one in known.items():
        if base is None and name not in values and default_value(one) is MISSING:
            raise ConfigError(f"{key}.{name}: is missing")
    try:
        return owner(**values) if base is None else replace(base, **values)
    except ValueError as error:  # raised by a dataclass that checks its own values
        raise ConfigError(f"{key}: {error}") from None


def _read_list(kind: Any, data: Any, key: str, depth: int) -> tuple[Any, ...]:
    if not isinstance(data, list | tuple):
        raise ConfigError(f"{key}: must be a list")
    if not data:
        what = "step" if get_args(kind)[0] is Step else "entry"
        raise ConfigError(f"{key}: is empty; give at least one {what}")
    if len(data) > MAX_ITEMS:
        raise ConfigError(f"{key}: has {len(data):,} entries, and at most {MAX_ITEMS} are allowed")
    kinds = get_args(kind)
    if kinds[-1] is not Ellipsis:
        if len(kinds) != len(data):
            raise ConfigError(f"{key}: must be a list of {len(kinds)}")
    else:
        kinds = (kinds[0],) * len(data)
    return tuple(
        read_value(one, item, f"{key}[{at}]", depth=depth + 1)
        for at, (one, item) in enumerate(zip(kinds, data, strict=True))
    )


def _read_choice(choices: Mapping[Any, Any], data: Any, key: str) -> Any:
    if isinstance(data, str) and data in choices:
        return choices[data]
    known = ", ".join(repr(choice) for choice in choices)
    hint = suggest(data, choices) if isinstance(data, str) else ""
    raise ConfigError(f"{key}: must be one of {known}{hint}")


def _read_integer(data: Any, key: str, usual: Any) -> int:
    if not isinstance(data, int) or isinstance(data, bool):
        raise ConfigError(f"{key}: must be an integer")
    if data > NO_LIMIT:
        raise ConfigError(f"{key}: must be at most {NO_LIMIT:,}")
    if data == 0 and usual != 0 and key.rpartition(".")[2] == "top_k":
        raise ConfigError(f"{key}: must be at least 1; of 0 nothing is found")
    return int(_check_sign(data, key, usual))


def _read_number(data: Any, key: str, usual: Any) -> float:
    if not isinstance(data, int | float) or isinstance(data, bool) or abs(data) > NO_LIMIT:
        raise ConfigError(f"{key}: must be a number")
    if not math.isfinite(data):
        raise ConfigError(f"{key}: must be a finite number")
    return float(_check_sign(data, key, usual))


def _check_sign(data: float, key: str, usual: Any) -> float:
    may_be_negative = isinstance(usual, int | float) and usual < 0
    if data < 0 and not may_be_negative:
        raise ConfigError(f"{key}: must not be negative")
    return data


def _read_flag(data: Any, key: str, usual: Any) -> bool:
    if not isinstance(data, bool):
        raise ConfigError(f"{key}: must be true or false")
    return data


def _read_text(data: Any, key: str, usual: Any) -> str:
    if not isinstance(data, str):
        raise ConfigError(f"{key}: must be a text")
    return data


_READERS: dict[Any, Callable[[Any, str, Any], Any]] = {
    bool: _read_flag,
    int: _read_integer,
    float: _read_number,
    str: _read_text,
}

# -- changing one parameter


def vary_parameter(recipe: Any, place: str, value: Any, key: str = "") -> Any:
    """Return the recipe with one field changed: `Walk.hops` is `hops` of every step `Walk`."""
    owner, _, name = place.rpartition(".")
    changed, times = _replace_field(recipe, (owner, name, key or place), value)
    if not times:
        hint = suggest(place, list_places(recipe))
        hint = hint or "; `clew recipes NAME` lists steps and parameters"
        what = f"{key}: no such parameter" if key else f"no parameter {place!r}"
        raise ConfigError(what + hint)
    return changed


def _replace_field(value: Any, place: tuple[str, str, str], new: Any) -> tuple[Any, int]:
    if isinstance(value, tuple):
        parts = [_replace_field(part, place, new) for part in value]
        times = sum(number for _, number in parts)
        return (tuple(part for part, _ in parts) if times else value), times
    if not is_dataclass(value) or isinstance(value, type):
        return value, 0
    owner, name, key = place
    changes: dict[str, Any] = {}
    times = 0
    for item in fields(value):
        before = getattr(value, item.name)
        if not item.init:
            continue
        if type(value).__name__ == owner and item.name == name:
            usual = default_value(item)  # the sign of the default tells whether it may be negative
            kind = type_hints(type(value))[name]
            usual = before if is_dataclass(before) else usual
            changes[name], number = read_value(kind, new, key, usual), 1
        else:
            inner, number = _replace_field(before, place, new)
            if number:
                changes[item.name] = inner
        times += number
    return (replace(value, **changes) if changes else value), times


def list_places(value: Any) -> list[str]:
    """Return the places of all parameters of a recipe, as `Walk.hops`."""
    if isinstance(value, tuple):
        return [place for part in value for place in list_places(part)]
    if not is_dataclass(value) or isinstance(value, type):
        return []
    places = [f"{type(value).__name__}.{one.name}" for one in fields(value)]
    return places + [p for one in fields(value) for p in list_places(getattr(value, one.name))]


# -- writing


def write_value(kind: Any, value: Any) -> Any:
    """Convert a value of the type `kind` to plain data; None where a file has nothing to say."""
    kind = without_none(kind)
    if value is None:
        return None
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        kinds = get_args(kind)
        repeated = kinds[-1] is Ellipsis
        return [write_value(kinds[0] if repeated else kinds[at], v) for at, v in enumerate(value)]
    if is_dataclass(value) and not isinstance(value, type):
        tag = {_TAG: type(value).__name__} if kind is Step else {}
        return tag | write_fields(value)
    return value.__name__ if callable(value) else value


def _is_unset(field: Field[Any], owner: Any) -> bool:
    """Whether a value is no limit or nothing by default, which a file says by leaving it out."""
    value = getattr(owner, field.name)
    return value in (NO_LIMIT, ()) and value == field.default


def write_fields(value: Any) -> dict[str, Any]:
    """Convert a dataclass to a table of its parameters."""
    owner: type = type(value)
    hints = type_hints(owner)
    skipped = RECIPE_FIELDS if isinstance(value, Chain) else ()
    written = {
        one.name: write_value(hints[one.name], getattr(value, one.name))
        for one in fields(value)
        if one.init and one.name not in skipped and not _is_unset(one, value)
    }
    return {name: plain for name, plain in written.items() if plain is not None}
