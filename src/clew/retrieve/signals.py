"""Runs a recipe so that its trace names the signals used and its scores never rise.

A step that weighs signals against each other says so itself; for all others the kinds of their
steps tell what the ranking goes by.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from clew.context import Context, TraceStep
from clew.errors import UnknownNameError
from clew.retrieve.step import Step
from clew.types import Found, Hit

SIGNALS_STEP = "signals"
"""Name of the traced step whose output names the signals."""
_NAMES = "names"
# What each kind of step ranks by; steps that only cut, join or reorder rank by nothing new.
SIGNALS: dict[str, tuple[str, ...]] = {
    _NAMES: (
        *("Keywords", "ExpandKeywords", "QuestionEntities", "LinkNames", "LinkEntities"),
        *("SameName", "EntityPairs"),
    ),
    "words": ("Lexical", "SameWords"),
    "meaning": ("Dense", "NearEntities", "NearFacts", "NearAttributes", "Recognise", "Collapsed"),
    "best sentence": ("BestSentence",),
    "section and page": ("RankSections", "WholeSections"),
    "walk": ("Walk",),
    "facts": ("FactsOf", "MembersOf", "ChunksOf", "OwnFacts", "WeighEntities", "Specific"),
    "links": (
        *("Ppr", "SemanticBridge", "MessagePassing", "SumEntities", "PprSubgraph", "EgoSubgraph"),
        *("WalkedSubgraph", "AdaptiveSubgraph", "PartitionSubgraph", "IndexSubgraph", "PrizedTree"),
        "Prune",
    ),
    "paths": (
        *("FlowPaths", "DepthFirst", "TypedPaths", "StructuralPaths", "RankedPaths", "BeamPaths"),
        *("PropositionPaths", "RankAnswers"),
    ),
    "communities": (*("TopDown", "BottomUp", "Reports", "CitedChunks", "Around", "ReportsOf"),),
    "cross-encoder": ("Reranked",),
}
_MAX_KEPT = 64
_KEPT: dict[int, tuple[Step, tuple[str, ...]]] = {}
"""Signals by the identity of a recipe, which is kept, too."""
_SIGNAL_OF = {step: signal for signal, steps in SIGNALS.items() for step in steps}


async def run_recipe(recipe: Step, ctx: Context, otherwise: Step | None = None) -> Found:
    """Run a recipe from nothing; the trace names its signals, and scores do not rise by place.

    `otherwise` is run in its place where a recipe starts at names and the question has none.
    """
    before = len(ctx.trace)
    try:
        found = await recipe(ctx, Found())
    except UnknownNameError as error:
        if otherwise is None or not ctx.view.count("chunk"):
            raise
        ctx.trace.append(TraceStep("link", "", str(error), 0.0))
        found = await otherwise(ctx, Found())
        said = f"{describe_signals(otherwise, found)} (the question names nothing known)"
        ctx.trace.append(TraceStep(SIGNALS_STEP, "", said, 0.0))
    if not any(step.step == SIGNALS_STEP for step in ctx.trace[before:]):
        ctx.trace.append(TraceStep(SIGNALS_STEP, "", describe_signals(recipe, found), 0.0))
    return replace(found, chunks=level_scores(found.chunks))


def level_scores(hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """Give no hit a higher score than the one before it.

    Rankings taken in turns, and those that put copies and further passages of a page back, are not
    in the order of the scores they started from.
    """
    levelled: list[Hit] = []
    for hit in hits:
        high = levelled and hit.score > levelled[-1].score
        levelled.append(replace(hit, score=levelled[-1].score) if high else hit)
    return tuple(levelled)


def describe_signals(recipe: Step, found: Found) -> str:
    """Name what a recipe ranks by, in the order of its steps, and what of it was not there."""
    used = dict.fromkeys(_list_signals(recipe))
    if _NAMES in used and not (found.entities or found.names):
        del used[_NAMES]
        return f"{', '.join(used) or 'nothing'} (the question names nothing known)"
    return ", ".join(used) or type(recipe).__name__


def _list_signals(recipe: Step) -> tuple[str, ...]:
    """Return the signals of all steps in order; those of the last recipes are kept."""
    kept, found = _KEPT.get(id(recipe), (None, ()))
    if kept is not recipe:
        found = tuple(filter(None, map(_SIGNAL_OF.get, _step_names(recipe))))
        if len(_KEPT) >= _MAX_KEPT:
            _KEPT.clear()
        _KEPT[id(recipe)] = recipe, found
    return found


def _step_names(part: Any) -> Iterator[str]:
    """Yield the names of all steps within a step, outer ones first."""
    if isinstance(part, tuple):
        for one in part:
            yield from _step_names(one)
    elif is_dataclass(part):
        yield type(part).__name__
        for one in fields(part):
            yield from _step_names(getattr(part, one.name))
