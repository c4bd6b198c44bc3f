"""Recipes with two levels of keywords: LightRAG, ROGRAG, PathRAG, HyperGraphRAG."""

from typing import Literal

from clew.retrieve.budget import Budget
from clew.retrieve.lookup import Dense, NearEntities, NearFacts, SameName, SameWords
from clew.retrieve.naming.keywords import Keywords, QuestionEntities
from clew.retrieve.paths.flow import FlowPaths
from clew.retrieve.rank import in_turns
from clew.retrieve.region.expand import ChunksOf, FactsOf, MembersOf
from clew.retrieve.step import Chain, Fork, Step

LightragMode = Literal["local", "global", "hybrid", "mix"]

_LIGHTRAG_NOTES = (
    ("NearEntities.top_k", "LightRAG authors' code: top_k 40"),
    ("NearEntities.least", "LightRAG authors' code: cosine above 0.2"),
    ("NearFacts.top_k", "LightRAG authors' code: top_k 40"),
    ("NearFacts.least", "LightRAG authors' code: cosine above 0.2"),
    ("FactsOf.order", "LightRAG authors' code: edges by degree, then weight"),
    ("FactsOf.top_k", "measured here: what fits the budget of 8,000 tokens"),
    ("MembersOf.top_k", "two ends of 40 relations"),
    ("ChunksOf.order", "LightRAG authors' code: chunks picked by vector"),
    ("ChunksOf.top_k", "LightRAG authors' code: 20 chunks, of each side"),
    ("Dense.top_k", "LightRAG authors' code: 20 chunks"),
    ("Fork.join", "LightRAG authors' code: one of each side in turn"),
    ("Budget.entities", "LightRAG authors' code: 6,000 tokens"),
    ("Budget.facts", "LightRAG authors' code: 8,000 tokens"),
    ("Budget.total", "LightRAG authors' code: 30,000 tokens"),
)


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
        "global": "what is asked → relations → their ends",
        "hybrid": "names → entities, what is asked → relations, taken in turns",
        "mix": "`lightrag`, and passages by the meaning of their text",
    }
    return Chain(name, steps, about[mode], "LightRAG (Guo et al. 2024)", _LIGHTRAG_NOTES)


_ROGRAG_NOTES = (
    ("NearEntities.top_k", "ROGRAG authors' code: 60 per level"),
    ("NearFacts.top_k", "ROGRAG authors' code: 60 per level"),
    ("NearEntities.each", "ours: name by name; all names as one text find less"),
    ("ChunksOf.order", "most said first"),
    ("Budget.entities", "ROGRAG figure 1 (d): 8k of nodes"),
    ("Budget.facts", "ROGRAG figure 1 (d): 8k of edges"),
    ("Budget.chunks", "ROGRAG figure 1 (d): 12k of chunks"),
)


def build_rograg(name: str, *, exact: bool) -> Chain:
    """Build ROGRAG's dual-level retrieval, matching fuzzily or exactly (Table 5)."""
    low: Step = SameName("names") if exact else NearEntities("names", top_k=60, each=True)
    high: Step = SameWords("topics", top_k=60) if exact else NearFacts("topics", top_k=60)
    levels = Fork(
        (Chain("low", (low, FactsOf(60, "similar"))), Chain("high", (high, MembersOf(120)))),
        join=in_turns,
    )
    steps: tuple[Step, ...] = (
        Keywords(),
        levels,
        ChunksOf(("facts", "entities")),
        Budget(entities=8000, facts=8000, chunks=12000),
    )
    about = "names → entities, what is asked → relations, matched " + (
        "letter by letter" if exact else "by meaning"
    )
    return Chain(name, steps, about, "ROGRAG (Wang et al. 2025) §3.2", _ROGRAG_NOTES)


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
    about="paths between the question's entities along which most flows",
    source="PathRAG (Chen et al. 2025)",
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
    notes=(
        ("NearEntities.top_k", "HyperGraphRAG paper: 60 entities"),
        ("NearFacts.top_k", "HyperGraphRAG paper: 60 hyperedges"),
    ),
)

DUAL_LEVEL_RECIPES = (
    build_lightrag("hybrid", "lightrag"),
    build_lightrag("local", "lightrag-local"),
    build_lightrag("global", "lightrag-global"),
    build_lightrag("mix", "lightrag-mix"),
    PATHRAG,
    HYPERGRAPHRAG,
    build_rograg("rograg-dual", exact=False),
    build_rograg("rograg-exact", exact=True),
)
