"""Adapters on top of a frozen embedder, as plain arrays."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.llm.embed import Embedder, EmbedRole, Vectors

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

MAX_POSITIONS = 4  # positions from a path's end that have slots of their own
SLOT_COUNT = 2 * MAX_POSITIONS  # by position, and by direction
STEP_SCALE = 10.0  # scale of a step's similarity: fitting is faster with small numbers


@dataclass(frozen=True, eq=False)
class PathAdapter:
    """Scores each step of a relation path for a question, by its position and direction.

    A question's vector and a relation's are projected into one small space per slot; relations
    unseen in fitting are placed there by their label's vector.
    """

    question: Floats
    """Slots × dimensions × rank."""
    label: Floats
    weights: Floats
    """Weights of the path features, see `retrieve.path_scores.FEATURES`."""

    def step_scores(self, asked: Floats, labels: Floats) -> Floats:
        """Return slots × labels: what each step adds to the score of a path."""
        near = np.einsum("kr,lkr->kl", self._project_question(asked), self._project_labels(labels))
        found: Floats = STEP_SCALE * near
        return found

    def _project_question(self, asked: Floats) -> Floats:
        found: Floats = np.einsum("d,kdr->kr", asked, self.question)
        return found

    def _project_labels(self, labels: Floats) -> Floats:
        found: Floats = np.einsum("ld,kdr->lkr", labels, self.label)
        return found


def step_slots(codes: Ints) -> Ints:
    """Return the slot of each step in a table of codes (padded with -1); -1 for padding."""
    hops = (codes >= 0).sum(axis=1)
    far = np.minimum(hops[:, None] - 1 - np.arange(codes.shape[1])[None, :], MAX_POSITIONS - 1)
    return np.where(codes >= 0, 2 * far + (codes & 1), -1)


@dataclass(frozen=True, eq=False)
class QueryAdapter:
    """A low-rank update of a question's vector, fitted to passages that answer such questions."""

    down: Floats
    up: Floats

    def __call__(self, vectors: Floats) -> Floats:
        """Add the low-rank update and normalise."""
        turned = vectors + (vectors @ self.down) @ self.up
        found: Floats = turned / np.maximum(np.linalg.norm(turned, axis=-1, keepdims=True), 1e-9)
        return found.astype(np.float32)


@dataclass(frozen=True, eq=False)
class HopClassifier:
    """A linear classifier over a question's vector: one row per number of hops, from 1."""

    weights: Floats
    bias: Floats

    def predict(self, vector: Floats) -> int:
        """Return the most likely number of hops."""
        return int((self.weights @ vector + self.bias).argmax()) + 1


@dataclass(frozen=True, eq=False)
class Tuning:
    """All adapters of one knowledge base and one embedder."""

    paths: PathAdapter | None = None
    queries: QueryAdapter | None = None
    helped_recipes: tuple[str, ...] = ()
    """The recipes that retrieve better with `queries`, as measured: no other uses it."""
    hops: HopClassifier | None = None


@dataclass(frozen=True)
class AdaptedEmbedder:
    """An embedder that applies a query adapter; passages stay unchanged."""

    embed: Embedder
    adapter: QueryAdapter

    @property
    def name(self) -> str:
        """The embedder's own name: the stored vectors are its."""
        return self.embed.name

    @property
    def dim(self) -> int:
        """The length of every vector."""
        return self.embed.dim

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        """Embed, and adapt queries."""
        vectors = await self.embed(texts, role=role)
        return self.adapter(vectors) if role == "query" and len(texts) else vectors
