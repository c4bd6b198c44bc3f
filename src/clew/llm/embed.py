"""What an embedder must do."""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from clew.errors import EmbedderMismatch

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


def check_same_width(name: str, held: int, given: int) -> None:
    """Refuse to compare vectors of two lengths: the name is the same, the model is not."""
    if held != given:
        raise EmbedderMismatch(
            f"{name!r} gives vectors of {given} numbers now, this knowledge base holds its vectors "
            f"of {held}: set [embed] back, or remove the folder `vectors` and run `clew reembed`"
        )
