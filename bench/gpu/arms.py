"""The experiment arms: which retriever, over which exported knowledge base."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from clew.train.environment import nothing
from clew.train.search.minilm import MiniLM
from clew.train.search.retrievers import DualPath, Exported, OwnFacts, Passages, Remembered

HELD_OUT, SPLIT_SEED = 200, 7
FACTS = 10  # twice the paper's 5: with 5, half the evidence would be missing
BINARY = "kb-binary.npz"

_MADE: dict[str, Callable[[Exported], Any]] = {
    "graph": lambda kb: DualPath(kb, k=FACTS),
    "binary": lambda kb: DualPath(kb, k=FACTS),
    "clew": OwnFacts,
    "chunks": Passages,
}
ARMS = (*_MADE, "none")


def retriever_of(arm: str, folder: Path, device: str) -> Any:
    """Build an arm's retriever. `graph`: Graph-R1's dual path; `binary`: the same over triples;
    `clew`: facts of the pages about a name; `chunks`: Search-R1; `none`: R1.
    """
    if arm == "none":
        return nothing
    embed = MiniLM(folder / "minilm.npz", device=device)
    file = folder / (BINARY if arm == "binary" else "kb.npz")
    return Remembered(_MADE[arm](Exported(file, embed, device=device)))
