"""Recipes over propositions and entities without relations: PropRAG, LinearRAG, GFM-RAG."""

from clew.layout import PASSAGES
from clew.recipes import layouts
from clew.retrieve.activation import MessagePassing, SemanticBridge, SumEntities
from clew.retrieve.linking.keywords import QuestionEntities
from clew.retrieve.lookup import NearEntities, NearFacts
from clew.retrieve.paths.propositions import PropositionPaths
from clew.retrieve.ppr import Ppr, Specific, WeighEntities
from clew.retrieve.step import Chain, Step

_PROPRAG_NOTES = (
    ("NearFacts.top_k", "ours: as HippoRAG 2, 5"),
    ("WeighEntities.top_k", "ours: as `hipporag2`, 10"),
    ("Ppr.damping", "ours: 0.5 to find passages, 0.45 to rank them"),
    ("Ppr.passage", "as HippoRAG 2, which the authors' code is adapted from: 0.05"),
    ("Ppr.synonym", "as HippoRAG 2, which the authors' code is adapted from: cosine of 0.8"),
    ("Ppr.top_k", "ours: 50 passages are searched; enough for recall@100"),
    ("PropositionPaths.hops", "ours, after a reimplementation: paths of up to 3 propositions"),
    ("PropositionPaths.width", "ours, after a reimplementation: a beam of 4"),
    ("PropositionPaths.seeds", "ours: a beam from each of the nearest propositions"),
    ("PropositionPaths.focus", "ours, after a reimplementation: 50 passages"),
    ("PropositionPaths.reread", "ours: 0 sums vectors; a reimplementation embeds 40 joined texts"),
    ("PropositionPaths.subject", "ours: a sentence counts with its subject's name"),
    ("PropositionPaths.top_k", "ours: 5 paths"),
)


def build_proprag(name: str, reread: int) -> Chain:
    """Build PropRAG: passages by PageRank, paths among their propositions, PageRank again."""
    steps: tuple[Step, ...] = (
        NearFacts("question", top_k=5),
        WeighEntities(top_k=10),
        Ppr(over="passages", damping=0.5, passage=0.05, synonym=0.8, top_k=50),
        PropositionPaths(hops=3, width=4, seeds=5, focus=50, reread=reread, top_k=5),
        WeighEntities(top_k=10),
        Ppr(over="passages", damping=0.45, passage=0.05, synonym=0.8),
    )
    how = "by the vector of their joined text" if reread else "by the sum of their vectors"
    about = f"a beam search over paths of propositions, scored as a whole {how}, then PageRank"
    source = "PropRAG (Wang and Han 2025)"
    return Chain(name, steps, about, source, _PROPRAG_NOTES, layouts.PROPOSITIONS)


LINEARRAG = Chain(
    "linearrag",
    (
        QuestionEntities(),
        NearEntities("names", top_k=1, each=True),
        SemanticBridge(rounds=3, sentences=1, least=0.5, ratio=1.5, passage=0.05, damping=0.5),
    ),
    about="entities activated from sentence to sentence, then PageRank over entities and passages",
    source="LinearRAG (Zhuang et al. 2025)",
    layout=PASSAGES,
    notes=(
        ("NearEntities.top_k", "LinearRAG paper: each query entity to its nearest node"),
        ("NearEntities.each", "LinearRAG paper: each query entity to its nearest node"),
        ("SemanticBridge.rounds", "LinearRAG authors' code: 3 iterations"),
        ("SemanticBridge.sentences", "LinearRAG authors' code: 1 sentence of each entity"),
        ("SemanticBridge.least", "LinearRAG authors' code: 0.5"),
        ("SemanticBridge.ratio", "LinearRAG authors' code: 1.5"),
        ("SemanticBridge.passage", "LinearRAG authors' code: 0.05"),
        ("SemanticBridge.damping", "LinearRAG authors' code: 0.5"),
        ("SemanticBridge.subject", "ours: a sentence counts with its subject's name"),
        ("SemanticBridge.top_k", "ours: enough for recall@100"),
    ),
)
GFM_RAG = Chain(
    "gfm-rag",
    (
        QuestionEntities(),
        NearEntities("names", top_k=1, each=True),
        MessagePassing(layers=6, share=0.5, top_k=20),
        Specific(),
        SumEntities(top_k=100),
    ),
    about="message passing conditioned on the question, untrained: fixed weights, no network",
    source="GFM-RAG (Luo et al. 2025), untrained: its network's weights are fixed here",
    layout=layouts.GFM_RAG,
    notes=(
        ("NearEntities.top_k", "ours: the nearest entity of each name"),
        ("NearEntities.each", "ours: each name by itself"),
        ("MessagePassing.layers", "GFM-RAG authors' code: 6 layers"),
        ("MessagePassing.share", "ours: GFM-RAG learns its weights"),
        ("MessagePassing.subject", "ours: a sentence counts with its subject's name"),
        ("MessagePassing.top_k", "ours: 20 entities vote for passages"),
        ("SumEntities.top_k", "ours: enough for recall@100"),
    ),
)
PROPOSITION_RECIPES = (
    build_proprag("proprag", reread=0),
    build_proprag("proprag-reread", reread=40),
    LINEARRAG,
    GFM_RAG,
)
