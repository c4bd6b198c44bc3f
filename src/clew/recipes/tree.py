"""Recipes over trees and communities: MS GraphRAG local and global, RAPTOR, E²GraphRAG."""

from dataclasses import fields, is_dataclass

from clew.retrieve.grown.collapsed import Collapsed
from clew.retrieve.grown.community import CitedChunks, Reports
from clew.retrieve.lookup import NearEntities
from clew.retrieve.naming.link import LinkNames
from clew.retrieve.paths.entity_pairs import EntityPairs
from clew.retrieve.region.around import Around
from clew.retrieve.step import Chain, Step

_MSGRAPHRAG_SOURCE = "MS GraphRAG (Edge et al. 2024)"

MSGRAPHRAG_LOCAL = Chain(
    "msgraphrag-local",
    (
        NearEntities("question", top_k=10),
        Around(tree="leiden", relations=10, reports=5, top_k=100),
    ),
    about="entities near the question, with their relations, community reports and passages",
    source=_MSGRAPHRAG_SOURCE,
    notes=(
        ("NearEntities.top_k", "authors' code: 10 mapped entities"),
        ("Around.relations", "authors' code: 10 relationships an entity"),
        ("Around.reports", "authors' code gives reports 15% of 12,000 tokens: about 5 of ours"),
    ),
)
MSGRAPHRAG_GLOBAL = Chain(
    "msgraphrag-global",
    (Reports(tree="leiden", level=1, top_k=20, least=2), CitedChunks(of_each=3, top_k=100)),
    about="community reports over the whole corpus; answers are mapped over them and reduced",
    source=_MSGRAPHRAG_SOURCE,
    notes=(
        ("Reports.level", "§4.1.3: C1 to C2, the middle of four levels"),
        ("Reports.top_k", "ours: the paper reads all reports, a model here the nearest 20"),
    ),
)
RAPTOR = Chain(
    "raptor",
    (Collapsed(tree="raptor", tokens=2000, top_k=100),),
    about="passages and summaries of clusters of passages, as one list",
    source="RAPTOR (Sarthi et al. 2024)",
    notes=(("Collapsed.tokens", "§3: collapsed tree, 2,000 tokens"),),
)
E2GRAPHRAG = Chain(
    "e2graphrag",
    (LinkNames(), EntityPairs(hops=4, most=25, otherwise=Collapsed(tree="e2"), top_k=100)),
    about="passages that name entities near each other, or a summary tree where none are",
    source="E²GraphRAG (Zhao et al. 2025)",
    notes=(
        ("EntityPairs.hops", "authors' code: 4"),
        ("EntityPairs.most", "authors' code: 25 passages"),
    ),
)
TREE_RECIPES = (MSGRAPHRAG_LOCAL, MSGRAPHRAG_GLOBAL, RAPTOR, E2GRAPHRAG)


def required_trees(step: Step) -> tuple[str, ...]:
    """Return the trees a recipe needs; `clew tree --grow --by NAME` builds each."""
    trees: dict[str, None] = {}
    pending: list[object] = [step]
    while pending:
        item = pending.pop()
        if isinstance(item, tuple):
            pending += reversed(item)
        elif is_dataclass(item) and not isinstance(item, type):
            for field in fields(item):
                value = getattr(item, field.name)
                if field.name == "tree":
                    trees[str(value)] = None
                pending.append(value)
    return tuple(trees)
