"""Graph-R1's retrieval over the hypergraph: two routes, fused by reciprocal rank."""

from clew.retrieve.lookup import NearEntities, NearFacts
from clew.retrieve.naming.keywords import QuestionEntities
from clew.retrieve.naming.link import LinkNames
from clew.retrieve.own_facts import OwnFacts
from clew.retrieve.rank import Keep, reciprocal_facts
from clew.retrieve.region.expand import ChunksOf, FactsOf
from clew.retrieve.step import Chain, Fork

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
    notes=(
        ("NearEntities.top_k", "Graph-R1 authors' code: k_V = 5"),
        ("NearFacts.top_k", "Graph-R1 authors' code: k_H = 5"),
        ("FactsOf.order", "Graph-R1 eq. 7: by similarity to the query"),
        ("FactsOf.subject", "Graph-R1 eq. 7: the hyperedge's own text"),
        ("NearFacts.subject", "Graph-R1 eq. 8: the hyperedge's own text"),
        ("Fork.join", "Graph-R1 eq. 9: 1/r_V + 1/r_H, 0 where absent"),
        ("Keep.facts", "Graph-R1, table of hyper-parameters: top-k 5"),
    ),
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
    notes=(("Keep.facts", "Graph-R1 authors' code: 10 facts"),),
)

OWN_FACTS = Chain(
    "own-facts",
    (LinkNames(), OwnFacts()),
    about="facts of the pages about what a query names, then of the nearest; for agents' queries",
    source="measured here, see docs/results/training.md",
)

GRAPH_R1_RECIPES = (GRAPH_R1, GRAPH_R1_RELEASED, OWN_FACTS)
