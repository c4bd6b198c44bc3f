"""Metrics, each a plain function of what was found or said and what is right."""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from clew.errors import ConfigError

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)

Retrieval = Callable[[Sequence[str], Sequence[str]], float]
Answering = Callable[[str, Sequence[str]], float]


def normal_answer(text: str) -> str:
    """Lower case, no punctuation, no English articles, single spaces (SQuAD's normalisation)."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def recall(found: Sequence[str], gold: Sequence[str]) -> float:
    """Which part of the gold passages was found."""
    wanted = set(gold)
    return len(wanted & set(found)) / len(wanted)


def exact_match(said: str, golds: Sequence[str]) -> float:
    """1 when the answer equals a gold answer after normalisation."""
    return float(any(normal_answer(said) == normal_answer(gold) for gold in golds))


def contained(said: str, golds: Sequence[str]) -> float:
    """1 when a gold answer stands inside the answer (SubEM)."""
    here = f" {normal_answer(said)} "
    return float(any(f" {normal_answer(gold)} " in here for gold in golds))


def f1(said: str, golds: Sequence[str]) -> float:
    """Token F1 with the gold answer that fits best."""
    return max(
        (_f1(normal_answer(said).split(), normal_answer(g).split()) for g in golds), default=0.0
    )


def _f1(said: list[str], gold: list[str]) -> float:
    if not said or not gold:
        return float(said == gold)
    same = sum((Counter(said) & Counter(gold)).values())
    return 2 * same / (len(said) + len(gold))


ANSWER_METRICS: dict[str, Answering] = {"em": exact_match, "subem": contained, "f1": f1}

_AT = re.compile(r"recall@([1-9]\d{0,3})")


def retrieval_metric(name: str) -> Retrieval | None:
    """The metric called `recall@k`, or None when the name is of another family."""
    match = _AT.fullmatch(name)
    if match is None:
        return None
    k = int(match[1])
    return lambda found, gold: recall(found[:k], gold)


def depth(names: Sequence[str]) -> int:
    """How many passages the metrics need; an unknown name is refused."""
    deepest = 5
    for name in names:
        match = _AT.fullmatch(name)
        if match:
            deepest = max(deepest, int(match[1]))
        elif name not in ANSWER_METRICS:
            raise ConfigError(
                f"no metric {name!r}; have recall@K, {', '.join(sorted(ANSWER_METRICS))}"
            )
    return deepest
