"""Metrics by name; each is a pure function of a recipe's output and the gold."""

import re
from collections.abc import Callable, Sequence
from functools import partial

from clew.errors import ConfigError
from clew.evaluate.metrics.answers import (
    answer_rank,
    contained,
    exact_match,
    f1,
    hits,
    rouge_l,
    set_f1,
)
from clew.evaluate.metrics.normal import normal_answer
from clew.evaluate.metrics.ranking import (
    all_found,
    any_found,
    ndcg,
    precision,
    recall,
    reciprocal_rank,
)

__all__ = ["contained", "depth", "exact_match", "f1", "normal_answer", "ranking_metric", "recall"]

Ranking = Callable[[Sequence[str], Sequence[str]], float]
Answering = Callable[[str, Sequence[str]], float]
Listing = Callable[[str, Sequence[Sequence[str]]], float]

_CUT: dict[str, Ranking] = {
    "recall": recall,
    "precision": precision,
    "all": all_found,
    "any": any_found,
    "mrr": reciprocal_rank,
}
SHORT_METRICS: dict[str, Answering] = {"em": exact_match, "f1": f1}
"""Computed on the short answer."""
SET_METRICS: dict[str, Listing] = {"set-f1": set_f1}
"""Computed on the short answer as a list, against all gold answers with their aliases."""
FULL_METRICS: dict[str, Answering] = {"subem": contained, "rouge-l": rouge_l}
"""Computed on the whole response."""
CHOICE_METRICS = ("choice", "choice-f1")
REFUSAL_PARTS = ("refusal-precision", "refusal-recall")
"""Precision and recall of refusing unanswerable questions."""
OTHER_METRICS = ("reversion", "refusal", *REFUSAL_PARTS, "r-s")
GROUND_METRICS = ("grounded", "citation-precision", "citation-recall")
JUDGED_METRICS = ("accuracy", "judge@1", "a-score", "e-score", "g-e")
NEED_ANSWERS = frozenset(
    [*SHORT_METRICS, *SET_METRICS, *FULL_METRICS, *CHOICE_METRICS, *GROUND_METRICS]
    + [*JUDGED_METRICS, "reversion", "refusal", *REFUSAL_PARTS]
)
"""Metrics of generated answers, which need `--answers`."""

_AT = re.compile(r"([a-z]+)@([1-9]\d{0,3})")
_USUAL_DEPTH = 10
KNOWN = (
    "recall@K, precision@K, all@K, any@K, ndcg@K, mrr, hits@K, answer-mrr, "
    + ", ".join([*SHORT_METRICS, *SET_METRICS, *FULL_METRICS, *CHOICE_METRICS, *OTHER_METRICS])
    + ", "
    + ", ".join([*GROUND_METRICS, *JUDGED_METRICS])
)


def ranking_metric(name: str) -> Ranking | None:
    """Return the passage-ranking metric of this name, or None if it is of another kind."""
    if name == "mrr":
        return reciprocal_rank
    match = _AT.fullmatch(name)
    if match is None:
        return None
    k = int(match[2])
    if match[1] == "ndcg":
        return partial(ndcg, k=k)
    if match[1] not in _CUT:
        return None
    measure = _CUT[match[1]]
    return lambda found, gold: measure(found[:k], gold)


def answer_ranking_metric(name: str) -> Callable[[Sequence[str], Sequence[str]], float] | None:
    """Return the answer-ranking metric (Hits@k, MRR) of this name, or None."""
    if name == "answer-mrr":
        return answer_rank
    match = _AT.fullmatch(name)
    if match is None or match[1] != "hits":
        return None
    k = int(match[2])
    return lambda ranked, golds: hits(ranked[:k], golds)


def depth(names: Sequence[str]) -> int:
    """Return how many passages the metrics need; raise ConfigError for an unknown name."""
    deepest = 5
    for name in names:
        check(name)
        deepest = max(deepest, _USUAL_DEPTH if name == "mrr" else looks_at(name))
    return deepest


def looks_at(name: str) -> int:
    """Return the cutoff k of a passage-ranking metric; 0 if it has none."""
    match = _AT.fullmatch(name)
    return int(match[2]) if match and ranking_metric(name) else 0


def check(name: str) -> None:
    """Raise ConfigError if the name is no metric."""
    if ranking_metric(name) or answer_ranking_metric(name):
        return
    if name not in NEED_ANSWERS and name not in OTHER_METRICS:
        raise ConfigError(f"no metric {name!r}; have {KNOWN}")
