"""Agents by name, each with its default retriever."""

from dataclasses import dataclass, field, replace

from clew.agents.baselines import ClosedBook, IrCot, React, Reader
from clew.agents.core.types import Agent
from clew.agents.graph_r1 import GraphR1
from clew.agents.graph_reader import GraphReader
from clew.agents.graphsearch import BOTH_CHANNELS, GraphSearch
from clew.agents.map_reduce import MapReduce
from clew.agents.planning.model_plan import Verdict
from clew.agents.rograg import Rograg
from clew.agents.youtu import Youtu
from clew.types import Chunking


@dataclass(frozen=True)
class AgentRecipe:
    """A named agent; the first of `retrievers` that exists is its default."""

    name: str
    agent: Agent
    about: str = field(default="", repr=False)
    source: str = field(default="", repr=False)
    retrievers: tuple[str, ...] = ("clew",)
    chunk: Chunking | None = field(default=None, repr=False)
    """How documents are split for this agent, whatever its retriever."""


_GRAPHSEARCH = "GraphSearch (2025)"
_GRAPHSEARCH_CHUNKS = Chunking(400, 0, "sentences")  # implementation details: 400 tokens
_YOUTU = "Youtu-GraphRAG (2025)"
_ROGRAG = "ROGRAG (2025)"
# Ablation rows plan by the model: a plan by rules would not use the modules switched off.
_MODEL_PLANNED = GraphSearch(rules=False)
_NO_MODULES = GraphSearch(*(False,) * 6, top_k=30, rules=False)  # Table 3, first row
_QD_CR = replace(_NO_MODULES, decompose=True, refine=True)


def _steps(name: str, agent: GraphReader, about: str) -> AgentRecipe:
    return AgentRecipe(f"steps-{name}", agent, about, "measured here, see docs/agents.md")


def _graphsearch(name: str, agent: GraphSearch, about: str, place: str) -> AgentRecipe:
    source = f"{_GRAPHSEARCH}, {place}"
    return AgentRecipe(f"graphsearch-{name}", agent, about, source, chunk=_GRAPHSEARCH_CHUNKS)


def _youtu(name: str, agent: Youtu, about: str) -> AgentRecipe:
    return AgentRecipe(f"youtu-{name}", agent, about, f"{_YOUTU}, Table 3", ("youtu", "clew"))


def _rograg(name: str, agent: Rograg, about: str, place: str) -> AgentRecipe:
    retrievers = ("rograg-few", "clew")
    return AgentRecipe(f"rograg-{name}", agent, about, f"{_ROGRAG}, {place}", retrievers)


_AGENT_RECIPES = (
    AgentRecipe("reader", Reader(), "one retrieval, one written answer", "baseline"),
    AgentRecipe(
        "steps",
        GraphReader(),
        "names lead to passages, a reader reads spans along them, code compares; a model writes",
        "measured here, see docs/agents.md",
    ),
    _steps("plan", GraphReader(plan=True), "the model plans what the table does not compare"),
    _steps("model", GraphReader(rules=False, plan=True), "the model plans everything"),
    _steps("once", GraphReader(second=False), "the reader gives no second opinion on the model's"),
    _steps(
        "unasked",
        GraphReader(choose=False),
        "the better supported of two answers, without letting the model choose",
    ),
    _steps(
        "judged",
        GraphReader(give="written"),
        "the model's answer, whatever the reader says of it",
    ),
    _steps("read", GraphReader(give="read"), "the reader's answer, whatever the model says of it"),
    _steps(
        "alone",
        GraphReader(rules=False, spans=False, second=False),
        "the model reads once; nothing is planned, compared or read as a span",
    ),
    AgentRecipe(
        "graphsearch",
        GraphSearch(),
        "two channels of sub-queries, drafted, verified, expanded",
        _GRAPHSEARCH,
        chunk=_GRAPHSEARCH_CHUNKS,
    ),
    _graphsearch(
        "released",
        GraphSearch(top_k=5, max_reflections=1, expand_on=Verdict.ACCEPT, rules=False),
        "as the authors' code does it: expands on ACCEPT, one reflection, top-k 5",
        "authors' code",
    ),
    # Table 3: modules added one after another.
    _graphsearch("none", _NO_MODULES, "no module", "Table 3"),
    _graphsearch("qd-cr", _QD_CR, "decomposition and refinement", "Table 3"),
    _graphsearch("qd-cr-qg", replace(_QD_CR, ground=True), "and grounding", "Table 3"),
    _graphsearch(
        "qd-cr-qg-ld", replace(_QD_CR, ground=True, draft=True), "and drafting", "Table 3"
    ),
    _graphsearch(
        "qd-cr-qg-ld-ev-qe",
        _MODEL_PLANNED,
        "and verification and expansion: all modules, planned by the model",
        "Table 3",
    ),
    # Figure 5: one channel at a time.
    *(
        _graphsearch(
            channel,
            replace(_MODEL_PLANNED, channels=(channel,)),
            f"the {channel} channel alone",
            "Figure 5",
        )
        for channel in BOTH_CHANNELS
    ),
    AgentRecipe(
        "youtu",
        Youtu(),
        "schema-guided sub-questions, four routes, reflection",
        _YOUTU,
        ("youtu", "clew"),
    ),
    _youtu("by-model", Youtu(rules=False), "the same, planned by the model also where a rule fits"),
    _youtu("no-schema", Youtu(schema=False, rules=False), "without the schema"),
    _youtu("no-agent", Youtu(reflection=False, rules=False), "without reflection"),
    AgentRecipe(
        "youtu-no-community",
        Youtu(rules=False),
        "without the communities",
        f"{_YOUTU}, Table 3",
        ("youtu-flat", "clew"),
    ),
    AgentRecipe(
        "rograg",
        Rograg(),
        "gate, logic-form plan run by code, argument check, fallback",
        _ROGRAG,
        ("rograg-few", "clew"),
    ),
    # Tables 6 and 7, planned by the model: the check before or after the answer, or none.
    _rograg("argument", Rograg(rules=False), "the arguments checked before the answer", "Table 7"),
    _rograg("result", Rograg(check="result", rules=False), "the result checked instead", "Table 7"),
    _rograg("unchecked", Rograg(check="none", rules=False), "nothing checked", "Table 7"),
    _rograg(
        "logic",
        Rograg(rules=False, fallback=False),
        "the logic form alone, without the dual level",
        "Table 6",
    ),
    AgentRecipe(
        "graph-r1",
        GraphR1(),
        "think, query, think again, answer; each query shows five fused facts with their scores",
        "Graph-R1 (2025)",
        ("graph-r1", "clew"),
    ),
    AgentRecipe(
        "graph-r1-facts",
        GraphR1(top_k=12, show="pages"),
        "the same loop over the facts of the pages about what a query names",
        "measured here, see docs/results/training.md",
        ("own-facts", "clew"),
    ),
    AgentRecipe(
        "msgraphrag-global",
        MapReduce(),
        "points noted over community reports, the best put together",
        "MS GraphRAG (Edge et al. 2024)",
        ("msgraphrag-global",),
    ),
    AgentRecipe("react", React(), "thought, action, observation", "Yao et al. 2023"),
    AgentRecipe(
        "ircot", IrCot(), "each sentence of the reasoning is the next query", "Trivedi et al. 2023"
    ),
    AgentRecipe("llm", ClosedBook(), "the model without documents", "baseline"),
)

AGENTS: dict[str, AgentRecipe] = {recipe.name: recipe for recipe in _AGENT_RECIPES}
