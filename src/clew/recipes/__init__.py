"""Named methods, as values."""

from dataclasses import dataclass, is_dataclass, replace

from clew.agents.agent import Agent
from clew.errors import ConfigError
from clew.recipes.agents import AGENTS
from clew.recipes.basic import BM25, HYBRID, NAIVE, RERANKED
from clew.recipes.diffusing import DIFFUSING
from clew.recipes.dual import DUAL
from clew.recipes.house import CLEW
from clew.recipes.hyper import HYPER
from clew.recipes.lego import LEGO
from clew.recipes.table import agent_rows, rows_of
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


def recipe_named(name: str) -> Chain:
    """Look a recipe up by name."""
    try:
        return RECIPES[name]
    except KeyError:
        raise ConfigError(f"no recipe {name!r}; have {', '.join(RECIPES)}") from None


@dataclass(frozen=True)
class Asked:
    """An agent and the retriever it works with; `note` says when another stands in for it."""

    agent: Agent
    retrieve: Chain
    note: str = ""

    def with_top(self, k: int | None) -> "Asked":
        """The same with another number of passages per look, where the agent has one."""
        if k is None or not is_dataclass(self.agent) or not hasattr(self.agent, "top_k"):
            return self
        return replace(self, agent=replace(self.agent, top_k=k))


def asked_named(name: str) -> Asked:
    """`agent+retriever`, an agent with its own retriever, or a retriever that is read once."""
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


def rows_named(name: str) -> list[dict[str, str]]:
    """A recipe as a table: the agent's parameters, where it is one, then the retriever's."""
    asked = asked_named(name)
    recipe = AGENTS.get(name.partition("+")[0])
    rows = agent_rows(asked.agent, recipe.source) if recipe is not None else []
    return [*rows, *rows_of(asked.retrieve)]
