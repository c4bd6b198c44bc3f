"""Metrics of an answer in words, against gold answers in words."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from clew.evaluate.metrics.normal import answer_tokens, normal_answer, same_answer
from clew.text import words

_DIVIDER = r"(?:[,;|&\n、，；]|(?<!\d)/|/(?!\d)|\b(?i:and|or)\b|以及|[和及与與或])"
_LISTED = re.compile(rf"{_DIVIDER}(?:\s*{_DIVIDER})*")
_NUMBERED = re.compile(r"\s*\(?\d{1,3}[.)](?:\s+|(?=[^\W\d_]))")  # "2. London", "2.伦敦"


def exact_match(said: str, golds: Sequence[str]) -> float:
    """1 when the answer equals a gold answer after normalisation (EM; Graph-R1 eq. 33)."""
    return float(any(same_answer(said, gold) for gold in golds))


def contained(said: str, golds: Sequence[str]) -> float:
    """1 when a gold answer stands inside the answer, in whole words (SubEM; GraphSearch eq. 6)."""
    here = _padded(said)
    return float(any(_padded(gold) in here for gold in golds if answer_tokens(gold)))


def f1(said: str, golds: Sequence[str]) -> float:
    """Token F1 with the gold answer that fits best (Graph-R1 eq. 34)."""
    tokens = answer_tokens(said)
    return max((overlap_f1(tokens, answer_tokens(gold)) for gold in golds), default=0.0)


def overlap_f1(said: Sequence[str], gold: Sequence[str]) -> float:
    """Harmonic mean of precision and recall of two bags."""
    if not said or not gold:
        return float(not said and not gold)
    same = sum((Counter(said) & Counter(gold)).values())
    return 2 * same / (len(said) + len(gold))


def set_f1(said: str, golds: Sequence[Sequence[str]]) -> float:
    """F1 between the answers that are listed and the gold ones, each with all its names."""
    wanted = {
        tokens: at
        for at, names in enumerate(golds)
        for name in names
        if (tokens := answer_tokens(name))
    }
    if not wanted:
        return 0.0
    named = _named(said, wanted)
    if not named:
        return 0.0
    right = sum(isinstance(one, int) for one in named)
    return 2 * right / (len(named) + len(set(wanted.values())))


def _named(said: str, wanted: Mapping[tuple[str, ...], int]) -> set[int | tuple[str, ...]]:
    """What a list names: the number of a gold answer, or the words of anything else.

    A gold answer may hold what divides a list ("Trinidad and Tobago"): the longest is read first.
    """
    parts = list(_LISTED.finditer(said))
    starts = [0, *(part.end() for part in parts)]
    ends = [*(part.start() for part in parts), len(said)]
    longest = max(len("".join(tokens)) for tokens in wanted)
    found: set[int | tuple[str, ...]] = set()
    at = 0
    while at < len(starts):
        numbered = _NUMBERED.match(said, starts[at], ends[at])
        bare = numbered.end() if numbered else starts[at]
        # As it stands first: a name may begin with a number ("1. FC Nürnberg").
        for start in dict.fromkeys((starts[at], bare)):
            spans = [said[start:end] for end in ends[at : at + longest + 1]]
            right = _reaching(spans, wanted, longest)
            if right is not None:
                number, dividers = right
                found.add(number)
                at += dividers
                break
        else:
            if tokens := answer_tokens(said[bare : ends[at]]):
                found.add(tokens)
        at += 1
    return found


def _reaching(
    spans: Sequence[str], wanted: Mapping[tuple[str, ...], int], longest: int
) -> tuple[int, int] | None:
    """The gold answer that reaches farthest, and over how many dividers; each span is longer."""
    found = None
    for dividers, span in enumerate(spans):
        if len(normal_answer(span).replace(" ", "")) > longest:
            break
        tokens = answer_tokens(span)
        if tokens in wanted:
            found = wanted[tokens], dividers
    return found


def hits(ranked: Sequence[str], golds: Sequence[str]) -> float:
    """1 when one of the ranked answers is a gold answer (Hits@k for the first k)."""
    return float(any(same_answer(answer, gold) for answer in ranked for gold in golds))


def answer_rank(ranked: Sequence[str], golds: Sequence[str]) -> float:
    """1 / the place of the first right answer."""
    for place, answer in enumerate(ranked, start=1):
        if hits([answer], golds):
            return 1 / place
    return 0.0


def rouge_l(said: str, golds: Sequence[str]) -> float:
    """ROUGE-L F-measure: the longest common subsequence of words, best gold (Lin 2004)."""
    tokens = words(said)
    return max((_rouge(tokens, words(gold)) for gold in golds), default=0.0)


def _rouge(said: list[str], gold: list[str]) -> float:
    if not said or not gold:
        return 0.0
    return 2 * common_length(said, gold) / (len(said) + len(gold))


def common_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Length of the longest common subsequence, a whole row at a time in one integer's bits."""
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


def _padded(text: str) -> str:
    return f" {' '.join(answer_tokens(text))} "
