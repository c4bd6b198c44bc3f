"""Metrics of a passage ranking against the gold passages."""

from collections.abc import Sequence
from math import log2


def recall(found: Sequence[str], gold: Sequence[str]) -> float:
    """Share of the gold passages that were found."""
    wanted = set(gold)
    return len(wanted & set(found)) / len(wanted)


def precision(found: Sequence[str], gold: Sequence[str]) -> float:
    """Share of the found passages that are gold."""
    return len(set(gold) & set(found)) / len(set(found)) if found else 0.0


def all_found(found: Sequence[str], gold: Sequence[str]) -> float:
    """1 when every gold passage was found."""
    return float(set(gold) <= set(found))


def any_found(found: Sequence[str], gold: Sequence[str]) -> float:
    """1 when at least one gold passage was found."""
    return float(bool(set(gold) & set(found)))


def reciprocal_rank(found: Sequence[str], gold: Sequence[str]) -> float:
    """1 / rank of the first gold passage; its mean is MRR."""
    wanted = set(gold)
    for rank, doc in enumerate(found, start=1):
        if doc in wanted:
            return 1 / rank
    return 0.0


def ndcg(found: Sequence[str], gold: Sequence[str], k: int) -> float:
    """Discounted cumulative gain at k, divided by the ideal one."""
    wanted = set(gold)
    gain = sum(1 / log2(rank + 1) for rank, doc in enumerate(found[:k], 1) if doc in wanted)
    best = sum(1 / log2(rank + 1) for rank in range(1, min(k, len(wanted)) + 1))
    return gain / best
