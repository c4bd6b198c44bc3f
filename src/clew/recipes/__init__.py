"""The registry of recipes: retrieval chains and agents by name."""

from dataclasses import dataclass, is_dataclass, replace

from clew.agents.agent import Agent
from clew.agents.baselines import Bare
from clew.agents.loop import GraphR1
from clew.agents.rograg import Rograg
from clew.errors import ConfigError
from clew.llm.trained import R1, Trained
from clew.recipes.agents import AGENTS
from clew.recipes.basic import BM25, HYBRID, NAIVE, RERANKED
from clew.recipes.diffusing import DIFFUSING
from clew.recipes.dual import DUAL
from clew.recipes.house import CLEW
from clew.recipes.hyper import HYPER
from clew.recipes.lego import LEGO
from clew.recipes.table import IF_ANY, NOTHING, agent_rows, needs_of, rows_of
from clew.recipes.tree import TREE
from clew.recipes.walking import WALKING
from clew.retrieve.step import Chain

RECIPES: dict[str, Chain] = {
    recipe.name: recipe
    for recipe in (
        CLEW,
        NAIVE,
        BM25,
        HYBRID,
        RERANKED,
        *DUAL,
        *DIFFUSING,
        *HYPER,
        *WALKING,
        *TREE,
        *LEGO,
    )
}

_R1_ALONE = (
    "R1 (`clew train --recipe none`) answers from memory: it is trained to compare with and is not "
    "served; its F1 is dev_f1 in the run's log.jsonl"
)


def recipe_named(name: str) -> Chain:
    """Return a retrieval recipe by name."""
    try:
        return RECIPES[name]
    except KeyError:
        if name == R1:
            raise ConfigError(_R1_ALONE) from None
        raise ConfigError(f"no recipe {name!r}; have {', '.join(RECIPES)}") from None


@dataclass(frozen=True)
class Asked:
    """An agent and its retriever; `note` tells when another retriever replaces the usual one."""

    agent: Agent
    retrieve: Chain
    note: str = ""

    def with_top(self, k: int | None) -> "Asked":
        """Return a copy with another number of passages per search, where the agent has one."""
        if k is None or not is_dataclass(self.agent) or not hasattr(self.agent, "top_k"):
            return self
        return replace(self, agent=replace(self.agent, top_k=k))

    def as_trained(self, how: Trained | None, name: str) -> "Asked":
        """Return a copy set up as the model was trained, where its folder tells how."""
        if how is None or not isinstance(self.agent, GraphR1):
            return self
        if how.recipe == R1:
            raise ConfigError(_R1_ALONE)
        differs = how.recipe not in ("", name)
        note = f"this model was trained with --recipe {how.recipe}" if differs else self.note
        return replace(self, agent=self.agent.trained(how), note=note)


def asked_named(name: str) -> Asked:
    """Resolve `agent+retriever`, an agent with its default retriever, or a retriever alone."""
    agent, plus, retriever = name.partition("+")
    if plus:
        if agent not in AGENTS:
            raise ConfigError(f"no agent {agent!r}; have {', '.join(AGENTS)}")
        return Asked(AGENTS[agent].agent, recipe_named(retriever))
    if name in AGENTS:
        wanted = AGENTS[name].retrievers
        have = next((one for one in wanted if one in RECIPES), "clew")
        note = "" if have == wanted[0] else f"no recipe {wanted[0]!r} here: {have!r} retrieves"
        return Asked(AGENTS[name].agent, RECIPES[have], note)
    reader = AGENTS["steps" if name == "clew" else "reader"]
    return Asked(reader.agent, recipe_named(name))


def gated(name: str) -> str:
    """Return the recipe itself if its agent has a relevance gate, else `rograg`."""
    return name if isinstance(asked_named(name).agent, Rograg) else "rograg"


def agent_needs(name: str) -> str:
    """Describe what a recipe requires and what it can use."""
    resolved = asked_named(name)
    if isinstance(resolved.agent, Bare):
        return "a model"
    needs = needs_of(resolved.retrieve)
    if needs == NOTHING:
        return IF_ANY
    return needs if needs.endswith(IF_ANY) else f"{needs}; {IF_ANY}"


def rows_named(name: str) -> list[dict[str, str]]:
    """Return a recipe's parameters as table rows: the agent's, if any, then the retriever's."""
    resolved = asked_named(name)
    recipe = AGENTS.get(name.partition("+")[0])
    rows = agent_rows(resolved.agent, recipe.source) if recipe is not None else []
    return [*rows, *rows_of(resolved.retrieve)]
