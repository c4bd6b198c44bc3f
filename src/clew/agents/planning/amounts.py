"""Patterns for the sizes and counts that a page gives for its subject."""

import re
from collections.abc import Iterator

_NUMBER = r"\d[\d,.]*(?<![,.])(?:\s*(?:thousand|million|billion))?"
_UNIT = r"[\s-]?(?:square\s+)?[a-zA-Z²]+"
_ASKS_SIZE = re.compile(r"\bhow\s+(?P<how>tall|high|long|large|big|heavy|deep|wide)\b", re.I)
_ASKS_COUNT = re.compile(r"\bhow\s+many\s+(?P<what>[a-z]+)", re.I)
# Words for the asked size: as an adjective after the number, and as a noun.
_SIZES = {
    "tall": ("tall|high", "height"),
    "high": ("high|tall", "height|elevation|altitude"),
    "long": ("long|in length", "length"),
    "large": ("large|in area|in size", "area|size|population"),
    "big": ("big|large|in area|in size", "area|size|population"),
    "heavy": ("heavy|in weight", "weight|mass"),
    "deep": ("deep|in depth", "depth"),
    "wide": ("wide|in width", "width"),
}
_PEOPLE_NOUNS = ("inhabitants", "people", "residents", "citizens")


def find_amounts(asked: str, text: str) -> Iterator[tuple[int, int]]:
    """Find the spans of the asked number, with its unit."""
    if size := _ASKS_SIZE.search(asked):
        behind, noun = _SIZES[size["how"].lower()]
        shapes = [
            rf"(?P<amount>{_NUMBER}{_UNIT})[\s-]+(?:{behind})\b",
            rf"\b(?:{noun})\s+(?:of|is|was)\s+(?:about\s+|some\s+)?(?P<amount>{_NUMBER}{_UNIT})",
        ]
    elif count := _ASKS_COUNT.search(asked):
        what = count["what"].lower()
        shapes = [rf"(?P<amount>{_NUMBER})\s+(?:[a-z]+\s+)?{re.escape(what)}\b"]
        if what in _PEOPLE_NOUNS:
            shapes.append(
                rf"\bpopulation\s+(?:of|is|was)\s+(?:about\s+|some\s+)?(?P<amount>{_NUMBER})"
            )
    else:
        return
    for shape in shapes:
        yield from (found.span("amount") for found in re.finditer(shape, text, re.I))
