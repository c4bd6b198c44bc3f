"""Personalised PageRank recipes: HippoRAG and HippoRAG 2."""

from clew.retrieve.lookup import NearEntities, NearFacts
from clew.retrieve.naming.keywords import QuestionEntities
from clew.retrieve.ppr import Ppr, Specific, WeighEntities
from clew.retrieve.recognise import Recognise
from clew.retrieve.step import Chain

HIPPORAG = Chain(
    "hipporag",
    (
        QuestionEntities(),
        NearEntities("names", top_k=1, each=True),
        Specific(),
        Ppr(over="entities", damping=0.5, passage=0.0, synonym=0.8),
    ),
    about="the question's names, a walk over entities, passages by what they mention",
    source="HippoRAG (Gutiérrez et al. 2024)",
    notes=(
        ("NearEntities.top_k", "HippoRAG paper: each query entity to its nearest node"),
        ("Ppr.damping", "HippoRAG paper: 0.5"),
        ("Ppr.synonym", "HippoRAG paper: cosine of 0.8"),
        ("Ppr.passage", "passages are no nodes here"),
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
    about="the question's nearest facts, a walk over their entities and all passages",
    source="HippoRAG 2 (Gutiérrez et al. 2025)",
    notes=(
        ("NearFacts.top_k", "HippoRAG 2 paper: query to triple, 5"),
        ("Recognise.share", "measured here; the paper asks a model"),
        ("WeighEntities.top_k", "both ends of 5 triples; HippoRAG 2 authors' code: 5 phrases"),
        ("Ppr.damping", "HippoRAG 2 authors' code: 0.5"),
        ("Ppr.passage", "HippoRAG 2 paper: 0.05"),
        ("Ppr.synonym", "HippoRAG 2 paper: cosine of 0.8"),
    ),
)

HIPPORAG_RECIPES = (HIPPORAG, HIPPORAG2)
