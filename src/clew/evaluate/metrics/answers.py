"""Text metrics of an answer against gold answers: EM, SubEM, F1, set F1, Hits, ROUGE-L."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from clew.evaluate.metrics.normal import answer_tokens, is_same_answer, normalise_answer
from clew.text import split_words

_SEPARATOR = r"(?:[,;|&\n、，；]|(?<!\d)/|/(?!\d)|\b(?i:and|or)\b|以及|[和及与與或])"
_SEPARATORS = re.compile(rf"{_SEPARATOR}(?:\s*{_SEPARATOR})*")
_ITEM_NUMBER = re.compile(r"\s*\(?\d{1,3}[.)](?:\s+|(?=[^\W\d_]))")  # "2. London", "2.伦敦"


def exact_match(answer: str, golds: Sequence[str]) -> float:
    """1 when the answer equals a gold answer after normalisation (EM; Graph-R1 eq. 33)."""
    return float(any(is_same_answer(answer, gold) for gold in golds))


def sub_exact_match(answer: str, golds: Sequence[str]) -> float:
    """1 when the answer contains a gold answer, in whole words (SubEM; GraphSearch eq. 6)."""
    padded = _pad_tokens(answer)
    return float(any(_pad_tokens(gold) in padded for gold in golds if answer_tokens(gold)))


def f1(answer: str, golds: Sequence[str]) -> float:
    """Token F1 with the best-matching gold answer (Graph-R1 eq. 34)."""
    tokens = answer_tokens(answer)
    return max((overlap_f1(tokens, answer_tokens(gold)) for gold in golds), default=0.0)


def overlap_f1(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """F1 of two bags of tokens."""
    if not predicted or not gold:
        return float(not predicted and not gold)
    common = sum((Counter(predicted) & Counter(gold)).values())
    return 2 * common / (len(predicted) + len(gold))


def set_f1(answer: str, golds: Sequence[Sequence[str]]) -> float:
    """F1 between the listed answers and the gold answers, each with its aliases."""
    wanted = {
        tokens: at
        for at, names in enumerate(golds)
        for name in names
        if (tokens := answer_tokens(name))
    }
    if not wanted:
        return 0.0
    listed = _parse_listed_answers(answer, wanted)
    if not listed:
        return 0.0
    right = sum(isinstance(one, int) for one in listed)
    return 2 * right / (len(listed) + len(set(wanted.values())))


def _parse_listed_answers(
    answer: str, wanted: Mapping[tuple[str, ...], int]
) -> set[int | tuple[str, ...]]:
    """Parse a list of answers into indices of gold answers, or the tokens of anything else.

    A gold answer may contain a separator ("Trinidad and Tobago"): the longest match wins.
    """
    parts = list(_SEPARATORS.finditer(answer))
    starts = [0, *(part.end() for part in parts)]
    ends = [*(part.start() for part in parts), len(answer)]
    longest = max(len("".join(tokens)) for tokens in wanted)
    found: set[int | tuple[str, ...]] = set()
    at = 0
    while at < len(starts):
        numbered = _ITEM_NUMBER.match(answer, starts[at], ends[at])
        bare = numbered.end() if numbered else starts[at]
        # With its number first: a name may begin with one ("1. FC Nürnberg").
        for start in dict.fromkeys((starts[at], bare)):
            spans = [answer[start:end] for end in ends[at : at + longest + 1]]
            right = _match_longest_gold(spans, wanted, longest)
            if right is not None:
                number, dividers = right
                found.add(number)
                at += dividers
                break
        else:
            if tokens := answer_tokens(answer[bare : ends[at]]):
                found.add(tokens)
        at += 1
    return found


def _match_longest_gold(
    spans: Sequence[str], wanted: Mapping[tuple[str, ...], int], longest: int
) -> tuple[int, int] | None:
    """Return the longest gold answer and its separators; `spans` are in increasing length."""
    found = None
    for dividers, span in enumerate(spans):
        if len(normalise_answer(span).replace(" ", "")) > longest:
            break
        tokens = answer_tokens(span)
        if tokens in wanted:
            found = wanted[tokens], dividers
    return found


def hits(ranked: Sequence[str], golds: Sequence[str]) -> float:
    """1 when one of the ranked answers is a gold answer (Hits@k for the first k)."""
    return float(any(is_same_answer(answer, gold) for answer in ranked for gold in golds))


def answer_reciprocal_rank(ranked: Sequence[str], golds: Sequence[str]) -> float:
    """1 / rank of the first correct answer."""
    for rank, answer in enumerate(ranked, start=1):
        if hits([answer], golds):
            return 1 / rank
    return 0.0


def rouge_l(answer: str, golds: Sequence[str]) -> float:
    """ROUGE-L F-measure on words with the best-matching gold answer (Lin 2004)."""
    tokens = split_words(answer)
    return max((_rouge_l_score(tokens, split_words(gold)) for gold in golds), default=0.0)


def _rouge_l_score(predicted: list[str], gold: list[str]) -> float:
    if not predicted or not gold:
        return 0.0
    return 2 * lcs_length(predicted, gold) / (len(predicted) + len(gold))


def lcs_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Length of the longest common subsequence, bit-parallel: one integer is a row."""
    places: dict[str, int] = {}
    for at, word in enumerate(one):
        places[word] = places.get(word, 0) | 1 << at
    # A zero bit marks a step of the row; adding carries each step to the next match (Crochemore).
    full = (1 << len(one)) - 1
    row = full
    for word in other:
        match = row & places.get(word, 0)
        row = ((row + match) | (row - match)) & full
    return len(one) - row.bit_count()


def _pad_tokens(text: str) -> str:
    return f" {' '.join(answer_tokens(text))} "
