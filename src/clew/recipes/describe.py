"""Recipes as tables: step, parameter, value, source; and what they require."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum

from clew.layout import PASSAGES, Layout, Section
from clew.recipes.layouts import LAYOUT_SOURCES
from clew.retrieve.pack import NO_LIMIT
from clew.retrieve.step import Chain, Fork, Step
from clew.types import Chunking

CONFIGURED = "clew.toml"
"""Source of recipes and parameters that the user has written."""
BUILT_IN_VALUE = "as built in"
"""Source of a parameter that a recipe of the user's leaves as it is."""
OURS = "ours"
"""Source of a number that neither a paper nor its code gives."""
# Sources of parameters that papers leave open; a recipe's own note takes precedence.
DEFAULT_NOTES = {
    "NearFacts.least": "no limit",
    "NearEntities.least": "no limit",
    "NearAttributes.of": "the whole question, as facts are",
    "NearEntities.top_k": "ours: enough to follow",
    "NearFacts.top_k": "ours: enough to follow",
    "NearFacts.subject": "ours: a sentence counts with its subject's name (docs/recipes.md)",
    "FactsOf.subject": "ours: a sentence counts with its subject's name (docs/recipes.md)",
    "FactsOf.top_k": "ours: enough to read",
    "FactsOf.order": "ours: by cosine with the question",
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
    "NearEntities.each": "ours: each name by itself, or all as one text",
    "PprSubgraph.exact": "ours: approximate, as the report's fastest",
    "BeamPaths.scoring": "ours: as LEGO-GraphRAG scores, by the whole path",
    "BeamPaths.pruning": "ours: as LEGO-GraphRAG prunes, a fixed width",
    "BeamPaths.supplement": "ours: the embedder fills what a model leaves out",
    "BeamPaths.refine": "ours: off",
    "BeamPaths.early_stop": "ours: off",
    "RankedPaths.supplement": "ours: the embedder fills what a model leaves out",
    "RankedPaths.rerank": "ours: off",
    "CitedChunks.of_each": "ours: the passages a report cites that fit best",
    "LinkNames.hint": "measured here (docs/recipes.md)",
    "LinkNames.namesake": "measured here (docs/recipes.md)",
    "RankedPaths.rounds": "ours: the model chooses once",
    "ReportsOf.reports": "ours: the nearest one",
    "Reports.least": "ours: one entity needs no report",
    "EntityPairs.otherwise": "the paper's global mode; its numbers are ours",
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
# Sources of agents' parameters. What papers and their code give is named; other numbers are ours.
AGENT_NOTES = {
    "GraphSearch.top_k": "GraphSearch paper, implementation details: Top-K 30",
    "GraphSearch.sub_queries": "ours: as many as the paper's examples have (figure 9)",
    "GraphSearch.expansions": "ours: the paper sets no bound",
    "GraphSearch.max_reflections": "ours: the paper sets no bound",
    "GraphSearch.chunk": "GraphSearch paper, implementation details: 400 tokens",
    "GraphSearch.calls": "ours: bounds the cost of a question",
    "GraphSearch.rules": "ours: rules plan where a question's pattern is known",
    "Youtu.top_k": "Youtu-GraphRAG Table 1: top-20 (Table 2: top-10)",
    "Youtu.max_steps": "Youtu-GraphRAG authors' code: 5 steps",
    "Youtu.sub_questions": "ours: as many as the paper's example has (§A.8.1)",
    "Youtu.rules": "ours: rules plan where a question's pattern is known",
    "Rograg.check": "ROGRAG Table 7: arguments checked before the answer",
    "Rograg.rules": "ours: rules plan where a question's pattern is known",
    "GraphR1.top_k": "Graph-R1 Table 7: 5 per turn",
    "GraphR1.turns": "ours: the paper reports 2.3 to 2.5 turns on average",
    "GraphR1.brief": "ours: for trained policies",
    "GraphR1.unaided": "ours: for trained policies",
    "GraphR1.show": "Graph-R1 §4.2: the fused facts with their scores",
    "GraphR1.room": "ours: of the 4,096 tokens of an episode",
}
NO_NEEDS = "nothing"
NO_NOTES: Mapping[str, str] = {}
OPTIONAL_MODEL = "a model, if any"
# Steps that ask a model if there is one.
_MODEL_STEPS = {"ExpandKeywords", "Keywords", "QuestionEntities", "Recognise"}
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


def find_chunk_source(chain: Chain, chunk: Chunking | None, agent: object) -> str:
    """Return where a recipe's chunk size comes from: its retriever, or else its agent."""
    if chunk == chain.chunk:
        return dict(chain.notes).get("chunk", "")
    return AGENT_NOTES.get(f"{type(agent).__name__}.chunk", "")


def tabulate_steps(recipe: Chain) -> list[dict[str, str]]:
    """Return one row per parameter of every step, with the source of its value."""
    notes = dict(recipe.notes)
    return [
        {
            "step": step,
            "parameter": name,
            "value": value,
            "source": notes.get(f"{step}.{name}") or _find_source(recipe.source, step, name, value),
        }
        for step, name, value in _iter_parameters(recipe.steps)
    ]


def _find_source(source: str, step: str, name: str, value: str) -> str:
    """Return the source of a parameter without a note of its recipe.

    What a method does is its paper's; a number is the paper's only if a note says so.
    """
    if source == CONFIGURED:
        return DEFAULT_NOTES.get(f"{step}.{name}", BUILT_IN_VALUE)
    own = OURS if _is_number(value) and not source.startswith("measured here") else source
    return DEFAULT_NOTES.get(f"{step}.{name}", own)


def _is_number(value: str) -> bool:
    return value.lstrip("-").replace(".", "", 1).isdigit()


def describe_recipe_needs(recipe: Chain) -> str:
    """Describe what a recipe requires, and what it can use."""
    kinds = {step for step, _, _ in _iter_parameters(recipe.steps)}
    needs = ["an embedder"] if kinds - {"Lexical", "Fork"} else [NO_NEEDS]
    if_any = ", if grown" if kinds & _OPTIONAL_TREE_STEPS else ""
    needs += [f"a tree (`clew tree --grow --by {tree}`){if_any}" for tree in required_trees(recipe)]
    values = {(name, value) for _, name, value in _iter_parameters(recipe.steps)}
    if "Reranked" in kinds or ("scorer", "'cross-encoder'") in values:
        needs.append("a reranker ([rerank] in clew.toml)")
    if ("scorer", "'llm-embeddings'") in values:
        needs.append("a model whose endpoint answers /embeddings, if any")
    asks_model = values & {("by", "'llm'"), ("refine", "True"), ("early_stop", "True")}
    if asks_model or kinds & _MODEL_STEPS:
        needs.append(OPTIONAL_MODEL)
    return "; ".join(needs)


def tabulate_agent(
    agent: object, source: str, notes: Mapping[str, str] = NO_NOTES
) -> list[dict[str, str]]:
    """Return one row per parameter of an agent.

    One that has no note and differs from its default is `source`'s.
    """
    rows = []
    for field in fields(agent) if is_dataclass(agent) else ():
        name, value = type(agent).__name__, getattr(agent, field.name)
        shown = _format_value(value)
        usual = OURS if _is_number(shown) else source
        note = source if value != field.default else AGENT_NOTES.get(f"{name}.{field.name}", usual)
        note = notes.get(f"{name}.{field.name}", note)
        rows.append({"step": name, "parameter": field.name, "value": shown, "source": note})
    return rows


def tabulate_layout(layout: Layout) -> list[dict[str, str]]:
    """Return one row per kind of evidence shown to the model, in order, then the total."""
    usual = "ours: whole passages"
    source = LAYOUT_SOURCES.get(layout, usual if layout == PASSAGES else CONFIGURED)
    rows: list[tuple[str, str]] = [(one.kind, _format_section(one)) for one in layout.sections]
    rows.append(("total", f"{layout.total} tokens" if layout.total else "what the window leaves"))
    return [
        {"step": "shows", "parameter": name, "value": value, "source": "" if at else source}
        for at, (name, value) in enumerate(rows)
    ]


def _format_section(section: Section) -> str:
    parts = [
        "what is left" if section.tokens is None else f"{section.tokens} tokens",
        "" if section.most is None else f"{section.most} at most",
        "best last" if section.best_last else "",
        "with scores" if section.scores else "",
        "also bare names" if section.bare else "",
    ]
    return ", ".join(filter(None, parts))


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
