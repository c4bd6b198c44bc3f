"""Recipes over paths and subgraphs: Youtu-GraphRAG, MiniRAG, G-Retriever, Think-on-Graph."""

from clew.retrieve.grown.community import IfGrown, TopDown
from clew.retrieve.lookup import NearEntities, NearFacts
from clew.retrieve.naming.keywords import QuestionEntities
from clew.retrieve.paths.beam import BeamPaths
from clew.retrieve.paths.flow import DepthFirst
from clew.retrieve.paths.typed import TypedPaths
from clew.retrieve.rank import in_turns
from clew.retrieve.region.expand import ChunksOf, FactsOf
from clew.retrieve.region.steiner import PrizedTree
from clew.retrieve.step import Chain, Fork, Step


def build_youtu(name: str, top_k: int) -> Chain:
    """Build Youtu-GraphRAG's four routes side by side."""
    routes: tuple[Step, ...] = (
        Chain("entities", (NearEntities("names", top_k=top_k, each=True), FactsOf(top_k))),
        NearFacts("question", top_k=top_k),
        Chain("paths", (NearEntities("names", top_k=1, each=True), DepthFirst(5, top_k=top_k))),
        IfGrown(TopDown("dual", facts=top_k)),
    )
    return Chain(
        name,
        (QuestionEntities(), Fork(routes, join=in_turns), ChunksOf(("facts", "paths"))),
        about="entity matching, fact matching, communities and depth-first paths, side by side",
        source="Youtu-GraphRAG (Dong et al. 2025) §A.3",
        notes=(
            ("NearEntities.top_k", f"Youtu-GraphRAG §4: top-k {top_k}; 1 where paths begin"),
            ("NearFacts.top_k", f"Youtu-GraphRAG §4: top-k {top_k}"),
            ("FactsOf.top_k", f"Youtu-GraphRAG §4: top-k {top_k}"),
            ("IfGrown.route", "Youtu-GraphRAG eq. 10: communities nearest to the question"),
            ("DepthFirst.depth", "Youtu-GraphRAG §A.3: depth of 5 at most"),
            ("DepthFirst.top_k", f"Youtu-GraphRAG §4: top-k {top_k}"),
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
    about="paths from the question's entities towards the kinds of thing it asks for",
    source="MiniRAG (Fan et al. 2025)",
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
    about="the cheapest subgraph that joins what fits the question best",
    source="G-Retriever (He et al. 2024)",
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
    about="a beam over the graph, pruned at every hop by the model or by meaning",
    source="Think-on-Graph (Sun et al. 2024)",
    notes=(
        ("BeamPaths.width", "Think-on-Graph paper: 3"),
        ("BeamPaths.max_hop", "Think-on-Graph paper: 3"),
        (
            "BeamPaths.by",
            "Think-on-Graph paper: the model prunes; the embedder where there is none",
        ),
    ),
)

PATH_RECIPES = (build_youtu("youtu", 20), build_youtu("youtu-10", 10), MINIRAG, G_RETRIEVER, TOG)
