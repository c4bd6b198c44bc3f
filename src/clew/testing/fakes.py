"""Deterministic fakes of embedding and chat models."""

from collections.abc import Sequence

import numpy as np

from clew.llm.embed import EmbedRole, Vectors
from clew.text import hash64, split_words


class HashEmbed:
    """Embeds a text as a hashed bag of words: texts that share words are close."""

    def __init__(self, name: str = "hash", dim: int = 64) -> None:
        self._name = name
        self._dim = dim
        self.texts = 0
        """Number of texts embedded, to show that none is embedded twice."""

    @property
    def name(self) -> str:
        """The name that the manifest records."""
        return self._name

    @property
    def dim(self) -> int:
        """The length of every vector."""
        return self._dim

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        """Sum a pseudo-random direction per word."""
        if role == "passage":
            self.texts += len(texts)
        vectors = np.zeros((len(texts), self._dim), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in split_words(text) or [text]:
                rng = np.random.default_rng(hash64(word))
                row += rng.standard_normal(self._dim).astype(np.float32)
            length = float(np.linalg.norm(row))
            row /= length or 1.0
        return vectors
