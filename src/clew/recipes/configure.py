"""Recipes from plain data, as the tables `[recipes.NAME]` of `clew.toml` hold it.

`base` starts from another recipe; `steps`, `agent` and the other fields of a chain replace what it
has, and `set` changes single parameters. Every error is one sentence that begins with the key.
"""

import re
import tomllib
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any

from clew.errors import ConfigError, suggest
from clew.layout import MIN_TOKENS, Layout
from clew.llm.trained_model import NO_KB_RECIPE
from clew.recipes.agents import AGENTS, AgentRecipe
from clew.recipes.describe import CONFIGURED, find_chunk_source
from clew.recipes.parameters import (
    check_keys,
    list_places,
    read_fields,
    read_value,
    vary_parameter,
)
from clew.recipes.registry import BUILT_IN, RECIPES, RecipeSet, ResolvedRecipe, resolve_recipe
from clew.recipes.steps import type_hints
from clew.retrieve.step import Chain

_MAX_RECIPES = 500
_MAX_BASES = 20
_MAX_NAME = 80
_NAME = re.compile(r"\w[\w.-]*")
_OWN_KEYS = ("base", "agent", "set")
_CHAIN_KEYS = tuple(one.name for one in fields(Chain) if one.name != "name")
RECIPE_KEYS = (*_OWN_KEYS, *_CHAIN_KEYS)


def add_own_recipes(tables: Mapping[str, Any], file: str = CONFIGURED) -> RecipeSet:
    """Return the built-in recipes and those in `tables` (name → table); raise if one is wrong."""
    if not tables:
        return BUILT_IN
    if len(tables) > _MAX_RECIPES:
        raise ConfigError(
            f"{file}: recipes: has {len(tables):,} recipes, and at most {_MAX_RECIPES} are allowed"
        )
    builder = _Builder(tables, f"{file}: recipes")
    for name in tables:
        builder.build(name)
    return builder.recipes


@dataclass
class _Builder:
    """Builds each recipe once, its base first."""

    tables: Mapping[str, Any]
    where: str
    chains: dict[str, Chain] = field(default_factory=dict)
    agents: dict[str, AgentRecipe] = field(default_factory=dict)
    pending: list[str] = field(default_factory=list)

    @property
    def recipes(self) -> RecipeSet:
        """The built-in recipes first, then the own ones."""
        # Views: recipes that are registered later, as the rows of a grid are, are found too.
        return RecipeSet(ChainMap(self.chains, RECIPES), ChainMap(self.agents, AGENTS))

    def build(self, name: str) -> None:
        """Build a recipe, unless it is built already."""
        if name in self.chains:
            return
        key = _check_name(name, self.where)
        table = check_keys(self.tables[name], RECIPE_KEYS, key)
        self.pending.append(name)
        base = self._find_base(table, key)
        agent = self._read_agent(table, key, base)
        if base is None and "steps" not in table:
            if agent is None:
                raise ConfigError(f"{key}: needs `steps`, or a `base` to start from")
            base = agent  # with the agent's own retriever
        preset = self.recipes.agents[agent.agent_name].chunk if agent else None
        if base is not None and agent is not None and preset is not None:
            base = replace(base, agent=agent.agent, chunk=preset)
        chain = _read_chain(name, table, key, base)
        found = agent or base
        pair: Any = (found.agent if found and found.agent_name else None, chain)
        pair = _apply_changes(pair, table, key)
        self.chains[name] = _note_changes(pair[1], table, pair[0])
        if pair[0] is not None:
            about, source = self.chains[name].about, self.chains[name].source
            self.agents[name] = AgentRecipe(name, pair[0], about, source, (name,))
        self.pending.remove(name)

    def _find_base(self, table: Mapping[str, Any], key: str) -> ResolvedRecipe | None:
        if "base" not in table:
            return None
        name = read_value(str, table["base"], f"{key}.base")
        for part in name.split("+"):
            if part in self.pending:
                circle = " → ".join([*self.pending[self.pending.index(part) :], part])
                raise ConfigError(f"{key}.base: {circle} goes in a circle")
            if len(self.pending) > _MAX_BASES:
                raise ConfigError(f"{key}.base: follows more than {_MAX_BASES} bases")
            if part in self.tables:
                self.build(part)
        return self._resolve(name, f"{key}.base")

    def _resolve(self, name: str, key: str) -> ResolvedRecipe:
        try:
            return resolve_recipe(name, self.recipes)
        except ConfigError as error:
            known = [*self.recipes.retrievers, *self.recipes.agents]
            hint = suggest(name.rpartition("+")[2], known) or "; `clew recipes` lists them"
            raise ConfigError(f"{key}: no recipe {name!r}{hint}") from error

    def _read_agent(
        self, table: Mapping[str, Any], key: str, base: ResolvedRecipe | None
    ) -> ResolvedRecipe | None:
        """Read `agent`: a name, or a table with `name` (else the base's agent) and parameters."""
        if "agent" not in table:
            return None
        key, given = f"{key}.agent", table["agent"]
        given = {"name": given} if isinstance(given, str) else given
        if not isinstance(given, Mapping):
            raise ConfigError(f"{key}: must be an agent's name or a table")
        parameters = {one: value for one, value in given.items() if one != "name"}
        if "name" not in given:
            if base is None or not base.agent_name:
                raise ConfigError(f'{key}.name: is missing; give an agent, e.g. "graphsearch"')
            found = base
        else:
            name = read_value(str, given["name"], f"{key}.name")
            if name not in self.recipes.agents:
                hint = suggest(name, self.recipes.agents) or "; `clew recipes` lists them"
                raise ConfigError(f"{key}.name: no agent {name!r}{hint}")
            found = resolve_recipe(name, self.recipes)
        agent = read_fields(type(found.agent), parameters, key, found.agent)
        return replace(found, agent=agent)


def read_change(recipe: ResolvedRecipe, text: str) -> tuple[str, Any]:
    """Read `field=value` or `Step.field=value` as the place of a parameter and its value.

    A bare field is the agent's, or else that of the first step that has one of this name.
    """
    place, equals, given = (part.strip() for part in text.partition("="))
    if not equals or not place:
        raise ConfigError(f"--set {text}: write it as field=value, e.g. top_k=10")
    try:
        value = tomllib.loads(f"value = {given}")["value"]
    except tomllib.TOMLDecodeError:
        value = given
    if "." not in place:
        places = list_places((recipe.agent, recipe.retrieve))
        own = [one for one in places if one.rpartition(".")[2] == place]
        if not own:
            hint = suggest(place, [one.rpartition(".")[2] for one in places])
            raise ConfigError(f"--set {text}: the recipe has no such parameter{hint}")
        place = own[0]
    return place, value


def _check_name(name: Any, where: str) -> str:
    key = f"{where}.{name}"
    if not isinstance(name, str):
        raise ConfigError(f"{key}: a recipe's name must be a text")
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        raise ConfigError(
            f"{where}.{name[:_MAX_NAME]!r}: a recipe's name has letters, digits, `-`, `_` and `.`, "
            f"and at most {_MAX_NAME} of them"
        )
    if name in RECIPES or name in AGENTS or name == NO_KB_RECIPE:
        raise ConfigError(f"{key}: is the name of a built-in recipe; choose another name")
    return key


def _read_chain(
    name: str, table: Mapping[str, Any], key: str, base: ResolvedRecipe | None
) -> Chain:
    """Read the fields of a chain; what is not given comes from the base."""
    own_steps = "steps" in table
    values: dict[str, Any] = {"name": name}
    if base is not None:
        values = {one: getattr(base.retrieve, one) for one in _CHAIN_KEYS} | values
        values["chunk"] = base.chunk
        values["notes"] = _note_chunk(
            base.retrieve.notes, find_chunk_source(base.retrieve, base.chunk, base.agent)
        )
    if own_steps:  # the sources of the base's numbers are not those of these
        values |= {"source": CONFIGURED, "notes": ()}
    for one in _CHAIN_KEYS:
        if one == "notes" and one in table:
            values[one] = _read_notes(table[one], f"{key}.notes")
        elif one in table:
            usual = values.get(one, MISSING)
            values[one] = read_value(type_hints(Chain)[one], table[one], f"{key}.{one}", usual)
    chain = Chain(**values)
    if "layout" in table:
        _check_layout(chain.layout, f"{key}.layout")
    return chain


def _check_layout(layout: Layout, key: str) -> None:
    """Refuse a layout that would show nothing, or the same twice."""
    if layout.total is not None and layout.total < MIN_TOKENS:
        raise ConfigError(f"{key}.total: must be at least {MIN_TOKENS} tokens")
    if len(set(layout.kinds)) != len(layout.kinds):
        twice = next(kind for kind in layout.kinds if layout.kinds.count(kind) > 1)
        raise ConfigError(f"{key}.sections: {twice} stands there twice")


def _read_notes(data: Any, key: str) -> tuple[tuple[str, str], ...]:
    table = check_keys(data, data if isinstance(data, Mapping) else (), key)
    return tuple((name, read_value(str, note, f'{key}."{name}"')) for name, note in table.items())


def _iter_changes(table: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the changes as (place, value); `Walk.hops` may be written with or without quotes."""
    changes = []
    for place, value in table.get("set", {}).items():
        if isinstance(value, Mapping) and "." not in place:
            changes += [(f"{place}.{name}", inner) for name, inner in value.items()]
        else:
            changes.append((place, value))
    return changes


def _apply_changes(pair: Any, table: Mapping[str, Any], key: str) -> Any:
    if not isinstance(table.get("set", {}), Mapping):
        raise ConfigError(f'{key}.set: must be a table, e.g. {{ "Walk.hops" = 2 }}')
    for place, value in _iter_changes(table):
        pair = vary_parameter(pair, place, value, f"{key}.set.{place}")
    return pair


def _note_chunk(notes: Sequence[tuple[str, str]], source: str) -> tuple[tuple[str, str], ...]:
    """Return the notes with this source of the chunk size, or with none."""
    others = {place: note for place, note in notes if place != "chunk"}
    return tuple((others | ({"chunk": source} if source else {})).items())


def _iter_given(steps: Any) -> Iterator[str]:
    """Return the parameters that a list of steps sets, also those of steps within steps."""
    for item in steps if isinstance(steps, list | tuple) else [steps]:
        if isinstance(item, Mapping):
            for name, value in item.items():
                if name != "step" and "step" in item:
                    yield f"{item['step']}.{name}"
                yield from _iter_given(value)


def _note_changes(chain: Chain, table: Mapping[str, Any], agent: object) -> Chain:
    """Mark changed parameters as the user's, whatever source the base names for them."""
    changed = dict.fromkeys((place for place, _ in _iter_changes(table)), CONFIGURED)
    if "source" not in table:  # a source that is given is that of all values
        given = [*_iter_given(table.get("steps", ()))]
        if isinstance(table.get("agent"), Mapping):
            given += [f"{type(agent).__name__}.{name}" for name in table["agent"] if name != "name"]
        changed |= {place: CONFIGURED for place in given if place not in table.get("notes", {})}
    if "chunk" in table and "chunk" not in table.get("notes", {}):
        changed["chunk"] = CONFIGURED
    return replace(chain, notes=tuple({**dict(chain.notes), **changed}.items()))
