"""All retrieval steps and joins by name, as `clew.toml` writes them, and their description."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from clew.retrieve.communities.steps import (
    Around,
    BottomUp,
    CitedChunks,
    IfGrown,
    Reports,
    ReportsOf,
    TopDown,
)
from clew.retrieve.communities.summary_tree import Collapsed, EntityPairs
from clew.retrieve.expand import ChunksOf, FactsOf, MembersOf
from clew.retrieve.linking.fact_filter import Recognise
from clew.retrieve.linking.keywords import Keywords, QuestionEntities
from clew.retrieve.linking.link_entities import LinkEntities
from clew.retrieve.linking.link_names import LinkNames
from clew.retrieve.linking.page_facts import OwnFacts
from clew.retrieve.lookup import Dense, Lexical, NearEntities, NearFacts, SameName, SameWords
from clew.retrieve.pack import NO_LIMIT, Budget
from clew.retrieve.paths.beam import BeamPaths
from clew.retrieve.paths.entity_paths import DepthFirst, FlowPaths, TypedPaths
from clew.retrieve.paths.ranked import RankAnswers, RankedPaths, StructuralPaths
from clew.retrieve.ppr import Ppr, Specific, WeighEntities
from clew.retrieve.rank import Keep, Reranked, fuse_chunks, in_turns, reciprocal_facts
from clew.retrieve.step import Chain, Fork, Step
from clew.retrieve.subgraph.extract import (
    AdaptiveSubgraph,
    EgoSubgraph,
    IndexSubgraph,
    PartitionSubgraph,
    PprSubgraph,
    PrizedTree,
    WalkedSubgraph,
)
from clew.retrieve.subgraph.prune import Prune
from clew.retrieve.walk import Walk
from clew.types import Found

Join = Callable[[Sequence[Found]], Found]
_STEP_CLASSES: tuple[type, ...] = (
    # what the question says
    *(Keywords, QuestionEntities, LinkNames, LinkEntities),
    # look up
    *(Dense, Lexical, NearEntities, SameName, NearFacts, SameWords),
    # expand and walk
    *(FactsOf, MembersOf, ChunksOf, OwnFacts, Walk, Recognise, WeighEntities, Specific, Ppr),
    # communities and summaries
    *(TopDown, BottomUp, IfGrown, Reports, CitedChunks, Around, ReportsOf, Collapsed, EntityPairs),
    # subgraphs
    *(PprSubgraph, EgoSubgraph, WalkedSubgraph, AdaptiveSubgraph, PartitionSubgraph),
    *(IndexSubgraph, PrizedTree, Prune),
    # paths
    *(FlowPaths, DepthFirst, TypedPaths, StructuralPaths, RankedPaths, BeamPaths, RankAnswers),
    # cut and combine
    *(Reranked, Keep, Budget, Chain, Fork),
)
STEPS: dict[str, type] = {one.__name__: one for one in _STEP_CLASSES}
JOINS: dict[str, Join] = {one.__name__: one for one in (fuse_chunks, in_turns, reciprocal_facts)}
RECIPE_FIELDS = ("about", "source", "notes", "chunk", "layout")
"""Fields of a chain that only a whole recipe has, not one within another."""


@cache
def type_hints(owner: type) -> dict[str, Any]:
    """Return the resolved types of a dataclass's fields."""
    return get_type_hints(owner)


def default_value(field: Field[Any]) -> Any:
    """Return a field's default, or MISSING."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def without_none(kind: Any) -> Any:
    """Return `X` of `X | None`; other types unchanged."""
    if get_origin(kind) in (Union, UnionType):
        return next(part for part in get_args(kind) if part is not NoneType)
    return kind


_PLAIN_TYPES = {bool: "true or false", int: "integer", float: "number", str: "text"}


def describe_type(kind: Any) -> str:
    """Describe a parameter's type as a user would say it."""
    kind = without_none(kind)
    origin = get_origin(kind)
    if kind in _PLAIN_TYPES:
        return _PLAIN_TYPES[kind]
    if origin is Literal:
        return " | ".join(repr(choice) for choice in get_args(kind))
    if origin is tuple:
        return f"list of {describe_type(get_args(kind)[0])}"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " | ".join(repr(choice.value) for choice in kind)
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
        shown = "required" if default is MISSING else _format_default(default)
        rows.append(
            {"name": one.name, "type": describe_type(type_hints(owner)[one.name]), "default": shown}
        )
    return rows


def _format_default(value: object) -> str:
    if isinstance(value, Enum):
        return repr(value.value)
    return "none" if value is None or value == NO_LIMIT else repr(value)


def list_steps(agents: Mapping[str, object]) -> list[dict[str, Any]]:
    """Return every step, join and agent with one sentence and its parameters."""
    rows: list[dict[str, Any]] = [_describe("step", name, one) for name, one in STEPS.items()]
    rows += [
        {"kind": "join", "name": name, "about": _first_sentence(one), "parameters": []}
        for name, one in JOINS.items()
    ]
    return [*rows, *(_describe("agent", name, type(one)) for name, one in agents.items())]


def _describe(kind: str, name: str, owner: type) -> dict[str, Any]:
    about = _first_sentence(owner)
    return {"kind": kind, "name": name, "about": about, "parameters": list_parameters(owner)}


def _first_sentence(documented: object) -> str:
    first = " ".join((documented.__doc__ or "").strip().split("\n\n")[0].split())
    return first.removesuffix(".")
