"""Write recipes as TOML, as `clew.toml` takes them, and list what they can be made of."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from clew.recipes.agents import AGENTS, AgentRecipe
from clew.recipes.describe import find_chunk_source
from clew.recipes.parameters import write_fields, write_value
from clew.recipes.registry import BUILT_IN, RecipeSet, resolve_recipe
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

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH = 100
_INDENT = "  "


def format_recipe(name: str, new_name: str, recipes: RecipeSet = BUILT_IN) -> str:
    """Write a recipe as the table of `clew.toml` that gives the same recipe under a new name."""
    table = write_recipe(name, recipes)
    head = f"[recipes.{_format_key(new_name)}]"
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    lines = [head, *_format_pairs(plain)]
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += ["", f"[recipes.{_format_key(new_name)}.{_format_key(key)}]"]
            lines += _format_pairs(value)
    return "\n".join(lines) + "\n"


def write_recipe(name: str, recipes: RecipeSet = BUILT_IN) -> dict[str, Any]:
    """Convert a recipe to plain data: its steps, its agent, and the other fields of the chain."""
    resolved = resolve_recipe(name, recipes)
    chain, hints = resolved.retrieve, type_hints(Chain)
    table: dict[str, Any] = {"about": chain.about, "source": chain.source}
    table |= {
        one.name: write_value(hints[one.name], getattr(chain, one.name))
        for one in fields(chain)
        if one.name not in ("name", "notes")
    }
    if resolved.agent_name:
        source = recipes.agents[resolved.agent_name]
        table |= {key: getattr(source, key) for key in ("about", "source") if name == source.name}
        table["agent"] = {"name": _built_in_agent(source)} | write_fields(resolved.agent)
    table["chunk"] = write_value(hints["chunk"], resolved.chunk)
    notes = dict(chain.notes) | {"chunk": find_chunk_source(chain, resolved.chunk, resolved.agent)}
    table["notes"] = {place: note for place, note in notes.items() if note}
    return {key: value for key, value in table.items() if value not in (None, "", {})}


def _built_in_agent(recipe: AgentRecipe) -> str:
    """Return a built-in agent of the same class, which the parameters then change."""
    if recipe.name in AGENTS:
        return recipe.name
    return next(name for name, one in AGENTS.items() if type(one.agent) is type(recipe.agent))


def _format_pairs(table: Mapping[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        yield f"{_format_key(key)} = {_format_value(value)}"


def _format_value(value: Any, indent: str = "") -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _format_text(value)
    if isinstance(value, list):
        return _format_list(value, indent)
    if isinstance(value, Mapping):
        pairs = (f"{_format_key(k)} = {_format_value(v, indent)}" for k, v in value.items())
        inner = ", ".join(pairs)
        return f"{{ {inner} }}" if inner else "{}"
    return repr(value)


def _format_list(items: list[Any], indent: str) -> str:
    line = f"[{', '.join(_format_value(item, indent) for item in items)}]"
    if "\n" not in line and len(indent) + len(line) <= _WIDTH and not _has_steps(items):
        return line
    deeper = indent + _INDENT
    rows = "".join(f"{deeper}{_format_value(item, deeper)},\n" for item in items)
    return f"[\n{rows}{indent}]"


def _has_steps(items: list[Any]) -> bool:
    return any(isinstance(item, Mapping) for item in items)


def _format_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _format_text(key)


def _format_text(text: str) -> str:
    # TOML takes JSON's escapes, but not escaped surrogate pairs, nor a bare DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


# -- what recipes are made of

_PLAIN_TYPES = {bool: "true or false", int: "integer", float: "number", str: "text"}


def describe_type(kind: Any) -> str:
    """Describe a parameter's type as a user would say it."""
    kind = without_none(kind)
    origin = get_origin(kind)
    if kind in _PLAIN_TYPES:
        return _PLAIN_TYPES[kind]
    if origin is Literal:
        return " | ".join(map(_format_text, get_args(kind)))
    if origin is tuple:
        return f"list of {describe_type(get_args(kind)[0])}"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " | ".join(_format_text(choice.value) for choice in kind)
    if kind is Step:
        return "step"
    return kind.__name__ if is_dataclass(kind) and isinstance(kind, type) else "join"


def list_parameters(owner: type) -> list[dict[str, str]]:
    """Return name, type and default of every parameter of a step or an agent."""
    rows = []
    for one in fields(owner):
        if owner is Chain and one.name in RECIPE_FIELDS:
            continue
        default = default_value(one)
        shown = "required" if default is MISSING else _format_default(owner, one.name, default)
        rows.append(
            {"name": one.name, "type": describe_type(type_hints(owner)[one.name]), "default": shown}
        )
    return rows


def _format_default(owner: type, name: str, value: object) -> str:
    plain = write_value(type_hints(owner)[name], value)
    return "none" if plain in (None, NO_LIMIT) else _format_value(plain)


def list_steps() -> list[dict[str, Any]]:
    """Return every step, join and agent with one sentence and its parameters."""
    rows = [_describe("step", name, one, _first_sentence(one)) for name, one in STEPS.items()]
    rows += [
        {"kind": "join", "name": name, "about": _first_sentence(one), "parameters": []}
        for name, one in JOINS.items()
    ]
    first_of_class: dict[type, AgentRecipe] = {}
    for recipe in AGENTS.values():
        first_of_class.setdefault(type(recipe.agent), recipe)
    agents = first_of_class.items()
    return [*rows, *(_describe("agent", one.name, owner, one.about) for owner, one in agents)]


def _describe(kind: str, name: str, owner: type, about: str) -> dict[str, Any]:
    return {"kind": kind, "name": name, "about": about, "parameters": list_parameters(owner)}


def _first_sentence(documented: object) -> str:
    first = " ".join((documented.__doc__ or "").strip().split("\n\n")[0].split())
    return first.removesuffix(".")
