"""LEGO-GraphRAG: the fifteen instances of its Table 1, their options, scorers and extractions.

A row of Table 1 has none of the options and scores by the embedder's cosine; each option of B.8 and
B.9 is a row of its own, as are the cross-encoder and the extractions of B.5 and B.7.
"""

from dataclasses import replace

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
    PprSubgraph,
    WalkedSubgraph,
)
from clew.retrieve.subgraph.partition import PartitionSubgraph
from clew.retrieve.subgraph.prune import Prune

_PPR = PprSubgraph(max_ent=1000, damping=0.8)  # Table 1: max_ent; damping as theirs
_MAX_PATHS = 32  # Table 1: top_k
_REPORT = "LEGO-GraphRAG, technical report"
_LINKING = ("likeness", "cosine", "most")
_NOTES = (
    *((f"LinkEntities.{name}", "ours: the report takes entities as given") for name in _LINKING),
    ("RankAnswers.top_k", "Table 1: top_k 32; ours after SBR, where it sets no bound"),
    ("PprSubgraph.max_ent", "Table 1: max_ent 1,000"),
    ("PprSubgraph.damping", "LEGO-GraphRAG, not in its technical report: 0.8"),
    ("Prune.keep", "Table 1: max_edge 64"),
    ("RankedPaths.top_k", "Table 1: top_k 32"),
    ("BeamPaths.width", "Table 1: beam_width 8"),
    ("BeamPaths.max_hop", "Table 1: max_hop 4"),
    ("PprSubgraph.budget", "ours: edges the approximation looks along"),
    ("RankedPaths.max_hop", "ours: with 4 no question of MetaQA gains and the search takes twice"),
    ("StructuralPaths.max_hop", "ours: as Table 1 bounds a beam, at most 4 hops"),
    *(
        (f"{step}.scorer", "B.2: a bi-encoder; `lego-N-cross-encoder` is the other EEM")
        for step in ("Prune", "RankedPaths", "BeamPaths")
    ),
    ("RankedPaths.rounds", "ours: B.9 leaves the rounds of M-LLMs open; 1 is a single choice"),
    ("RankedPaths.rerank", "not in Table 1; EEMs-R"),
    ("BeamPaths.prefilter", "none in Table 1; 32 with EEMs-PF is ours"),
    ("BeamPaths.supplement", "not in Table 1; EEMs-S"),
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
_SBR: tuple[Step, ...] = (StructuralPaths(max_hop=4), RankAnswers(_MAX_PATHS))


def _sae(by: ScoringModel) -> tuple[Step, ...]:
    return (_PPR, Prune("edges", keep=64, by=by))  # Table 1: max_edge=64


_RANKED = RankedPaths(top_k=_MAX_PATHS)
_BEAM = BeamPaths(width=8, max_hop=4)  # Table 1: beam_width=8, max_hop=4


def _osar(by: ScoringModel) -> tuple[Step, ...]:
    return (replace(_RANKED, by=by), RankAnswers(_MAX_PATHS))


def _isar(by: ScoringModel) -> tuple[Step, ...]:
    return (replace(_BEAM, by=by), RankAnswers(_MAX_PATHS))


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

# Options of B.8 and B.9, each on the instance of the report's table: name, instance, step with the
# option, what it is, place in the report.
_OPTIONS: tuple[tuple[str, int, Step, str, str], ...] = (
    ("triple", 14, replace(_BEAM, scoring="triple"), "the newest triple alone is scored", "B.8"),
    ("dynamic", 14, replace(_BEAM, pruning="dynamic"), "paths above the mean are kept", "B.8"),
    ("llms-r", 14, replace(_BEAM, refine=True), "a model refines the paths found", "B.8"),
    ("llms-es", 14, replace(_BEAM, early_stop=True), "a model may end the search", "B.8"),
    (
        *("eems-pf", 15, replace(_BEAM, by="llm", prefilter=32)),
        *("the model chooses among the 32 best by embedder", "B.8"),
    ),
    (
        *("eems-s", 15, replace(_BEAM, by="llm", supplement=True)),
        *("the embedder supplements what the model chooses", "B.8"),
    ),
    (
        *("eems-r", 13, replace(_RANKED, by="llm", rerank=True)),
        *("the model's choice in the embedder's order", "B.9"),
    ),
    ("m-llms", 13, replace(_RANKED, by="llm", rounds=3), "the model chooses three times", "B.9"),
    (
        *("llms-e", 13, replace(_RANKED, scorer="llm-embeddings")),
        *("ranked by the language model's embeddings", "B.9"),
    ),
)
# The report's other EEM for the instances without a model.
_RESCORED_INSTANCES = (2, 6, 10, 12, 14)

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
    shown = layouts.GRAG_M if name == "grag-m" else layouts.PATHS
    return Chain(name, steps, about, f"{_REPORT}, {place}", _NOTES, shown)


def _with_cross_encoder(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps with a cross-encoder wherever paths or relations are scored."""
    scoring = (Prune, RankedPaths, BeamPaths)
    return tuple(
        replace(step, scorer="cross-encoder") if isinstance(step, scoring) else step
        for step in steps
    )


def _build_options() -> tuple[Chain, ...]:
    rows = []
    for option, number, step, about, place in _OPTIONS:
        name, extract, find = _TABLE[number - 1]
        steps = (*extract, step, *find[1:])
        rows.append(_build_chain(f"lego-{number}-{option}", steps, f"{name}: {about}", place))
    for number in _RESCORED_INSTANCES:
        name, extract, find = _TABLE[number - 1]
        steps = _with_cross_encoder((*extract, *find))
        about = f"{name}, scored by a cross-encoder"
        rows.append(_build_chain(f"lego-{number}-cross-encoder", steps, about, "Tables 1 and 2"))
    return tuple(rows)


GRAG_M = _build_chain(
    "grag-m",
    (*_SBE, *_osar("eem"), ReportsOf(tree="leiden", reports=1)),
    "paths of lego-12 with the report on the community of the question's entity",
    "B.10",
)
_LEGO = _build_chain(
    "lego", (*_SBE, *_osar("eem")), "paths through a graph, as lego-12: change its parts", "Table 1"
)
LEGO_RECIPES: tuple[Chain, ...] = (
    _LEGO,
    *(
        _build_chain(f"lego-{n}", (*extract, *find), f"paths through a graph: {name}", "Table 1")
        for n, (name, extract, find) in enumerate(_TABLE, start=1)
    ),
    *(
        _build_chain(f"lego-{name}", (step, *_osar("eem")), f"paths of lego-12 in {about}", place)
        for name, step, about, place in _EXTRACTIONS
    ),
    *_build_options(),
    GRAG_M,
)
