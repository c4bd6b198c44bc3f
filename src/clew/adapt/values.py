"""What can be learnt on top of a frozen embedder, as plain arrays."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.llm.embed import Embed, Role, Vectors

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

PLACES = 4  # how far from a path's end a step may be told apart
SLOTS = 2 * PLACES  # by place, and by direction
STRENGTH = 10.0  # how strongly a step's likeness counts: learning is quicker in small numbers


@dataclass(frozen=True, eq=False)
class PathAdapter:
    """How well each step of a relation path fits a question, by its place and direction.

    A question's vector and a relation's are brought into one small space, another one for each
    slot; relations never seen in learning are placed there by their words.
    """

    question: Floats
    """Slots × dimensions × rank."""
    label: Floats
    weights: Floats
    """How much each plain observation of a path counts, see `retrieve.path_meaning`."""

    def table(self, asked: Floats, labels: Floats) -> Floats:
        """Slots × labels: what each step adds to the score of a path."""
        near = np.einsum("kr,lkr->kl", self._asked(asked), self._labels(labels))
        found: Floats = STRENGTH * near
        return found

    def _asked(self, asked: Floats) -> Floats:
        found: Floats = np.einsum("d,kdr->kr", asked, self.question)
        return found

    def _labels(self, labels: Floats) -> Floats:
        found: Floats = np.einsum("ld,kdr->lkr", labels, self.label)
        return found


def slots(codes: Ints) -> Ints:
    """For each step of a table of codes (padded with -1) its slot; -1 where there is none."""
    hops = (codes >= 0).sum(axis=1)
    far = np.minimum(hops[:, None] - 1 - np.arange(codes.shape[1])[None, :], PLACES - 1)
    return np.where(codes >= 0, 2 * far + (codes & 1), -1)


@dataclass(frozen=True, eq=False)
class QueryAdapter:
    """Turns a question's vector towards the passages that answer such questions."""

    down: Floats
    up: Floats

    def __call__(self, vectors: Floats) -> Floats:
        """Add what was learnt, at length 1."""
        turned = vectors + (vectors @ self.down) @ self.up
        found: Floats = turned / np.maximum(np.linalg.norm(turned, axis=-1, keepdims=True), 1e-9)
        return found.astype(np.float32)


@dataclass(frozen=True, eq=False)
class HopChoice:
    """A linear classifier over a question's vector: one row per number of hops, from 1."""

    weights: Floats
    bias: Floats

    def most_likely(self, vector: Floats) -> int:
        """The number of hops."""
        return int((self.weights @ vector + self.bias).argmax()) + 1


@dataclass(frozen=True, eq=False)
class Tuning:
    """All that was learnt for one knowledge base and one embedder."""

    paths: PathAdapter | None = None
    queries: QueryAdapter | None = None
    helped: tuple[str, ...] = ()
    """The recipes that find more with `queries`, as measured: no other uses it."""
    hops: HopChoice | None = None


@dataclass(frozen=True)
class Adapted:
    """An embedder whose questions are turned by an adapter; passages stay as they are."""

    embed: Embed
    adapter: QueryAdapter

    @property
    def name(self) -> str:
        """The embedder's own: the vectors of the knowledge base are its."""
        return self.embed.name

    @property
    def dim(self) -> int:
        """The length of every vector."""
        return self.embed.dim

    async def __call__(self, texts: Sequence[str], /, *, role: Role = "passage") -> Vectors:
        """Embed, and turn what is a question."""
        vectors = await self.embed(texts, role=role)
        return self.adapter(vectors) if role == "query" and len(texts) else vectors
