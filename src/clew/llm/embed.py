"""The embedder protocol."""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from clew.errors import EmbedderMismatch

EmbedRole = Literal["passage", "query"]
Vectors = NDArray[np.float32]


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


def check_same_dim(name: str, held: int, given: int) -> None:
    """Raise if vectors of the same embedder name differ in dimension."""
    if held != given:
        raise EmbedderMismatch(
            f"{name!r} now returns vectors of {given} dimensions, but this knowledge base has its "
            f"vectors of {held}: restore [embed], or delete the folder `vectors` and run "
            "`clew reembed`"
        )
