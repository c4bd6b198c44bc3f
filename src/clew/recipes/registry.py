"""The registry of recipes by name, and how a name resolves to an agent and a retriever."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from clew.agents.base import Agent, Trainable
from clew.agents.baselines import ClosedBook
from clew.errors import ConfigError, suggest
from clew.llm.trained_model import NO_KB_RECIPE, TrainedConfig
from clew.recipes.agents import AGENTS, AgentRecipe
from clew.recipes.default import CLEW, CLEW_BEAM, SMALL_TO_BIG
from clew.recipes.describe import (
    BUILT_IN_VALUE,
    NO_NEEDS,
    OPTIONAL_MODEL,
    describe_recipe_needs,
    tabulate_agent,
    tabulate_layout,
    tabulate_steps,
)
from clew.recipes.lego import LEGO_RECIPES
from clew.recipes.papers import (
    BM25,
    DUAL_LEVEL_RECIPES,
    GRAPH_R1_RECIPES,
    HIPPORAG_RECIPES,
    HYBRID,
    KEYWORDS,
    NAIVE,
    PATH_RECIPES,
    RERANKED,
    TREE_RECIPES,
)
from clew.recipes.propositions import PROPOSITION_RECIPES
from clew.retrieve.step import Chain
from clew.types import Chunking

RECIPES: dict[str, Chain] = {
    recipe.name: recipe
    for recipe in (
        CLEW,
        CLEW_BEAM,
        NAIVE,
        BM25,
        KEYWORDS,
        HYBRID,
        RERANKED,
        SMALL_TO_BIG,
        *DUAL_LEVEL_RECIPES,
        *HIPPORAG_RECIPES,
        *GRAPH_R1_RECIPES,
        *PATH_RECIPES,
        *TREE_RECIPES,
        *PROPOSITION_RECIPES,
        *LEGO_RECIPES,
    )
}

GROUPS: Mapping[str, tuple[str, ...]] = {
    "house": ("clew", "small-to-big"),
    "baselines": ("naive", "bm25", "hybrid", "llm", "reader", "react", "ircot"),
    "agents": ("searcher", "graphsearch", "youtu", "graph-r1", "rograg"),
    "papers": (
        *("lightrag", "pathrag", "hypergraphrag", "hipporag", "hipporag2", "minirag", "proprag"),
        *("linearrag", "gfm-rag", "msgraphrag-local", "msgraphrag-global", "raptor", "e2graphrag"),
        *("rograg-dual", "lego", "grag-m", "g-retriever", "tog"),
    ),
}
"""The names that menus show. Others are variants of these, or the user's own."""
_GROUP_OF = {name: group for group, names in GROUPS.items() for name in names}
_HEADS = {"keywords": "bm25", "own-facts": "graph-r1", "rograg-expanded": "rograg-dual"} | {
    f"rograg-{name}": "rograg-dual" for name in ("exact", "12k")
}
"""The heads of variants whose names do not begin with them."""


def find_head(name: str) -> str:
    """Return the recipe whose variant one is, itself where it is none: lego of lego-14-dynamic."""
    if name in _GROUP_OF:
        return name
    behind = [head for head in _GROUP_OF if name.startswith(f"{head}-")]
    return _HEADS.get(name) or max(behind, key=len, default=name)


def find_group(name: str) -> str:
    """Return the group of a recipe, or of what it is a variant of; `own` for the user's."""
    return _GROUP_OF.get(find_head(name), "own")


@dataclass(frozen=True)
class RecipeSet:
    """Retrievers and agents by name: the built-in ones, and those of a `clew.toml`."""

    retrievers: Mapping[str, Chain]
    agents: Mapping[str, AgentRecipe]


BUILT_IN = RecipeSet(RECIPES, AGENTS)
BUILT_IN_NAMES = frozenset([*RECIPES, *AGENTS])
_R1_NOT_SERVED = (
    "a model trained with `--recipe none` (R1) answers without retrieval; it is a baseline and "
    "cannot be asked here; its F1 is `dev_f1` in the run's log.jsonl"
)


def get_recipe(name: str, recipes: RecipeSet = BUILT_IN) -> Chain:
    """Return a retrieval recipe by name."""
    try:
        return recipes.retrievers[name]
    except KeyError:
        if name == NO_KB_RECIPE:
            raise ConfigError(_R1_NOT_SERVED) from None
        raise ConfigError(
            _unknown("recipe", name, [*recipes.retrievers, *recipes.agents])
        ) from None


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Say that there is no such recipe or agent, and which one may be meant."""
    hint = suggest(name, known) or "; `clew recipes --all` lists all of them"
    return f"no {what} {name!r}{hint}"


@dataclass(frozen=True)
class ResolvedRecipe:
    """An agent and its retriever; `note` tells when another retriever replaces the usual one."""

    agent: Agent
    retrieve: Chain
    note: str = ""
    agent_name: str = field(default="", repr=False)
    """Empty if the recipe is a retriever alone, and the plain reader answers."""
    chunk: Chunking | None = field(default=None, repr=False)
    """How documents are split for this recipe; the agent's choice precedes the retriever's."""

    def with_trained_model(self, how: TrainedConfig | None, name: str) -> "ResolvedRecipe":
        """Return a copy set up as the model was trained, where its folder tells how."""
        if how is None or not isinstance(self.agent, Trainable):
            return self
        if how.recipe == NO_KB_RECIPE:
            raise ConfigError(_R1_NOT_SERVED)
        differs = how.recipe not in ("", name)
        note = f"this model was trained with --recipe {how.recipe}" if differs else self.note
        return replace(self, agent=self.agent.with_training_settings(how), note=note)


def resolve_recipe(name: str, recipes: RecipeSet = BUILT_IN) -> ResolvedRecipe:
    """Resolve `agent+retriever`, an agent with its default retriever, or a retriever alone."""
    agent, plus, retriever = name.partition("+")
    if plus:
        if agent not in recipes.agents:
            raise ConfigError(_unknown("agent", agent, recipes.agents))
        return _pair(recipes.agents[agent], get_recipe(retriever, recipes))
    if name in recipes.agents:
        wanted = recipes.agents[name].retrievers
        have = next((one for one in wanted if one in recipes.retrievers), "clew")
        note = "" if have == wanted[0] else f"recipe {wanted[0]!r} is not available; using {have!r}"
        return _pair(recipes.agents[name], recipes.retrievers[have], note)
    chain = get_recipe(name, recipes)
    if name == CLEW.name:
        return _pair(recipes.agents["searcher"], chain)
    return ResolvedRecipe(recipes.agents["reader"].agent, chain, chunk=chain.chunk)


def _pair(agent: AgentRecipe, chain: Chain, note: str = "") -> ResolvedRecipe:
    return ResolvedRecipe(agent.agent, chain, note, agent.name, agent.chunk or chain.chunk)


def describe_agent_needs(name: str, recipes: RecipeSet = BUILT_IN) -> str:
    """Describe what a recipe requires and what it can use."""
    resolved = resolve_recipe(name, recipes)
    if isinstance(resolved.agent, ClosedBook):
        return "a model"
    needs = describe_recipe_needs(resolved.retrieve)
    if needs == NO_NEEDS:
        return OPTIONAL_MODEL
    return needs if needs.endswith(OPTIONAL_MODEL) else f"{needs}; {OPTIONAL_MODEL}"


def find_variant(name: str) -> str:
    """Return the recipe of which one is a variant, or ""; the user's own are none."""
    head = find_head(name) if name in BUILT_IN_NAMES else name
    return head if head != name else ""


def list_heads(recipes: RecipeSet) -> list[str]:
    """Return the names that menus show: by group, and the user's own behind them."""
    known = dict.fromkeys([*recipes.agents, *recipes.retrievers])
    heads = [name for names in GROUPS.values() for name in names if name in known]
    return [*heads, *(name for name in known if name not in BUILT_IN_NAMES)]


def describe_recipes(recipes: RecipeSet) -> list[dict[str, str]]:
    """Return every retriever and agent with what it needs and where it comes from."""
    return [
        {
            "name": r.name,
            "kind": kind,
            "about": r.about,
            "needs": describe_recipe_needs(r)
            if isinstance(r, Chain)
            else describe_agent_needs(r.name, recipes),
            "source": r.source,
            "group": find_group(r.name) if r.name in BUILT_IN_NAMES else "own",
            "variant_of": find_variant(r.name),
        }
        for kind, some in (("retriever", recipes.retrievers), ("agent", recipes.agents))
        for r in some.values()
    ]


def tabulate_recipe(name: str, recipes: RecipeSet = BUILT_IN) -> list[dict[str, str]]:
    """Return a recipe's parameters as table rows: the agent's, if any, then the retriever's."""
    resolved = resolve_recipe(name, recipes)
    recipe = recipes.agents.get(name.partition("+")[0])
    rows = []
    if recipe is not None and recipe.name in AGENTS:
        rows = tabulate_agent(resolved.agent, recipe.source)
    elif recipe is not None:  # the user's: its chain notes what is set
        notes = dict(recipes.retrievers[recipe.name].notes)
        rows = tabulate_agent(resolved.agent, BUILT_IN_VALUE, notes)
    return [*rows, *tabulate_steps(resolved.retrieve), *tabulate_layout(resolved.retrieve.layout)]
