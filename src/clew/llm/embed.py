"""The embedder protocol."""

import hashlib
from collections.abc import Sequence
from typing import Literal, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from clew.errors import EmbedderMismatch, ModelError

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


def find_meaningless(vectors: NDArray[np.floating]) -> NDArray[np.int64]:
    """Positions of vectors that say nothing: of zeros alone, or with what is no number."""
    says = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
    return np.flatnonzero(~says)


def describe_meaningless(texts: Sequence[str], rows: NDArray[np.int64]) -> str:
    """Say which texts got a vector that says nothing."""
    first = texts[int(rows[0])].strip()
    shown = f"the text {first[:40]!r}" if first else "a text that is empty"
    more = f" and {len(rows) - 1} others" if len(rows) > 1 else ""
    return f"vectors of zeros, or of what is no number, for {shown}{more}"


def check_meaning(name: str, texts: Sequence[str], vectors: Vectors) -> Vectors:
    """Return the vectors of texts; raise if one says nothing, for it would never be found."""
    if len(rows := find_meaningless(vectors)):
        raise ModelError(
            f"{name} gave {describe_meaningless(texts, rows)}: nothing of that is stored; "
            "check the embedder, or leave out that text"
        )
    return vectors


def check_same_dim(name: str, held: int, given: int) -> None:
    """Raise if vectors of the same embedder name differ in dimension."""
    if held != given:
        raise EmbedderMismatch(
            f"{name!r} now returns vectors of {given} dimensions, but this knowledge base has its "
            f"vectors of {held}: restore [embed], or delete the folder `vectors` and run "
            "`clew reembed`"
        )
