"""What each recipe shows to the model: kinds of evidence in order.

Where a paper names budgets of tokens, they stand here; else the model's window decides. Where a
paper shows its graph alone, passages follow it here, so that answers can be cited to documents.
"""

from clew.layout import Layout, Section

_PASSAGES = Section("passages", most=5)

GRAPH = Layout((Section("entities", most=10), Section("facts", most=20), _PASSAGES))
PATHS = Layout((Section("paths", most=32), Section("facts", most=10), _PASSAGES))
GRAG_M = Layout((Section("communities", most=5), *PATHS.sections))
LIGHTRAG = Layout(
    (Section("entities", 6000), Section("facts", 8000), Section("passages", most=20)),
    total=30_000,
)
ROGRAG = Layout(
    (Section("entities", 8000), Section("facts", 8000), Section("passages", 12_000, most=20)),
    total=28_000,
)
ROGRAG_12K = Layout(
    (Section("entities", 4000), Section("facts", 4000), Section("passages", 4000, most=20)),
    total=12_000,
)
HYPERGRAPHRAG = Layout(
    (Section("entities", most=60), Section("facts", most=60), Section("passages", most=10))
)
PATHRAG = Layout((Section("paths", most=15, best_last=True), _PASSAGES))
GRAPH_R1 = Layout((Section("facts", most=5, scores=True), _PASSAGES))
GRAPH_R1_RELEASED = Layout((Section("facts", most=10, scores=True), _PASSAGES))
YOUTU = Layout(
    (
        Section("facts"),
        Section("paths"),
        Section("communities", most=5),
        Section("entities", most=10),
        Section("passages", most=10),
    )
)
MSGRAPHRAG = Layout(
    (
        Section("communities", 1800),
        Section("entities", 1800),
        Section("facts", 2400),
        Section("passages", 6000, most=10),
    ),
    total=12_000,
)
TREE = Layout((Section("communities"), Section("passages", most=10)))
OWN_FACTS = Layout((Section("facts", most=12), _PASSAGES))
PROPOSITIONS = Layout((Section("paths", most=5), _PASSAGES))
GFM_RAG = Layout((_PASSAGES, Section("entities", most=10)))

LAYOUT_SOURCES: dict[Layout, str] = {
    GRAPH: "ours: the best entities and facts, then passages",
    PATHS: "LEGO-GraphRAG Table 1: 32 paths; facts and passages after them are ours",
    GRAG_M: "LEGO-GraphRAG B.10: the report of the subgraph's community, then the paths",
    LIGHTRAG: "LightRAG authors' code: 6,000 tokens of entities, 8,000 of relations, 20 chunks, "
    "30,000 in all",
    ROGRAG: "ROGRAG figure 1 (d): 8k of nodes, 8k of edges, 12k of chunks; at most 20 is ours",
    ROGRAG_12K: "ROGRAG Table 5, before 28k; 4k of each kind are LightRAG's, the paper names none",
    HYPERGRAPHRAG: "HyperGraphRAG: 60 of each side; the number of passages is ours",
    PATHRAG: "PathRAG §3.3: 15 paths, the most reliable last; passages are ours",
    GRAPH_R1: "Graph-R1 §4.2: the five fused facts with their scores; the agent's loop shows these "
    "alone",
    GRAPH_R1_RELEASED: "Graph-R1 authors' code: ten facts; the agent's loop shows these alone",
    YOUTU: "Youtu-GraphRAG §A.3: triples, paths, communities, attributes, chunks; numbers ours",
    MSGRAPHRAG: "MS GraphRAG authors' code: 12,000 tokens; 15% reports, 35% graph, 50% text; how "
    "the graph's share is divided is ours",
    TREE: "RAPTOR §3 and E²GraphRAG: summaries and leaves",
    PROPOSITIONS: "PropRAG: five passages; the paths before them are ours",
    GFM_RAG: "GFM-RAG authors' code: five passages; the entities are ours",
    OWN_FACTS: "ours: the facts of the pages about what a query names",
}
"""Where each layout comes from, for `clew recipes NAME`."""
