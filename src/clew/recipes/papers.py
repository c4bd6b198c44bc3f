"""Retrieval recipes: the default one (docs/decisions/0004), baselines, and one per paper."""

from dataclasses import replace
from typing import Literal

from clew.layout import Layout
from clew.recipes import layouts
from clew.retrieve.communities.steps import Around, BottomUp, CitedChunks, IfGrown, Reports, TopDown
from clew.retrieve.communities.summary_tree import Collapsed, EntityPairs
from clew.retrieve.expand import ChunksOf, FactsOf, MembersOf
from clew.retrieve.linking.fact_filter import Recognise
from clew.retrieve.linking.keywords import ExpandKeywords, Keywords, QuestionEntities
from clew.retrieve.linking.link_names import LinkNames
from clew.retrieve.linking.page_facts import OwnFacts
from clew.retrieve.lookup import (
    Dense,
    Lexical,
    NearAttributes,
    NearEntities,
    NearFacts,
    SameName,
    SameWords,
)
from clew.retrieve.pack import Budget
from clew.retrieve.paths.beam import BeamPaths
from clew.retrieve.paths.entity_paths import DepthFirst, FlowPaths, TypedPaths
from clew.retrieve.ppr import Ppr, Specific, WeighEntities
from clew.retrieve.rank import Keep, Reranked, fuse_chunks, in_turns, reciprocal_facts
from clew.retrieve.step import Chain, Fork, Step
from clew.retrieve.subgraph.extract import PrizedTree
from clew.types import Chunking

NAIVE = Chain(
    "naive",
    (Dense(top_k=100),),
    about="passages by embedding similarity",
    source="dense retrieval",
)
BM25 = Chain(
    "bm25",
    (Lexical(top_k=100, k1=1.2, b=0.75),),
    about="passages by BM25 over the question's words",
    source="Robertson and Zaragoza 2009",
)
KEYWORDS = Chain(
    "keywords",
    (Lexical(top_k=100, k1=1.2, b=0.75, content_only=True),),
    about="`bm25` without the words of which every question is made; used without an embedder",
    source="measured here (docs/recipes.md)",
)
RERANKED = Chain(
    "hybrid-rerank",
    (Fork((Dense(top_k=100), Lexical(top_k=100)), join=fuse_chunks), Reranked(top_k=30)),
    about="`hybrid`, with the best passages reranked by a cross-encoder",
    source="Nogueira and Cho 2019",
)
HYBRID = Chain(
    "hybrid",
    (Fork((Dense(top_k=100), Lexical(top_k=100)), join=fuse_chunks),),
    about="`naive` and `bm25`, fused by reciprocal rank",
    source="Cormack et al. 2009",
)
LightragMode = Literal["local", "global", "hybrid", "mix"]
_LIGHTRAG_NOTES = (
    ("NearEntities.top_k", "LightRAG authors' code: top_k 40"),
    ("NearEntities.least", "LightRAG authors' code: cosine above 0.2"),
    ("NearFacts.top_k", "LightRAG authors' code: top_k 40"),
    ("NearFacts.least", "LightRAG authors' code: cosine above 0.2"),
    ("FactsOf.order", "LightRAG authors' code: edges by degree, then weight"),
    ("FactsOf.top_k", "ours: what fits the budget of 8,000 tokens"),
    ("MembersOf.top_k", "ours: both ends of 40 relations"),
    ("ChunksOf.order", "LightRAG authors' code: chunks picked by vector"),
    ("ChunksOf.top_k", "LightRAG authors' code: 20 chunks, of each side"),
    ("Dense.top_k", "LightRAG authors' code: 20 chunks"),
    ("Fork.join", "LightRAG authors' code: interleaved"),
    ("Budget.entities", "LightRAG authors' code: 6,000 tokens"),
    ("Budget.facts", "LightRAG authors' code: 8,000 tokens"),
    ("Budget.total", "LightRAG authors' code: 30,000 tokens"),
    ("chunk", "LightRAG authors' code: 1,200 tokens, overlap 100"),
)
_LIGHTRAG_CHUNKS = Chunking(1200, 100, "tokens")


def build_lightrag(mode: LightragMode, name: str) -> Chain:
    """Build LightRAG in one of its four modes."""
    local = Chain("local", (NearEntities("names", top_k=40, least=0.2), FactsOf(60, "degree")))
    high_level = Chain("global", (NearFacts("topics", top_k=40, least=0.2), MembersOf(80)))
    levels: dict[LightragMode, Step] = {
        "local": local,
        "global": high_level,
        "hybrid": Fork((local, high_level), join=in_turns),
        "mix": Fork((local, high_level), join=in_turns),
    }
    chunk_steps: tuple[Step, ...] = (
        ChunksOf(("entities",), top_k=20, order="similar"),
        ChunksOf(("facts",), top_k=20, order="similar"),
    )
    if mode == "mix":
        chunk_steps = (Dense(top_k=20), *chunk_steps)
    steps: tuple[Step, ...] = (
        Keywords(),
        levels[mode],
        Fork(chunk_steps, join=in_turns),
        Budget(entities=6000, facts=8000, total=30000),
    )
    about = {
        "local": "names in the question → entities → their relations",
        "global": "topics in the question → relations → their entities",
        "hybrid": "names → entities, topics → relations, interleaved",
        "mix": "`lightrag`, and passages by embedding similarity",
    }
    source = "LightRAG (Guo et al. 2024)"
    how = (_LIGHTRAG_NOTES, layouts.LIGHTRAG, _LIGHTRAG_CHUNKS)
    return Chain(name, steps, about[mode], source, *how)


_ROGRAG_NOTES = (
    ("NearEntities.top_k", "ROGRAG authors' code: 60 per level"),
    ("NearFacts.top_k", "ROGRAG authors' code: 60 per level"),
    ("ExpandKeywords.most", "ours: the paper (Table 5) does not say how many"),
    ("NearEntities.each", "ours: name by name; one text with all names finds less"),
    ("ChunksOf.order", "ours: most stated first"),
    ("Budget.entities", "ROGRAG figure 1 (d): 8k of nodes"),
    ("Budget.facts", "ROGRAG figure 1 (d): 8k of edges"),
    ("Budget.chunks", "ROGRAG figure 1 (d): 12k of chunks"),
    ("chunk", "ROGRAG appendix: 768 tokens, overlap 32, at punctuation"),
)
_ROGRAG_CHUNKS = Chunking(768, 32, "sentences")


def build_rograg(name: str, *, exact: bool = False, expand: bool = False) -> Chain:
    """Build ROGRAG's dual-level retrieval: exact matching and more low-level keys as in Table 5."""
    low: Step = SameName("names") if exact else NearEntities("names", top_k=60, each=True)
    high: Step = SameWords("topics", top_k=60) if exact else NearFacts("topics", top_k=60)
    levels = Fork(
        (Chain("low", (low, FactsOf(60, "similar"))), Chain("high", (high, MembersOf(120)))),
        join=in_turns,
    )
    steps: tuple[Step, ...] = (
        Keywords(),
        *((ExpandKeywords(most=8),) if expand else ()),
        levels,
        ChunksOf(("facts", "entities")),
        Budget(entities=8000, facts=8000, chunks=12000),
    )
    matched = "exactly" if exact else "by embedding similarity"
    more = "names and more keywords" if expand else "names"
    about = f"{more} → entities, topics → relations, matched {matched}"
    source = "ROGRAG (Wang et al. 2025) §3.2"
    return Chain(name, steps, about, source, _ROGRAG_NOTES, layouts.ROGRAG, _ROGRAG_CHUNKS)


PATHRAG = Chain(
    "pathrag",
    (
        Keywords(),
        Fork(
            (
                Chain("nodes", (NearEntities("names", top_k=40), FactsOf(40, "similar"))),
                Chain("relations", (NearFacts("topics", top_k=40), MembersOf(40))),
            ),
            join=in_turns,
        ),
        FlowPaths(top_k=15, hops=3, decay=0.8, threshold=0.3),
        ChunksOf(("paths", "facts", "entities")),
    ),
    about="paths between the question's entities with the highest flow",
    source="PathRAG (Chen et al. 2025)",
    layout=layouts.PATHRAG,
    notes=(
        ("NearEntities.top_k", "PathRAG paper: 40 nodes"),
        ("FlowPaths.top_k", "PathRAG paper: 15 paths"),
        ("FlowPaths.hops", "PathRAG authors' code: paths of up to 3 edges"),
        ("FlowPaths.decay", "PathRAG paper: α = 0.8"),
        ("FlowPaths.threshold", "PathRAG authors' code: 0.3"),
    ),
)
HYPERGRAPHRAG = Chain(
    "hypergraphrag",
    (
        QuestionEntities(),
        Fork(
            (
                Chain("entities", (NearEntities("names", top_k=60), FactsOf(60, "similar"))),
                Chain("hyperedges", (NearFacts("question", top_k=60), MembersOf(120))),
            ),
            join=in_turns,
        ),
        ChunksOf(("facts",)),
    ),
    about="entities and n-ary facts of the question, each expanded to the other and to passages",
    source="HyperGraphRAG (Luo et al. 2025)",
    layout=layouts.HYPERGRAPHRAG,
    notes=(
        ("NearEntities.top_k", "HyperGraphRAG paper: 60 entities"),
        ("NearFacts.top_k", "HyperGraphRAG paper: 60 hyperedges"),
    ),
)


def _show_other(
    recipe: Chain, name: str, layout: Layout, has: str = "its paper's budgets"
) -> Chain:
    """Return a recipe with another prompt: as much as its paper shows, or what `has` says."""
    about = f"`{recipe.name}`; the prompt has {has}"
    return replace(recipe, name=name, about=about, layout=layout)


DUAL_LEVEL_RECIPES = (
    build_lightrag("hybrid", "lightrag"),
    build_lightrag("local", "lightrag-local"),
    build_lightrag("global", "lightrag-global"),
    build_lightrag("mix", "lightrag-mix"),
    PATHRAG,
    HYPERGRAPHRAG,
    build_rograg("rograg-dual"),
    build_rograg("rograg-expanded", expand=True),
    build_rograg("rograg-exact", exact=True),
    _show_other(build_rograg("rograg-dual"), "rograg-12k", layouts.ROGRAG_12K),
)
HIPPORAG = Chain(
    "hipporag",
    (
        QuestionEntities(),
        NearEntities("names", top_k=1, each=True),
        Specific(),
        Ppr(over="entities", damping=0.5, passage=0.0, synonym=0.8),
    ),
    about="PageRank from the question's entities; passages by the entities they mention",
    source="HippoRAG (Gutiérrez et al. 2024)",
    notes=(
        ("NearEntities.top_k", "HippoRAG paper: each query entity to its nearest node"),
        ("NearEntities.each", "HippoRAG paper: each query entity to its nearest node"),
        ("Ppr.damping", "HippoRAG paper: 0.5"),
        ("Ppr.synonym", "HippoRAG paper: cosine of 0.8"),
        ("Ppr.passage", "passages are not nodes here"),
    ),
)
HIPPORAG2 = Chain(
    "hipporag2",
    (
        NearFacts("question", top_k=5),
        Recognise(share=0.8),
        WeighEntities(top_k=10),
        Ppr(over="passages", damping=0.5, passage=0.05, synonym=0.8),
    ),
    about="PageRank over entities and passages from the entities of the nearest facts",
    source="HippoRAG 2 (Gutiérrez et al. 2025)",
    notes=(
        ("NearFacts.top_k", "HippoRAG 2 paper: query to triple, 5"),
        ("Recognise.share", "ours, measured here; the paper asks a model"),
        ("WeighEntities.top_k", "ours: both ends of 5 triples; the authors' code keeps 5 phrases"),
        ("Ppr.damping", "HippoRAG 2 authors' code: 0.5"),
        ("Ppr.passage", "HippoRAG 2 paper: 0.05"),
        ("Ppr.synonym", "HippoRAG 2 paper: cosine of 0.8"),
    ),
)
HIPPORAG_RECIPES = (HIPPORAG, HIPPORAG2)
GRAPH_R1 = Chain(
    "graph-r1",
    (
        QuestionEntities(),
        Fork(
            (
                Chain(
                    "by entity",
                    (NearEntities("names", top_k=5), FactsOf(60, "similar", subject=0.0)),
                ),
                NearFacts("question", top_k=5, subject=0.0),
            ),
            join=reciprocal_facts,
        ),
        Keep(facts=5),
        ChunksOf(("facts",)),
    ),
    about="n-ary facts of the question's entities and nearest to it, fused by 1/rank",
    source="Graph-R1 (2025) §4.2, eq. 7-9",
    layout=layouts.GRAPH_R1,
    notes=(
        ("NearEntities.top_k", "Graph-R1 authors' code: k_V = 5"),
        ("NearFacts.top_k", "Graph-R1 authors' code: k_H = 5"),
        ("FactsOf.order", "Graph-R1 eq. 7: by similarity to the query"),
        ("FactsOf.subject", "Graph-R1 eq. 7: the hyperedge's own text"),
        ("NearFacts.subject", "Graph-R1 eq. 8: the hyperedge's own text"),
        ("Fork.join", "Graph-R1 eq. 9: 1/r_V + 1/r_H, 0 where absent"),
        ("Keep.facts", "Graph-R1 Table 7: top-k 5"),
        ("chunk", "Graph-R1 appendix: 1,200 tokens, overlap 50"),
    ),
    chunk=Chunking(1200, 50, "tokens"),
)
GRAPH_R1_RELEASED = Chain(
    "graph-r1-released",
    (
        Fork(
            (
                Chain("by entity", (NearEntities("question", top_k=5), FactsOf(60, "degree"))),
                NearFacts("question", top_k=5, subject=0.0),
            ),
            join=reciprocal_facts,
        ),
        Keep(facts=10),
        ChunksOf(("facts",)),
    ),
    about="`graph-r1` as the authors' code does it: whole question, facts by degree",
    source="Graph-R1, authors' code",
    layout=layouts.GRAPH_R1_RELEASED,
    notes=(
        ("NearEntities.top_k", "Graph-R1 authors' code: k_V = 5"),
        ("NearFacts.top_k", "Graph-R1 authors' code: k_H = 5"),
        ("NearFacts.subject", "Graph-R1 authors' code: the hyperedge's own text"),
        ("FactsOf.order", "Graph-R1 authors' code: by degree"),
        ("FactsOf.subject", "not used when ordered by degree"),
        ("Keep.facts", "Graph-R1 authors' code: 10 facts"),
        ("chunk", "Graph-R1 authors' code: 1,200 tokens, overlap 100"),
    ),
    chunk=Chunking(1200, 100, "tokens"),
)
OWN_FACTS = Chain(
    "own-facts",
    (LinkNames(), OwnFacts()),
    about="facts of the pages about what a query names, then of the nearest; for agents' queries",
    source="measured here, see docs/results/training.md",
    layout=layouts.OWN_FACTS,
)
GRAPH_R1_RECIPES = (GRAPH_R1, GRAPH_R1_RELEASED, OWN_FACTS)
_MSGRAPHRAG_SOURCE = "MS GraphRAG (Edge et al. 2024)"
_MSGRAPHRAG_CHUNKS = Chunking(600, 100, "tokens")
_MSGRAPHRAG_CHUNK_NOTE = "MS GraphRAG paper: 600 tokens, overlap 100"
MSGRAPHRAG_LOCAL = Chain(
    "msgraphrag-local",
    (NearEntities("question", top_k=10), Around(tree="leiden", relations=10, reports=5, top_k=100)),
    about="entities near the question, with their relations, community reports and passages",
    source=_MSGRAPHRAG_SOURCE,
    layout=layouts.MSGRAPHRAG,
    notes=(
        ("NearEntities.top_k", "authors' code: 10 mapped entities"),
        ("Around.relations", "authors' code: 10 relationships an entity"),
        ("Around.reports", "ours: authors' code gives reports 15% of 12,000 tokens, about 5"),
        ("chunk", _MSGRAPHRAG_CHUNK_NOTE),
    ),
    chunk=_MSGRAPHRAG_CHUNKS,
)
MSGRAPHRAG_GLOBAL = Chain(
    "msgraphrag-global",
    (Reports(tree="leiden", level=1, top_k=20, least=2), CitedChunks(of_each=3, top_k=100)),
    about="community reports over the whole corpus, for map-reduce answers",
    source=_MSGRAPHRAG_SOURCE,
    notes=(
        ("Reports.level", "§4.1.3: C1 to C2, the middle of four levels"),
        ("Reports.top_k", "ours: the paper reads all reports, a model here the nearest 20"),
        ("chunk", _MSGRAPHRAG_CHUNK_NOTE),
    ),
    chunk=_MSGRAPHRAG_CHUNKS,
)
RAPTOR = Chain(
    "raptor",
    (Collapsed(tree="raptor", tokens=2000, top_k=100),),
    about="passages and cluster summaries, ranked together",
    source="RAPTOR (Sarthi et al. 2024)",
    layout=layouts.TREE,
    notes=(
        ("Collapsed.tokens", "§3: collapsed tree, 2,000 tokens"),
        ("chunk", "RAPTOR §3: 100 tokens, whole sentences"),
    ),
    chunk=Chunking(100, 0, "sentences"),
)
E2GRAPHRAG = Chain(
    "e2graphrag",
    (LinkNames(), EntityPairs(hops=4, most=25, otherwise=Collapsed(tree="e2"), top_k=100)),
    about="passages with entities near each other in the graph, otherwise a summary tree",
    source="E²GraphRAG (Zhao et al. 2025)",
    layout=layouts.TREE,
    notes=(
        ("EntityPairs.hops", "authors' code: 4"),
        ("EntityPairs.most", "authors' code: 25 passages"),
    ),
)
TREE_RECIPES = (MSGRAPHRAG_LOCAL, MSGRAPHRAG_GLOBAL, RAPTOR, E2GRAPHRAG)


def build_youtu(name: str, top_k: int, *, communities: bool = True) -> Chain:
    """Build Youtu-GraphRAG's four routes side by side, and one by attributes (level 1).

    Without `communities` it is a row of Table 3.
    """
    by_attribute = (NearAttributes(top_k=top_k), FactsOf(top_k), ChunksOf(("entities",)))
    routes: tuple[Step, ...] = (
        Chain("entities", (NearEntities("names", top_k=top_k, each=True), FactsOf(top_k))),
        NearFacts("question", top_k=top_k),
        Chain("paths", (NearEntities("names", top_k=1, each=True), DepthFirst(5, top_k=top_k))),
        *((IfGrown(TopDown("dual", facts=top_k)),) if communities else ()),
        Chain("attributes", by_attribute),
    )
    # An entity with attributes may have no fact: its passages stand beside those of the facts.
    passages = Fork((ChunksOf(("facts", "paths")), Keep(*(top_k,) * 4)), join=in_turns)
    by_tree = "communities and " if communities else ""
    return Chain(
        name,
        (QuestionEntities(), Fork(routes, join=in_turns), passages),
        about=f"matching of entities, facts and attributes, {by_tree}depth-first paths",
        source="Youtu-GraphRAG (Dong et al. 2025) §A.3",
        layout=layouts.YOUTU,
        notes=(
            ("NearEntities.top_k", f"Youtu-GraphRAG §4: top-{top_k}; ours: 1 where paths begin"),
            ("NearFacts.top_k", f"Youtu-GraphRAG §4: top-{top_k}"),
            ("FactsOf.top_k", f"Youtu-GraphRAG §4: top-{top_k}"),
            (
                "IfGrown.route",
                "Youtu-GraphRAG eq. 10: nearest communities; beam and counts are ours",
            ),
            ("NearAttributes.top_k", f"Youtu-GraphRAG §4: top-{top_k}"),
            ("DepthFirst.depth", "Youtu-GraphRAG §A.3: depth of 5 at most"),
            ("DepthFirst.top_k", f"Youtu-GraphRAG §4: top-{top_k}"),
        ),
    )


YOUTU_BOTTOM_UP = Chain(
    "youtu-bottom-up",
    (
        QuestionEntities(),
        NearEntities("names", top_k=20, each=True),
        BottomUp(tree="dual", communities=5, keywords=3),
        FactsOf(20),
        ChunksOf(("facts",)),
    ),
    about="the question's entities, their communities, and facts of both",
    source="Youtu-GraphRAG (Dong et al. 2025) §3.2.1",
    layout=layouts.YOUTU,
    notes=(
        ("NearEntities.top_k", "Youtu-GraphRAG §4: top-20"),
        ("FactsOf.top_k", "Youtu-GraphRAG §4: top-20"),
        ("BottomUp.communities", "ours: as many as `youtu` reads"),
        ("BottomUp.keywords", "ours: the community's centre and the next two"),
    ),
)
MINIRAG = Chain(
    "minirag",
    (
        QuestionEntities(),
        NearEntities("names", top_k=3, each=True),
        TypedPaths(hops=2, width=8, seeds=5),
        ChunksOf(("paths", "entities")),
    ),
    about="paths from the question's entities to entities of the types it asks for",
    source="MiniRAG (Fan et al. 2025)",
    layout=layouts.PATHS,
    notes=(("TypedPaths.hops", "MiniRAG authors' code: 2 hops"),),
)
G_RETRIEVER = Chain(
    "g-retriever",
    (
        NearFacts("question", top_k=5),
        NearEntities("question", top_k=3),
        PrizedTree(cost=0.5),
        ChunksOf(("facts", "entities")),
    ),
    about="the prize-collecting subgraph that joins the best fitting entities and facts",
    source="G-Retriever (He et al. 2024)",
    layout=layouts.GRAPH,
    notes=(
        ("NearEntities.top_k", "G-Retriever authors' code: 3 nodes"),
        ("NearFacts.top_k", "G-Retriever authors' code: 5 edges"),
        ("PrizedTree.cost", "G-Retriever authors' code: 0.5 per edge"),
    ),
)
TOG = Chain(
    "tog",
    (
        QuestionEntities(),
        NearEntities("names", top_k=1, each=True),
        BeamPaths(width=3, max_hop=3, by="llm"),
        ChunksOf(("paths", "entities")),
    ),
    about="a beam search over the graph, pruned at every hop by the model or the embedder",
    source="Think-on-Graph (Sun et al. 2024)",
    layout=layouts.PATHS,
    notes=(
        ("BeamPaths.width", "Think-on-Graph paper: 3"),
        ("BeamPaths.max_hop", "Think-on-Graph paper: 3"),
        (
            "BeamPaths.by",
            "Think-on-Graph paper: the model prunes; the embedder where there is none",
        ),
    ),
)
PATH_RECIPES = (
    build_youtu("youtu", 20),
    build_youtu("youtu-10", 10),
    build_youtu("youtu-flat", 20, communities=False),
    YOUTU_BOTTOM_UP,
    MINIRAG,
    G_RETRIEVER,
    TOG,
)
