"""Repetition loops at the end of a reply, a common failure of small models."""

import zlib

WINDOW_CHARS = 4096
_MIN_JUDGED = 2000  # bytes that tell a loop from a text that repeats some words
_LOOP_RATIO = 6  # prose is compressed to a half or a third
MIN_REPEATS = 4
MIN_LOOP_CHARS = 200
"""Characters a loop must fill; anything shorter may be style."""


def is_loop(text: str) -> bool:
    """Whether a text ends in a loop, word for word or nearly so."""
    tail = text[-WINDOW_CHARS:].encode()
    near = len(tail) >= _MIN_JUDGED and len(tail) > _LOOP_RATIO * len(zlib.compress(tail))
    return near or cut_loop(text) != text


def cut_loop(text: str) -> str:
    """Keep one period of a repetition loop at the end of `text`, in linear time.

    Such loops are a common failure of small models.
    """
    tail = text[-WINDOW_CHARS:]
    period = _find_period(tail)
    if not period:
        return text
    start = len(text) - len(tail)
    begin = _find_loop_start(tail, period)
    if begin == 0:  # the loop fills the window: go back by large steps, then by periods
        step = period * max(1, WINDOW_CHARS // period)
        while start >= step and text[start - step : start] == text[start : start + step]:
            start -= step
        while start >= period and text[start - period : start] == text[start : start + period]:
            start -= period
    return text[: start + begin + period].rstrip()


def _find_period(tail: str) -> int:
    """Find the shortest period of a loop at the end (by prefix function); 0 if there is none."""
    backwards = tail[::-1]
    borders = [0] * len(backwards)
    matched = 0
    for place in range(1, len(backwards)):
        while matched and backwards[place] != backwards[matched]:
            matched = borders[matched - 1]
        if backwards[place] == backwards[matched]:
            matched += 1
        borders[place] = matched
    for length in range(len(backwards), MIN_LOOP_CHARS - 1, -1):
        period = length - borders[length - 1]
        if period * MIN_REPEATS <= length:
            return period
    return 0


def _find_loop_start(tail: str, period: int) -> int:
    """Find where in the window the repetition starts."""
    at = len(tail) - period
    while at and tail[at - 1] == tail[at - 1 + period]:
        at -= 1
    return at
