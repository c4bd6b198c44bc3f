"""What each recipe shows to the model: kinds in order, with token budgets.

METHODS of the papers, each with its source. Where a paper shows its graph alone, passages follow it
here: with small models that was better by four to seven F1 (docs/evidence.md).
"""

from clew.layout import Layout, Section

LIGHTRAG = Layout(
    (Section("entities", 6000), Section("facts", 8000), Section("passages", most=20)),
    total=30_000,
    part=3000,
)
ROGRAG = Layout(
    (Section("entities", 8000), Section("facts", 8000), Section("passages", 12_000, most=20)),
    total=28_000,
    part=3000,
)
ROGRAG_12K = Layout(
    (Section("entities", 4000), Section("facts", 4000), Section("passages", 4000, most=20)),
    total=12_000,
    part=3000,
)
HYPERGRAPHRAG = Layout(
    (Section("entities", 4000), Section("facts", 4000), Section("passages", most=10)),
    total=12_000,
    part=3000,
)
PATHRAG = Layout(
    (Section("paths", 2000, most=15, best_last=True), Section("passages", most=5)),
    total=4800,
    part=2400,
)
GRAPH_R1 = Layout((Section("facts", most=5, scores=True),), total=1600)
GRAPH_R1_RELEASED = Layout((Section("facts", most=10, scores=True),), total=2400)
LEGO = Layout((Section("paths", 1600, most=32), Section("passages", most=5)), total=3200)
GRAG_M = Layout(
    (Section("communities", 1200), Section("paths", 1200, most=32), Section("passages", most=5)),
    total=4000,
    part=2400,
)
YOUTU = Layout(
    (
        Section("facts", 1200, most=20),
        Section("paths", 600, most=20),
        Section("communities", 600, most=5),
        Section("entities", 600, most=20),
        Section("passages", most=10),
    ),
    total=6000,
    part=3000,
)
MSGRAPHRAG_LOCAL = Layout(
    (
        Section("communities", 1800),
        Section("entities", 1800),
        Section("facts", 2400),
        Section("passages", 6000, most=10),
    ),
    total=12_000,
    part=3000,
)
TREE = Layout((Section("communities", 1600), Section("passages", most=10)), total=3600)
ENTITY_PATHS = Layout(
    (Section("entities", 600, most=10), Section("paths", 1200), Section("passages", most=5)),
    total=4000,
    part=2400,
)
SUBGRAPH = Layout(
    (Section("entities", 800), Section("facts", 1200), Section("passages", most=5)),
    total=4000,
    part=2400,
)
EXPLORED = Layout(
    (Section("paths", 1200), Section("facts", 800, most=20), Section("passages", most=5)),
    total=4000,
    part=2400,
)
OWN_FACTS = Layout((Section("facts", 1600, most=12), Section("passages", most=5)), total=3200)
PROPOSITIONS = Layout(
    (Section("paths", 1000, most=5), Section("passages", most=5)), total=3600, part=2000
)
LINEARRAG = Layout((Section("passages", most=5),), total=3000)
GFM_RAG = Layout((Section("passages", most=5), Section("entities", 300, most=10)), total=3400)

LAYOUT_SOURCES: dict[Layout, str] = {
    LIGHTRAG: "LightRAG authors' code: 6,000 tokens of entities, 8,000 of relations, 30,000 in all",
    ROGRAG: "ROGRAG figure 1 (d): 8k of nodes, 8k of edges, 12k of chunks",
    ROGRAG_12K: "ROGRAG Table 5, before 28k; 4k of each kind are LightRAG's, the paper names none",
    HYPERGRAPHRAG: "HyperGraphRAG: entities, n-ary facts, chunks; the budgets are ours",
    PATHRAG: "PathRAG §3.3: 15 paths, the most reliable last; passages and budgets are ours",
    GRAPH_R1: "Graph-R1 §4.2: the five fused facts with their scores, nothing else",
    GRAPH_R1_RELEASED: "Graph-R1 authors' code: ten facts",
    LEGO: "LEGO-GraphRAG: reasoning paths, best first; 32 of them. Passages and budgets are ours",
    GRAG_M: "LEGO-GraphRAG B.10: the report of the subgraph's community, then the paths",
    YOUTU: "Youtu-GraphRAG §A.3: triples, paths, communities, attributes, chunks; budgets ours",
    MSGRAPHRAG_LOCAL: "MS GraphRAG authors' code: 12,000 tokens; 15% reports, 35% graph, 50% text",
    TREE: "RAPTOR §3: 2,000 tokens of summaries and leaves; E²GraphRAG likewise",
    ENTITY_PATHS: "MiniRAG: entities, their paths, then passages; budgets are ours",
    SUBGRAPH: "G-Retriever: the subgraph as a node table and an edge table; passages are ours",
    EXPLORED: "Think-on-Graph: the explored triples, path by path; passages and budgets are ours",
    PROPOSITIONS: "PropRAG: five passages; the paths before them and the budgets are ours",
    LINEARRAG: "LinearRAG authors' code: five passages; the budget is ours",
    GFM_RAG: "GFM-RAG authors' code: five passages; the entities and budgets are ours",
    OWN_FACTS: "Ours: the facts of the pages about what a query names",
}
"""Where each layout comes from, for `clew recipes NAME`."""
