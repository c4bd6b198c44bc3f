"""Vectors of the rows of tables: means of their tokens' vectors, each token run once, alone.

Rows say the same few words over and over ("status: open; depot: Ghent"), and no sentence gives a
word of theirs another meaning. So a table of any length costs one short run per different token
rather than one long run per row. Such a vector depends on the row's text alone.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
_CELL = re.compile(r"(?P<column>[^\s:;][^:;\n]{0,59}): \S[^\n]*")
_MIN_CELLS = 2
_MAX_TITLES = 2  # lines above a row
_MAX_WORDS = 12  # of a cell: a longer one is prose, whose words need each other
_COMMON = 0.3  # weight of what most rows share: names of columns, and digits
_Span = tuple[int, int]


def find_columns(text: str) -> list[_Span]:
    """Return where a row's text names its columns; nothing if the text is no row of short cells.

    A row is "column: value; column: value.", below lines with the names of its file and sheet.
    """
    start = text.rfind("\n") + 1
    if text.count("\n") > _MAX_TITLES:
        return []
    found: list[_Span] = []
    for cell in text[start:].split("; "):
        match = _CELL.fullmatch(cell)
        if match is None or cell.count(" ") > _MAX_WORDS:
            return []
        found.append((start, start + match.end("column")))
        start += len(cell) + 2
    return found if len(found) >= _MIN_CELLS else []


@dataclass(frozen=True)
class TokenVectors:
    """The vector of each token alone, made when first wanted."""

    run: Callable[[int], Vector]
    _known: dict[int, Vector] = field(default_factory=dict)

    def mean(self, tokens: Iterable[tuple[int, str, _Span]], columns: list[_Span]) -> Vector | None:
        """Return the weighted mean of a row's tokens: id, text and span; None without a word."""
        weights: dict[int, float] = {}
        for token, text, (start, end) in tokens:
            if end > start and any(map(str.isalnum, text)):
                shared = text.strip("#").isdigit() or any(a <= start < b for a, b in columns)
                weights[token] = weights.get(token, 0.0) + (_COMMON if shared else 1.0)
        if not weights:
            return None
        vectors = np.stack([self._find(token) for token in weights])
        return np.array([*weights.values()], np.float32) @ vectors

    def _find(self, token: int) -> Vector:
        # Two threads may both run a token: they get the same vector.
        if token not in self._known:
            self._known[token] = self.run(token)
        return self._known[token]
