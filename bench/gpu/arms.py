"""The experiment arms: which retriever, over which exported knowledge base."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from clew.train.core.environment import retrieve_nothing
from clew.train.encoder import MiniLM
from clew.train.search.exported_kb import ExportedKb
from clew.train.search.retrievers import (
    CachedRetriever,
    DualPathRetriever,
    PageFactsRetriever,
    PassageRetriever,
)

HELD_OUT, SPLIT_SEED = 200, 7
FACTS_PER_QUERY = 10  # twice the paper's 5: with 5, half the evidence would be missing
BINARY_KB = "kb-binary.npz"

_RETRIEVERS: dict[str, Callable[[ExportedKb], Any]] = {
    "graph": lambda kb: DualPathRetriever(kb, k=FACTS_PER_QUERY),
    "binary": lambda kb: DualPathRetriever(kb, k=FACTS_PER_QUERY),
    "clew": PageFactsRetriever,
    "chunks": PassageRetriever,
}
ARMS = (*_RETRIEVERS, "none")


def build_retriever(arm: str, folder: Path, device: str) -> Any:
    """Build an arm's retriever. `graph`: Graph-R1's dual path; `binary`: the same over triples;
    `clew`: facts of the pages about a name; `chunks`: Search-R1; `none`: R1.
    """
    if arm == "none":
        return retrieve_nothing
    embed = MiniLM(folder / "minilm.npz", device=device)
    file = folder / (BINARY_KB if arm == "binary" else "kb.npz")
    return CachedRetriever(_RETRIEVERS[arm](ExportedKb(file, embed, device=device)))
