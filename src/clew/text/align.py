"""Aligns a text with another that has most of its words in the same order, such as its source.

Words that stand once in both texts, alone or with their neighbours, are anchors (patience diff);
between anchors the search is repeated.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise

_WORD = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]|[^\W_]+")  # scripts without spaces by character
_RUNS = (4, 2, 1)  # words of an anchor
_MAX_COMPARED = 40_000  # pairs of words without anchors that are compared one by one
_MOVED = 4  # words in a row of a part that stands elsewhere in the other text

Pair = tuple[int, int]


def split_words(text: str) -> list[tuple[str, int, int]]:
    """Return the words of a text with their spans."""
    return [(found[0], found.start(), found.end()) for found in _WORD.finditer(text)]


def align_words(own: Sequence[str], other: Sequence[str]) -> list[Pair]:
    """Return positions of equal words, by the position in the first text."""
    codes: dict[str, int] = {}
    left = [codes.setdefault(word, len(codes)) for word in own]
    right = [codes.setdefault(word, len(codes)) for word in other]
    pairs = dict(_align(left, right))
    for at, there in _find_moved(left, right, pairs):
        pairs.setdefault(at, there)
    return sorted(pairs.items())


def _align(left: Sequence[int], right: Sequence[int]) -> Iterator[Pair]:
    """Yield equal words that stand in the same order."""
    pending = [(0, len(left), 0, len(right))]
    while pending:
        start, end, begin, stop = pending.pop()
        while start < end and begin < stop and left[start] == right[begin]:
            yield start, begin
            start, begin = start + 1, begin + 1
        while start < end and begin < stop and left[end - 1] == right[stop - 1]:
            end, stop = end - 1, stop - 1
            yield end, stop
        if start == end or begin == stop:
            continue
        anchors = _find_anchors(left, right, (start, end, begin, stop))
        if anchors:
            yield from anchors
            bounds = [(start - 1, begin - 1), *anchors, (end, stop)]
            pending += [(a + 1, c, b + 1, d) for (a, b), (c, d) in pairwise(bounds)]
        elif (end - start) * (stop - begin) <= _MAX_COMPARED:
            yield from _compare(left[start:end], right[begin:stop], start, begin)


def _compare(left: Sequence[int], right: Sequence[int], start: int, begin: int) -> Iterator[Pair]:
    for block in SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks():
        for step in range(block.size):
            yield start + block.a + step, begin + block.b + step


def _find_anchors(
    left: Sequence[int], right: Sequence[int], within: tuple[int, int, int, int]
) -> list[Pair]:
    """Return words that begin what both parts have once, in the same order in both."""
    start, end, begin, stop = within
    for size in _RUNS:
        once = _find_single(right, begin, stop, size)
        pairs = [
            (at, once[run])
            for run, at in _find_single(left, start, end, size).items()
            if run in once
        ]
        if pairs:
            return _longest_rising(sorted(pairs))
    return []


def _find_single(
    words: Sequence[int], start: int, end: int, size: int
) -> dict[tuple[int, ...], int]:
    """Return where each run of so many words begins that stands here once."""
    found: dict[tuple[int, ...], int] = {}
    runs = zip(*(words[start + step : end] for step in range(size)), strict=False)
    for at, run in enumerate(runs, start):
        found[run] = -1 if run in found else at
    return {run: at for run, at in found.items() if at >= 0}


def _longest_rising(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the most pairs whose second positions rise as the first do."""
    tails: list[int] = []  # the least last position of a sequence of each length …
    holders: list[int] = []  # … and the pair that it ends with
    before: list[int] = []
    for at, (_, there) in enumerate(pairs):
        length = bisect_left(tails, there)
        before.append(holders[length - 1] if length else -1)
        tails[length : length + 1] = [there]
        holders[length : length + 1] = [at]
    found: list[Pair] = []
    at = holders[-1] if holders else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _find_moved(left: Sequence[int], right: Sequence[int], pairs: dict[int, int]) -> Iterator[Pair]:
    """Yield the words of unaligned parts that stand once, elsewhere, in the other text."""
    free = [at for at in range(len(left)) if at not in pairs]
    if len(free) < _MOVED:
        return
    once = _find_single(right, 0, len(right), _MOVED)
    done = -1
    for at in free:
        there = once.get(tuple(left[at : at + _MOVED]), -1) if at > done else -1
        while there >= 0 and at < len(left) and there < len(right) and left[at] == right[there]:
            if at in pairs:
                break
            yield at, there
            done, at, there = at, at + 1, there + 1
