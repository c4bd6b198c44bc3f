"""What each recipe shows to the model: kinds in order, with token budgets.

The defaults were chosen by measuring with a small model (docs/evidence.md): few facts or paths, of
those only what has to do with the question, then five passages. Where a paper names budgets of its
own, a row of its own has them. Where a paper shows its graph alone, passages follow it here.
"""

from dataclasses import replace

from clew.layout import Layout, Section

_PASSAGES = Section("passages", most=5)
_FEW_ENTITIES = Section("entities", 300, most=5)
_LINKED_FACTS = Section("facts", 1000, most=20, order="linked")
# What no passage on the page says; but for a few facts, so that the graph is always shown.
_FRESH_FACTS = Section("facts", 600, most=10, order="linked", fresh=True, least=3)
_NEAREST_FACTS = Section("facts", 600, most=10, order="question")

LINKED = Layout((_FEW_ENTITIES, _LINKED_FACTS, _PASSAGES))
FRESH = Layout((_FEW_ENTITIES, _FRESH_FACTS, _PASSAGES))
PATHS = Layout((Section("paths", 500, most=15, order="question"), _NEAREST_FACTS, _PASSAGES))
RANKED_PATHS = Layout((Section("paths", 500, most=32), replace(_FRESH_FACTS, least=0), _PASSAGES))
FEW = Layout(
    (
        Section("entities", 150, most=3),
        Section("facts", 250, most=4, order="linked", fresh=True, least=1),
        _PASSAGES,
    )
)
NEW_PATHS = Layout(
    (
        Section("paths", 300, most=3, order="linked", fresh=True, least=1),
        Section("facts", 300, most=5, order="linked", fresh=True),
        _PASSAGES,
    )
)
GRAG_M = Layout((Section("communities", 600), *RANKED_PATHS.sections))
LIGHTRAG_30K = Layout(
    (Section("entities", 6000), Section("facts", 8000), Section("passages", most=20)),
    total=30_000,
)
ROGRAG_28K = Layout(
    (Section("entities", 8000), Section("facts", 8000), Section("passages", 12_000, most=20)),
    total=28_000,
)
ROGRAG_12K = Layout(
    (Section("entities", 4000), Section("facts", 4000), Section("passages", 4000, most=20)),
    total=12_000,
)
PATHRAG_15 = Layout(
    (Section("paths", 2000, most=15, best_last=True), _PASSAGES), total=4800
)
# The agent's loop shows facts alone, as in the paper; an answer that is written anew reads both.
GRAPH_R1 = Layout((Section("facts", 1000, most=5, scores=True), _PASSAGES))
GRAPH_R1_RELEASED = Layout((Section("facts", 1600, most=10, scores=True), _PASSAGES))
YOUTU = Layout(
    (
        _LINKED_FACTS,
        Section("paths", 300, most=20, order="linked"),
        Section("communities", 400, most=5),
        _FEW_ENTITIES,
        Section("passages", most=10),
    )
)
MSGRAPHRAG_LOCAL = Layout((Section("communities", 600, most=5), *LINKED.sections))
MSGRAPHRAG_12K = Layout(
    (
        Section("communities", 1800),
        Section("entities", 1800),
        Section("facts", 2400),
        Section("passages", 6000, most=10),
    ),
    total=12_000,
)
TREE = Layout((Section("communities", 1400), Section("passages", most=10)))
OWN_FACTS = Layout((Section("facts", 1600, most=12), _PASSAGES))
PROPOSITIONS = Layout((Section("paths", 800, most=5), _PASSAGES))
LINEARRAG = Layout((_PASSAGES,))
GFM_RAG = Layout((_PASSAGES, Section("entities", 300, most=10)))

_OURS = "ours, measured (docs/evidence.md): "
LAYOUT_SOURCES: dict[Layout, str] = {
    LINKED: f"{_OURS}facts linked to what the question names, then passages",
    PATHS: f"{_OURS}the paths and facts nearest to the question, then passages",
    FRESH: f"{_OURS}facts linked to what the question names that no passage says, then passages",
    FEW: f"{_OURS}four facts that no passage says, then passages: of more an agent's lookups read "
    "the wrong one",
    NEW_PATHS: f"{_OURS}linked paths and facts that no passage says, then passages",
    RANKED_PATHS: f"{_OURS}paths as the method ranks them, linked facts that no passage says, then "
    "passages",
    LIGHTRAG_30K: "LightRAG authors' code: 6,000 tokens of entities, 8,000 of relations, 20 "
    "chunks, 30,000 in all; for a sub-question ours",
    ROGRAG_28K: "ROGRAG figure 1 (d): 8k of nodes, 8k of edges, 12k of chunks; at most 20 and for "
    "a sub-question ours",
    ROGRAG_12K: "ROGRAG Table 5, before 28k; 4k of each kind are LightRAG's, the paper names none",
    PATHRAG_15: "PathRAG §3.3: 15 paths, the most reliable last; passages and budgets are ours",
    GRAPH_R1: "Graph-R1 §4.2: the five fused facts with their scores; tokens ours, and passages "
    "where an answer is written anew after the loop",
    GRAPH_R1_RELEASED: "Graph-R1 authors' code: ten facts; tokens and passages ours",
    GRAG_M: "LEGO-GraphRAG B.10: the report of the subgraph's community, then the paths; tokens "
    "ours",
    YOUTU: "Youtu-GraphRAG §A.3: triples, paths, communities, attributes, chunks; budgets ours",
    MSGRAPHRAG_LOCAL: "MS GraphRAG: reports, entities, relations, text; budgets are ours",
    MSGRAPHRAG_12K: "MS GraphRAG authors' code: 12,000 tokens; 15% reports, 35% graph, 50% text; "
    "other numbers ours",
    TREE: "RAPTOR §3 and E²GraphRAG: summaries and leaves; 2,000 tokens are found, how many of "
    "them are shown is ours",
    PROPOSITIONS: "PropRAG: five passages; the paths before them and the budgets are ours",
    LINEARRAG: "LinearRAG authors' code: five passages; the budget is ours",
    GFM_RAG: "GFM-RAG authors' code: five passages; the entities and budgets are ours",
    OWN_FACTS: "Ours: the facts of the pages about what a query names",
}
"""Where each layout comes from, for `clew recipes NAME`."""
