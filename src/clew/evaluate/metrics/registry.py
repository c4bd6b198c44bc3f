"""Metrics by name, and those of a passage ranking against the gold passages."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from math import log2

from clew.errors import ConfigError
from clew.evaluate.metrics.answers import (
    answer_reciprocal_rank,
    exact_match,
    f1,
    hits,
    names_f1,
    names_recall,
    rouge_l,
    set_f1,
    sub_exact_match,
)


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


RankingMetric = Callable[[Sequence[str], Sequence[str]], float]
AnswerMetric = Callable[[str, Sequence[str]], float]
NamesMetric = Callable[[Sequence[str], Sequence[Sequence[str]]], float]
ListMetric = Callable[[str, Sequence[Sequence[str]]], float]
_CUTOFF_METRICS: dict[str, RankingMetric] = {
    "recall": recall,
    "precision": precision,
    "all": all_found,
    "any": any_found,
    "mrr": reciprocal_rank,
}
SHORT_METRICS: dict[str, AnswerMetric] = {
    "em": exact_match,
    "f1": f1,
    "subem-short": sub_exact_match,
}
"""Computed on the short answer …"""
LIKE_GOLD_METRICS = frozenset({"em", "f1"})
"""… but these are computed on the whole text where the gold answer is a sentence."""
SET_METRICS: dict[str, ListMetric] = {"set-f1": set_f1}
"""Computed on the short answer as a list, against all gold answers with their aliases."""
FULL_METRICS: dict[str, AnswerMetric] = {"subem": sub_exact_match, "rouge-l": rouge_l}
"""Computed on the whole response."""
GRAPH_METRICS: dict[str, NamesMetric] = {
    "subgraph-recall": names_recall,
    "subgraph-f1": names_f1,
    "path-recall": names_recall,
    "path-f1": names_f1,
}
"""Computed on the names of the subgraph, or of the paths, that a recipe returns."""
CHOICE_METRICS = ("choice", "choice-f1")
REFUSAL_METRICS = ("refusal-precision", "refusal-recall")
"""Precision and recall of refusing unanswerable questions."""
STATEMENT_RECALL = "statement-recall"
"""Of questions that say what a summary must state: the share that its text states …"""
_STATEMENTS_AT = re.compile(r"statements@([1-9]\d{0,3})")
"""… and the share that the first K passages do."""
OTHER_METRICS = ("reversion", "refusal", *REFUSAL_METRICS, "r-s")
GROUND_METRICS = ("grounded", "citation-precision", "citation-recall")
JUDGED_METRICS = ("accuracy", "judge@1", "a-score", "e-score", "g-e")
NEED_ANSWERS = frozenset(
    [*SHORT_METRICS, *SET_METRICS, *FULL_METRICS, *CHOICE_METRICS, *GROUND_METRICS]
    + [*JUDGED_METRICS, "reversion", "refusal", STATEMENT_RECALL, *REFUSAL_METRICS]
)
"""Metrics of generated answers, which need `--answers`."""
_AT_K = re.compile(r"([a-z]+)@([1-9]\d{0,3})")
_STEP_RECALL = re.compile(r"step-recall@([1-9]\d?)")
_DEFAULT_MRR_DEPTH = 10
METRIC_NAMES_HELP = (
    "recall@K, precision@K, all@K, any@K, ndcg@K, mrr, hits@K, answer-mrr, step-recall@N, "
    "statements@K, "
    f"{', '.join(GRAPH_METRICS)}, "
    + ", ".join([*SHORT_METRICS, *SET_METRICS, *FULL_METRICS, *CHOICE_METRICS, *OTHER_METRICS])
    + ", "
    + ", ".join([STATEMENT_RECALL, *GROUND_METRICS, *JUDGED_METRICS])
)


def get_ranking_metric(name: str) -> RankingMetric | None:
    """Return the passage-ranking metric of this name, or None if it is of another kind."""
    if name == "mrr":
        return reciprocal_rank
    match = _AT_K.fullmatch(name)
    if match is None:
        return None
    k = int(match[2])
    if match[1] == "ndcg":
        return partial(ndcg, k=k)
    if match[1] not in _CUTOFF_METRICS:
        return None
    measure = _CUTOFF_METRICS[match[1]]
    return lambda found, gold: measure(found[:k], gold)


def is_text_metric(name: str) -> bool:
    """Whether a metric compares texts, so that it does not apply to questions with options."""
    return name in SHORT_METRICS or name in SET_METRICS or name in FULL_METRICS


def step_count(name: str) -> int:
    """Return N of `step-recall@N`, the recall after an agent's first N retrievals; else 0."""
    match = _STEP_RECALL.fullmatch(name)
    return int(match[1]) if match else 0


def statements_depth(name: str) -> int:
    """Return K of `statements@K`, the statements of a summary in the first K passages; else 0."""
    match = _STATEMENTS_AT.fullmatch(name)
    return int(match[1]) if match else 0


def needs_answers(name: str) -> bool:
    """Whether a metric is of an answer, or of how an agent came to it."""
    return name in NEED_ANSWERS or bool(step_count(name))


def get_answer_ranking_metric(name: str) -> Callable[[Sequence[str], Sequence[str]], float] | None:
    """Return the answer-ranking metric (Hits@k, MRR) of this name, or None."""
    if name == "answer-mrr":
        return answer_reciprocal_rank
    match = _AT_K.fullmatch(name)
    if match is None or match[1] != "hits":
        return None
    k = int(match[2])
    return lambda ranked, golds: hits(ranked[:k], golds)


def required_depth(names: Sequence[str]) -> int:
    """Return how many passages the metrics need; raise ConfigError for an unknown name."""
    deepest = 5
    for name in names:
        check_metric(name)
        deepest = max(deepest, _DEFAULT_MRR_DEPTH if name == "mrr" else metric_depth(name))
    return deepest


def metric_depth(name: str) -> int:
    """Return the cutoff k of a passage-ranking metric; 0 if it has none."""
    match = _AT_K.fullmatch(name)
    return int(match[2]) if match and get_ranking_metric(name) else statements_depth(name)


def check_metric(name: str) -> None:
    """Raise ConfigError if the name is no metric."""
    if get_ranking_metric(name) or get_answer_ranking_metric(name) or step_count(name):
        return
    if name in GRAPH_METRICS or statements_depth(name):
        return
    if name not in NEED_ANSWERS and name not in OTHER_METRICS:
        raise ConfigError(f"unknown metric {name!r}; known: {METRIC_NAMES_HELP}")
