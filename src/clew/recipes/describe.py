"""Recipes as tables: step, parameter, value, source; and what they require."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum

from clew.retrieve.pack import NO_LIMIT
from clew.retrieve.step import Chain, Fork, Step

# Sources of parameters that papers leave open; a recipe's own note takes precedence.
DEFAULT_NOTES = {
    "NearFacts.least": "no limit",
    "NearEntities.least": "no limit",
    "NearEntities.top_k": "ours: enough to follow",
    "NearFacts.top_k": "ours: enough to follow",
    "NearFacts.subject": "ours: a sentence counts with its subject's name (docs/recipes.md)",
    "FactsOf.subject": "ours: a sentence counts with its subject's name (docs/recipes.md)",
    "FactsOf.top_k": "ours: enough to read",
    "FactsOf.order": "by cosine with the question",
    "MembersOf.top_k": "ours: enough to read",
    "ChunksOf.of": "ours: the papers rank facts, a ranking of passages follows from them",
    "ChunksOf.top_k": "ours: enough for recall@100",
    "ChunksOf.order": "ours: 1/rank of every element that a passage states",
    "Dense.top_k": "ours: enough for recall@100",
    "Lexical.top_k": "ours: enough for recall@100",
    "Lexical.k1": "Robertson and Zaragoza 2009",
    "Lexical.b": "Robertson and Zaragoza 2009",
    "Reranked.top_k": "ours: few enough to rerank quickly",
    "Collapsed.top_k": "ours: enough for recall@100",
    "Collapsed.tokens": "as RAPTOR §3: 2,000 tokens",
    "Around.top_k": "ours: enough for recall@100",
    "CitedChunks.top_k": "ours: enough for recall@100",
    "CitedChunks.of_each": "ours: the passages a report cites that fit best",
    "LinkNames.hint": "measured here (docs/recipes.md)",
    "LinkNames.namesake": "measured here (docs/recipes.md)",
    "RankedPaths.rounds": "ours: the model chooses once",
    "ReportsOf.reports": "ours: the nearest one",
    "Reports.least": "ours: one entity needs no report",
    "EntityPairs.otherwise": "the paper's global mode",
    "EntityPairs.top_k": "ours: enough for recall@100",
    "Ppr.top_k": "ours: enough for recall@100",
    "Recognise.share": "ours, without a model only",
    "DepthFirst.width": "ours: bounds the search",
    "DepthFirst.seeds": "ours: bounds the search",
    "TypedPaths.width": "ours: bounds the search",
    "TypedPaths.seeds": "ours: bounds the search",
    "TypedPaths.types": "ours, without a model only",
    "TypedPaths.top_k": "ours",
    "BeamPaths.prefilter": "ours: what fits in one prompt",
    "BeamPaths.top_k": "ours",
    "SameWords.top_k": "ours: enough to read",
    "PrizedTree.reach": "ours: bounds the search",
    "Keep.chunks": "ours: no limit of the method",
    "Keep.entities": "ours: no limit of the method",
    "Keep.paths": "ours: no limit of the method",
    "Budget.entities": "no limit",
    "Budget.facts": "no limit",
    "Budget.chunks": "no limit",
    "Budget.total": "no limit",
}
NO_NEEDS = "nothing"
OPTIONAL_MODEL = "a model, if any"
# Steps that ask a model if there is one.
_MODEL_STEPS = {"Keywords", "QuestionEntities", "Recognise"}
# Steps that use a tree if there is one.
_OPTIONAL_TREE_STEPS = {"IfGrown", "ReportsOf"}


def required_trees(step: Step) -> tuple[str, ...]:
    """Return the trees a recipe needs; `clew tree --grow --by NAME` builds each."""
    trees: dict[str, None] = {}
    pending: list[object] = [step]
    while pending:
        item = pending.pop()
        if isinstance(item, tuple):
            pending += reversed(item)
        elif is_dataclass(item) and not isinstance(item, type):
            for field in fields(item):
                value = getattr(item, field.name)
                if field.name == "tree":
                    trees[str(value)] = None
                pending.append(value)
    return tuple(trees)


def tabulate_steps(recipe: Chain) -> list[dict[str, str]]:
    """Return one row per parameter of every step, with the source of its value."""
    notes = dict(recipe.notes)
    return [
        {
            "step": step,
            "parameter": name,
            "value": value,
            "source": notes.get(key := f"{step}.{name}") or DEFAULT_NOTES.get(key, recipe.source),
        }
        for step, name, value in _iter_parameters(recipe.steps)
    ]


def describe_recipe_needs(recipe: Chain) -> str:
    """Describe what a recipe requires, and what it can use."""
    kinds = {step for step, _, _ in _iter_parameters(recipe.steps)}
    needs = ["an embedder"] if kinds - {"Lexical", "Fork"} else [NO_NEEDS]
    if_any = ", if grown" if kinds & _OPTIONAL_TREE_STEPS else ""
    needs += [f"a tree (`clew tree --grow --by {tree}`){if_any}" for tree in required_trees(recipe)]
    if "Reranked" in kinds:
        needs.append("a reranker ([rerank] in clew.toml)")
    by_model = any(
        name == "by" and value == "'llm'" for _, name, value in _iter_parameters(recipe.steps)
    )
    if by_model or kinds & _MODEL_STEPS:
        needs.append(OPTIONAL_MODEL)
    return "; ".join(needs)


def tabulate_agent(agent: object, source: str) -> list[dict[str, str]]:
    """Return one row per parameter of an agent."""
    known = fields(agent) if is_dataclass(agent) else ()
    return [
        {
            "step": type(agent).__name__,
            "parameter": field.name,
            "value": _format_value(getattr(agent, field.name)),
            "source": source,
        }
        for field in known
    ]


def _iter_parameters(steps: tuple[Step, ...]) -> Iterator[tuple[str, str, str]]:
    for step in steps:
        kind = type(step).__name__
        if isinstance(step, Fork):
            yield kind, "join", step.join.__name__
            yield from _iter_parameters(step.branches)
        elif isinstance(step, Chain):
            yield from _iter_parameters(step.steps)
        elif is_dataclass(step) and fields(step):
            for field in fields(step):
                if field.name == "step":
                    yield from _iter_parameters((getattr(step, field.name),))
                else:
                    yield kind, field.name, _format_value(getattr(step, field.name))
        else:
            yield kind, "", ""


def _format_value(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    return "none" if value == NO_LIMIT else repr(value)
