"""Metrics of a ranking of passages against the gold passages."""

from collections.abc import Sequence
from math import log2


def recall(found: Sequence[str], gold: Sequence[str]) -> float:
    """Which part of the gold passages was found."""
    wanted = set(gold)
    return len(wanted & set(found)) / len(wanted)


def precision(found: Sequence[str], gold: Sequence[str]) -> float:
    """Which part of what was found is gold."""
    return len(set(gold) & set(found)) / len(set(found)) if found else 0.0


def all_found(found: Sequence[str], gold: Sequence[str]) -> float:
    """1 when every gold passage was found."""
    return float(set(gold) <= set(found))


def any_found(found: Sequence[str], gold: Sequence[str]) -> float:
    """1 when at least one gold passage was found."""
    return float(bool(set(gold) & set(found)))


def reciprocal_rank(found: Sequence[str], gold: Sequence[str]) -> float:
    """1 / the place of the first gold passage; its mean is MRR."""
    wanted = set(gold)
    for place, doc in enumerate(found, start=1):
        if doc in wanted:
            return 1 / place
    return 0.0


def ndcg(found: Sequence[str], gold: Sequence[str], k: int) -> float:
    """Discounted gain of the gold passages, as a share of the best that k places allow."""
    wanted = set(gold)
    gain = sum(1 / log2(place + 1) for place, doc in enumerate(found[:k], 1) if doc in wanted)
    best = sum(1 / log2(place + 1) for place in range(1, min(k, len(wanted)) + 1))
    return gain / best
