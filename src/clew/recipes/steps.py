"""All retrieval steps and joins by name, as `clew.toml` writes them, and their field types."""

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from clew.retrieve.activation import MessagePassing, SemanticBridge, SumEntities
from clew.retrieve.blend import Blended
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
from clew.retrieve.linking.keywords import ExpandKeywords, Keywords, QuestionEntities
from clew.retrieve.linking.link_entities import LinkEntities
from clew.retrieve.linking.link_names import LinkNames
from clew.retrieve.linking.page_facts import OwnFacts
from clew.retrieve.lookup import (
    Dense,
    Lexical,
    NearAttributes,
    NearEntities,
    NearFacts,
    SameName,
    SameWords,
)
from clew.retrieve.pack import Budget
from clew.retrieve.paths.beam import BeamPaths
from clew.retrieve.paths.entity_paths import DepthFirst, FlowPaths, TypedPaths
from clew.retrieve.paths.propositions import PropositionPaths
from clew.retrieve.paths.ranked import RankAnswers, RankedPaths, StructuralPaths
from clew.retrieve.ppr import Ppr, Specific, WeighEntities
from clew.retrieve.rank import Keep, Reranked, fuse_chunks, in_turns, reciprocal_facts
from clew.retrieve.sections import BestSentence, RankSections, WholeSections
from clew.retrieve.spread import Spread
from clew.retrieve.step import Chain, Fork
from clew.retrieve.subgraph.extract import (
    AdaptiveSubgraph,
    EgoSubgraph,
    IndexSubgraph,
    PprSubgraph,
    PrizedTree,
    WalkedSubgraph,
)
from clew.retrieve.subgraph.partition import PartitionSubgraph
from clew.retrieve.subgraph.prune import Prune
from clew.retrieve.tidy import TidyQuestion
from clew.retrieve.walk import Walk
from clew.types import Found

Join = Callable[[Sequence[Found]], Found]
_STEP_CLASSES: tuple[type, ...] = (
    # what the question says
    *(TidyQuestion, Keywords, ExpandKeywords, QuestionEntities, LinkNames, LinkEntities),
    # look up
    *(Dense, Lexical, NearEntities, NearAttributes, SameName, NearFacts, SameWords),
    # sections and pages
    *(BestSentence, RankSections, WholeSections),
    # expand and walk
    *(
        FactsOf,
        MembersOf,
        ChunksOf,
        OwnFacts,
        Walk,
        Blended,
        Spread,
        Recognise,
        WeighEntities,
        Specific,
        Ppr,
    ),
    *(SemanticBridge, MessagePassing, SumEntities),
    # communities and summaries
    *(TopDown, BottomUp, IfGrown, Reports, CitedChunks, Around, ReportsOf, Collapsed, EntityPairs),
    # subgraphs
    *(PprSubgraph, EgoSubgraph, WalkedSubgraph, AdaptiveSubgraph, PartitionSubgraph),
    *(IndexSubgraph, PrizedTree, Prune),
    # paths
    *(FlowPaths, DepthFirst, TypedPaths, StructuralPaths, RankedPaths, BeamPaths, RankAnswers),
    PropositionPaths,
    # cut and combine
    *(Reranked, Keep, Budget, Chain, Fork),
)
STEPS: dict[str, type] = {one.__name__: one for one in _STEP_CLASSES}
JOINS: dict[str, Join] = {one.__name__: one for one in (fuse_chunks, in_turns, reciprocal_facts)}
RECIPE_FIELDS = tuple(one.name for one in fields(Chain) if one.name not in ("name", "steps"))
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
