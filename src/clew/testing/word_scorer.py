"""A fake query scorer without weights: it finds asked what it was told that questions ask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_RIGHT, _WRONG = 0.9, 0.01


@dataclass(frozen=True)
class WordScorer:
    """Gives a high chance to texts that have one of a question's phrases, a low one to others."""

    meant: Mapping[str, Sequence[str]]
    denied: Sequence[str] = ()
    """Phrases of the sentences that say no."""
    right: float = _RIGHT
    """What texts with a phrase get."""
    wrong: float = _WRONG
    """What others get."""

    def reads(self, question: str) -> bool:
        """Whether it was told of the question."""
        return question in self.meant

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a probability for each text."""
        known = self.meant.get(question, ())
        return np.array(
            [self.right if any(one in text for one in known) else self.wrong for text in texts],
            np.float32,
        )

    def score_statements(
        self, question: str, texts: Sequence[str]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return for each text how probable it decides a yes/no question, and that it says yes."""
        says = [_WRONG if any(phrase in t for phrase in self.denied) else _RIGHT for t in texts]
        return self.score(question, texts), np.array(says, np.float32)
