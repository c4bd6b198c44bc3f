"""LEGO-GraphRAG: the fifteen instances of its Table 1, other extractions, and GRAG-M."""

from clew.recipes import layouts
from clew.retrieve.communities.steps import ReportsOf
from clew.retrieve.expand import ChunksOf
from clew.retrieve.linking.link_entities import LinkEntities
from clew.retrieve.model_choice import ScoringModel
from clew.retrieve.paths.beam import BeamPaths
from clew.retrieve.paths.ranked import RankAnswers, RankedPaths, StructuralPaths
from clew.retrieve.step import Chain, Step
from clew.retrieve.subgraph.extract import (
    AdaptiveSubgraph,
    EgoSubgraph,
    IndexSubgraph,
    PartitionSubgraph,
    PprSubgraph,
    WalkedSubgraph,
)
from clew.retrieve.subgraph.prune import Prune

_PPR = PprSubgraph(max_ent=1000, damping=0.8)  # Table 1: max_ent; damping as theirs
_MAX_PATHS = 32  # Table 1: top_k
_REPORT = "LEGO-GraphRAG, technical report"
_LINKING = ("likeness", "cosine", "most")
_NOTES = (
    *((f"LinkEntities.{name}", "ours: the report takes entities as given") for name in _LINKING),
    ("RankAnswers.top_k", "Table 1: top_k 32; ours after SBR, where it sets no bound"),
    ("RankAnswers.read", "ours: paths by structure alone are ordered by reading them"),
    ("PprSubgraph.max_ent", "Table 1: max_ent 1,000"),
    ("PprSubgraph.damping", "LEGO-GraphRAG, not in its technical report: 0.8"),
    ("Prune.keep", "Table 1: max_edge 64"),
    ("RankedPaths.top_k", "Table 1: top_k 32"),
    ("BeamPaths.width", "Table 1: beam_width 8"),
    ("BeamPaths.max_hop", "Table 1: max_hop 4"),
    ("PprSubgraph.budget", "ours: edges the approximation looks along"),
    ("RankedPaths.max_hop", "ours: with 4 no question of MetaQA gains and the search takes twice"),
    ("StructuralPaths.max_hop", "ours: as Table 1 bounds a beam, at most 4 hops"),
    ("StructuralPaths.top_k", "ours: as many as entities; Table 1 sets no bound"),
    ("ChunksOf.of", "ours: passages that state the paths' facts, to be cited"),
    ("EgoSubgraph.hops", "ours: the report leaves k open"),
    ("EgoSubgraph.max_ent", "ours: as Table 1 bounds PageRank"),
    ("WalkedSubgraph.max_ent", "ours: as Table 1 bounds PageRank"),
    ("WalkedSubgraph.walks", "ours: bounds the search"),
    ("WalkedSubgraph.length", "ours: as Table 1 bounds a beam"),
    ("AdaptiveSubgraph.target", "B.5: by the question's hops and the density around its entities"),
    ("AdaptiveSubgraph.stakes", "B.5: neither a critical nor a lightweight task"),
    ("AdaptiveSubgraph.within", "Table 1: SBE-PPR, max_ent 1,000; the budget is ours"),
    ("PartitionSubgraph.tree", "B.7: Leiden"),
    ("PartitionSubgraph.max_size", "ours: B.7 sets no bound"),
    ("PartitionSubgraph.within", "B.7: PPR within the partition; the budget is ours"),
    ("IndexSubgraph.top_k", "ours: as many as Table 1 keeps of edges"),
    ("IndexSubgraph.max_facts", "ours: bounds the one-hop neighbourhood of B.7"),
)
_SBE: tuple[Step, ...] = (_PPR,)
# Table 1: max_hop=4
_SBR: tuple[Step, ...] = (StructuralPaths(max_hop=4), RankAnswers(_MAX_PATHS, read=True))


def _sae(by: ScoringModel) -> tuple[Step, ...]:
    return (_PPR, Prune("edges", keep=64, by=by))  # Table 1: max_edge=64


def _osar(by: ScoringModel) -> tuple[Step, ...]:
    return (RankedPaths(top_k=_MAX_PATHS, by=by), RankAnswers(_MAX_PATHS))


def _isar(by: ScoringModel) -> tuple[Step, ...]:
    # Table 1: beam_width=8, max_hop=4
    return (BeamPaths(width=8, max_hop=4, by=by), RankAnswers(_MAX_PATHS))


_TABLE: tuple[tuple[str, tuple[Step, ...], tuple[Step, ...]], ...] = (
    ("SBE-PPR + SBR-SPR", _SBE, _SBR),
    ("SAE-EEMs + OSAR-EEMs", _sae("eem"), _osar("eem")),
    ("SAE-EEMs + OSAR-LLMs", _sae("eem"), _osar("llm")),
    ("SAE-LLMs + OSAR-EEMs", _sae("llm"), _osar("eem")),
    ("SAE-LLMs + OSAR-LLMs", _sae("llm"), _osar("llm")),
    ("SAE-EEMs + ISAR-EEMs", _sae("eem"), _isar("eem")),
    ("SAE-EEMs + ISAR-LLMs", _sae("eem"), _isar("llm")),
    ("SAE-LLMs + ISAR-EEMs", _sae("llm"), _isar("eem")),
    ("SAE-LLMs + ISAR-LLMs", _sae("llm"), _isar("llm")),
    ("SAE-EEMs + SBR-SPR", _sae("eem"), _SBR),
    ("SAE-LLMs + SBR-SPR", _sae("llm"), _SBR),
    ("SBE-PPR + OSAR-EEMs", _SBE, _osar("eem")),
    ("SBE-PPR + OSAR-LLMs", _SBE, _osar("llm")),
    ("SBE-PPR + ISAR-EEMs", _SBE, _isar("eem")),
    ("SBE-PPR + ISAR-LLMs", _SBE, _isar("llm")),
)

# Other extractions, each before the paths of lego-12: name, step, what it is, place in the report.
_EXTRACTIONS: tuple[tuple[str, Step, str, str], ...] = (
    ("ego", EgoSubgraph(hops=2, max_ent=1000), "the two-hop ego network", "SBE"),
    ("walk", WalkedSubgraph(max_ent=1000), "what random walks visit most", "SBE"),
    ("adaptive", AdaptiveSubgraph(within=_PPR), "PageRank, as far as the question needs", "B.5"),
    ("partition", PartitionSubgraph(within=_PPR), "PageRank in a Leiden community", "B.7"),
    ("index", IndexSubgraph(top_k=64), "the nearest facts by vector, one hop around", "B.7"),
)


def _build_chain(name: str, steps: tuple[Step, ...], about: str, place: str) -> Chain:
    steps = (LinkEntities(), *steps, ChunksOf(of=("paths",)))
    shown = layouts.GRAG_M if name == "grag-m" else layouts.LEGO
    return Chain(name, steps, about, f"{_REPORT}, {place}", _NOTES, shown)


GRAG_M = _build_chain(
    "grag-m",
    (*_SBE, *_osar("eem"), ReportsOf(tree="leiden", reports=1)),
    "paths of lego-12 with the report on the community of the question's entity",
    "B.10",
)
LEGO_RECIPES: tuple[Chain, ...] = (
    *(
        _build_chain(f"lego-{n}", (*extract, *find), f"paths through a graph: {name}", "Table 1")
        for n, (name, extract, find) in enumerate(_TABLE, start=1)
    ),
    *(
        _build_chain(f"lego-{name}", (step, *_osar("eem")), f"paths of lego-12 in {about}", place)
        for name, step, about, place in _EXTRACTIONS
    ),
    GRAG_M,
)
