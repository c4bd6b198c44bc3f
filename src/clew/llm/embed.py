"""The embedder protocol."""

import hashlib
from collections.abc import Sequence
from typing import Literal, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from clew.errors import EmbedderMismatch

EmbedRole = Literal["passage", "query"]
Vectors = NDArray[np.float32]
# Shares of a text's letters in known words: an English vocabulary knows all of English, nine tenths
# of German and French, and little but names in scripts that it was not made for.
_NOTHING_KNOWN, _ENOUGH_KNOWN = 0.3, 0.7


class Embedder(Protocol):
    """Embeds texts as unit vectors, one row each, in the order given."""

    @property
    def name(self) -> str:
        """The name stored in the knowledge base's manifest; another name means other vectors."""

    @property
    def dim(self) -> int:
        """The length of every vector."""

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        """Embed a batch of any size; no text gives a `(0, dim)` array."""


Passage = tuple[str, Sequence[tuple[int, int]]]
"""A text, and the spans of those of its parts that are embedded within it."""


class QuoteEmbedder(Protocol):
    """An embedder that gives the parts of a text vectors in their context, in the same run."""

    async def embed_quotes(self, passages: Sequence[Passage], /) -> Vectors:
        """Embed each text and its parts: its vector, which is its own, then those of the parts."""


def can_quote(embed: object) -> TypeGuard[QuoteEmbedder]:
    """Whether an embedder, or the one that it wraps, is a `QuoteEmbedder`."""
    return hasattr(getattr(embed, "inner", embed), "embed_quotes")


def hash_prefix(prefix: str) -> str:
    """Return what a prefix of passages adds to an embedder's name: it changes the vectors."""
    return f"+{hashlib.sha256(prefix.encode()).hexdigest()[:8]}" if prefix else ""


def measure_known(embed: Embedder, text: str) -> float:
    """Return how far an embedder knows the words of a text, 0 to 1; 1 if it cannot tell."""
    measure = getattr(embed, "measure_known", None)
    share: float = 1.0 if measure is None else measure(text)
    return min(1.0, max(0.0, (share - _NOTHING_KNOWN) / (_ENOUGH_KNOWN - _NOTHING_KNOWN)))


def check_same_dim(name: str, held: int, given: int) -> None:
    """Raise if vectors of the same embedder name differ in dimension."""
    if held != given:
        raise EmbedderMismatch(
            f"{name!r} now returns vectors of {given} dimensions, but this knowledge base has its "
            f"vectors of {held}: restore [embed], or delete the folder `vectors` and run "
            "`clew reembed`"
        )
