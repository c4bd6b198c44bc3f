"""LEGO-GraphRAG: fifteen instances as one table of modules, and one with community reports."""

from clew.retrieve.communities.steps import ReportsOf
from clew.retrieve.expand import ChunksOf
from clew.retrieve.linking.link_entities import LinkEntities
from clew.retrieve.model_choice import ScoringModel
from clew.retrieve.paths.answers import RankAnswers
from clew.retrieve.paths.beam import BeamPaths
from clew.retrieve.paths.ranked import RankedPaths, StructuralPaths
from clew.retrieve.step import Chain, Step
from clew.retrieve.subgraph.extract import PprSubgraph
from clew.retrieve.subgraph.prune import Prune

_PPR = PprSubgraph(max_ent=1000, damping=0.8)  # Table 1: max_ent; damping as theirs
_LINKING = ("likeness", "cosine", "most")
_SOURCE = "LEGO-GraphRAG, technical report, Table 1"
_NOTES = (
    *((f"LinkEntities.{name}", "ours: the report takes entities as given") for name in _LINKING),
    *((f"RankAnswers.{name}", "as Table 1 reads: the best 32 paths") for name in ("top_k", "read")),
    ("PprSubgraph.damping", "LEGO-GraphRAG: 0.8"),
    ("PprSubgraph.budget", "ours: edges the approximation looks along"),
    ("RankedPaths.max_hop", "ours: with 4 no question of MetaQA gains and the search takes twice"),
    ("StructuralPaths.max_hop", "as Table 1 bounds a beam: at most 4 hops"),
    ("StructuralPaths.top_k", "ours: as many as entities; Table 1 sets no bound"),
    ("ChunksOf.of", "ours: passages that say the paths' facts, to be cited"),
)
_MAX_PATHS = 32  # paths read at most


def _sbe_steps() -> tuple[Step, ...]:
    return (_PPR,)


def _sae_steps(by: ScoringModel) -> tuple[Step, ...]:
    return (_PPR, Prune("edges", keep=64, by=by))  # Table 1: max_edge=64


def _sbr_steps() -> tuple[Step, ...]:
    return (StructuralPaths("shortest", max_hop=4), RankAnswers(_MAX_PATHS, read=True))


def _osar_steps(by: ScoringModel) -> tuple[Step, ...]:
    return (RankedPaths(top_k=_MAX_PATHS, by=by), RankAnswers(_MAX_PATHS))  # Table 1: top_k=32


def _isar_steps(by: ScoringModel) -> tuple[Step, ...]:
    return (
        BeamPaths(width=8, max_hop=4, by=by),
        RankAnswers(_MAX_PATHS),
    )  # Table 1: beam_width, max_hop


_TABLE: tuple[tuple[str, tuple[Step, ...], tuple[Step, ...]], ...] = (
    ("SBE-PPR + SBR-SPR", _sbe_steps(), _sbr_steps()),
    ("SAE-EEMs + OSAR-EEMs", _sae_steps("eem"), _osar_steps("eem")),
    ("SAE-EEMs + OSAR-LLMs", _sae_steps("eem"), _osar_steps("llm")),
    ("SAE-LLMs + OSAR-EEMs", _sae_steps("llm"), _osar_steps("eem")),
    ("SAE-LLMs + OSAR-LLMs", _sae_steps("llm"), _osar_steps("llm")),
    ("SAE-EEMs + ISAR-EEMs", _sae_steps("eem"), _isar_steps("eem")),
    ("SAE-EEMs + ISAR-LLMs", _sae_steps("eem"), _isar_steps("llm")),
    ("SAE-LLMs + ISAR-EEMs", _sae_steps("llm"), _isar_steps("eem")),
    ("SAE-LLMs + ISAR-LLMs", _sae_steps("llm"), _isar_steps("llm")),
    ("SAE-EEMs + SBR-SPR", _sae_steps("eem"), _sbr_steps()),
    ("SAE-LLMs + SBR-SPR", _sae_steps("llm"), _sbr_steps()),
    ("SBE-PPR + OSAR-EEMs", _sbe_steps(), _osar_steps("eem")),
    ("SBE-PPR + OSAR-LLMs", _sbe_steps(), _osar_steps("llm")),
    ("SBE-PPR + ISAR-EEMs", _sbe_steps(), _isar_steps("eem")),
    ("SBE-PPR + ISAR-LLMs", _sbe_steps(), _isar_steps("llm")),
)

_INSTANCES = tuple(
    Chain(
        f"lego-{number}",
        (LinkEntities(), *extract, *retrieve, ChunksOf(of=("paths",))),
        about=f"paths through a graph: {name}",
        source=_SOURCE,
        notes=_NOTES,
    )
    for number, (name, extract, retrieve) in enumerate(_TABLE, start=1)
)

GRAG_M = Chain(
    "grag-m",
    (
        LinkEntities(),
        *_sbe_steps(),
        *_osar_steps("eem"),
        ReportsOf(tree="leiden", reports=1),
        ChunksOf(of=("paths",)),
    ),
    about="paths of lego-12 with the report on the community of the question's entity",
    source="LEGO-GraphRAG, technical report, B.10",
    notes=_NOTES,
)

LEGO_RECIPES: tuple[Chain, ...] = (*_INSTANCES, GRAG_M)
