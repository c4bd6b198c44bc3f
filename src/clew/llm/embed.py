"""What an embedder must do."""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Role = Literal["passage", "query"]
Vectors = NDArray[np.float32]


class Embed(Protocol):
    """Turns texts into unit vectors, one row each, in the order given."""

    @property
    def name(self) -> str:
        """What the knowledge base's manifest records; another name means other vectors."""
        ...

    @property
    def dim(self) -> int:
        """The length of every vector."""
        ...

    async def __call__(self, texts: Sequence[str], /, *, role: Role = "passage") -> Vectors:
        """Embed a batch of any size; no text gives a `(0, dim)` array."""
        ...
