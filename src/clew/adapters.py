"""Adapters over a frozen embedder: plain arrays, stored as text in the key-value store."""

import base64
import binascii
import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.errors import StoreError
from clew.graph.csr import Floats, Ints
from clew.index.view import View
from clew.llm.embed import Embedder, EmbedRole, Vectors
from clew.store.protocol import KeyValueStore

MAX_POSITIONS = 4  # positions from a path's end that have slots of their own
SLOT_COUNT = 2 * MAX_POSITIONS  # by position, and by direction
STEP_SCALE = 10.0  # scale of a step's similarity: fitting is faster with small numbers
_STORE_KIND = "tuning"
_MEMO_KEY = "tuning"
_FORMAT_PREFIX = "4 "  # change it when the arrays change their meaning
_SEPARATOR = "\n"  # between the recipes and the arrays
TextGroup = tuple[str, ...]
"""Texts whose vectors are summed: a passage alone, or the relations of a path."""


@dataclass(frozen=True, eq=False)
class PathAdapter:
    """Scores each step of a relation path for a question, by its position and direction.

    A question's vector and a relation's are projected into one small space per slot; relations
    unseen in fitting are placed there by their label's vector.
    """

    question: Floats
    """Slots × dimensions × rank."""
    label: Floats
    weight: Floats
    """One number: how much the score without the adapter counts beside it."""

    def score_paths(self, asked: Floats, labels: Floats, codes: Ints, scores: Floats) -> Floats:
        """Return the adapted scores of paths; `codes` count relations as the rows of `labels`."""
        table = self.step_scores(asked, labels)
        row, column = np.nonzero(codes >= 0)
        step = table[step_slots(codes)[row, column], codes[row, column] >> 1]
        adapted: Floats = self.weight[0] * scores + np.bincount(row, step, minlength=len(codes))
        return adapted.astype(np.float32)

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
class SignalMix:
    """How much each signal of the default recipe counts in one knowledge base."""

    weights: Floats
    """The walk's (below 0: as measured on the corpus), then meaning's, words', best sentence's."""

    @property
    def walk(self) -> float | None:
        """The weight of the walk; None: as measured."""
        walk = float(self.weights[0])
        return walk if walk >= 0 else None

    @property
    def shares(self) -> tuple[float, float, float]:
        """The shares of meaning, words and best sentence within plain relevance."""
        meaning, words, best = (self.weights[1:] / self.weights[1:].sum()).tolist()
        return meaning, words, best


@dataclass(frozen=True, eq=False)
class Tuning:
    """All adapters of one knowledge base and one embedder."""

    paths: PathAdapter | None = None
    queries: QueryAdapter | None = None
    helped_recipes: tuple[str, ...] = ()
    """The recipes that retrieve better with `queries`, as measured: no other uses it."""
    hops: HopClassifier | None = None
    signals: SignalMix | None = None


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

    def measure_known(self, text: str) -> float:
        """Return how far the embedder knows the words of a text."""
        measure = getattr(self.embed, "measure_known", None)
        share: float = measure(text) if measure else 1.0
        return share

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        """Embed, and adapt queries."""
        vectors = await self.embed(texts, role=role)
        return self.adapter(vectors) if role == "query" and len(texts) else vectors


_ARRAY_FIELDS = {
    "paths": (PathAdapter, ("question", "label", "weight")),
    "queries": (QueryAdapter, ("down", "up")),
    "hops": (HopClassifier, ("weights", "bias")),
    "signals": (SignalMix, ("weights",)),
}


def get_tuning(view: View) -> Tuning:
    """Return the tuning that `attach_tuning` left with the view; an empty one otherwise."""
    tuning: Tuning = view.memo.get(_MEMO_KEY) or Tuning()
    return tuning


def without_tuning(view: View) -> View:
    """Return the same generation without tuning and without anything derived from it."""
    return View(view.arrays, view.matrices, view.generation, indexes=view.indexes)


def with_signals(view: View, signals: SignalMix) -> View:
    """Return the same generation with these signals in its tuning, to try them."""
    tried = View(view.arrays, view.matrices, view.generation)
    tried.memo.update(view.memo | {_MEMO_KEY: replace(get_tuning(view), signals=signals)})
    return tried


async def attach_tuning(view: View, memory: KeyValueStore, embed: Embedder | None) -> None:
    """Load the tuning into the view, for all questions of its generation."""
    if embed is not None:
        view.memo[_MEMO_KEY] = await load_tuning(memory, embed.name)


def adapt_embedder(view: View, embed: Embedder | None, recipe: str) -> Embedder | None:
    """Return the embedder with the query adapter, where that helps this recipe."""
    tuning = get_tuning(view)
    if embed is None or tuning.queries is None or recipe not in tuning.helped_recipes:
        return embed
    return AdaptedEmbedder(embed, tuning.queries)


async def load_tuning(memory: KeyValueStore, embedder: str) -> Tuning:
    """Load the tuning of this embedder; an empty one if there is none."""
    text = (await memory.get(_STORE_KIND, [embedder])).get(embedder, "")
    return (
        _decode_tuning(text[len(_FORMAT_PREFIX) :]) if text.startswith(_FORMAT_PREFIX) else Tuning()
    )


async def save_tuning(memory: KeyValueStore, embedder: str, tuning: Tuning) -> int:
    """Replace the stored tuning; return its size in bytes."""
    text = _FORMAT_PREFIX + _encode_tuning(tuning)
    await memory.set(_STORE_KIND, {embedder: text})
    return len(text)


async def delete_tuning(memory: KeyValueStore, embedder: str) -> None:
    """Delete the stored tuning."""
    await memory.set(_STORE_KIND, {embedder: ""})


def _encode_tuning(tuning: Tuning) -> str:
    arrays: dict[str, Floats] = {}
    for name, (_, parts) in _ARRAY_FIELDS.items():
        value = getattr(tuning, name)
        if value is not None:
            arrays |= {f"{name}.{part}": getattr(value, part).astype(np.float16) for part in parts}
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return (
        json.dumps(tuning.helped_recipes)
        + _SEPARATOR
        + base64.b64encode(file.getvalue()).decode("ascii")
    )


def _decode_tuning(text: str) -> Tuning:
    helped, _, arrays_text = text.partition(_SEPARATOR)
    try:
        recipes = tuple(json.loads(helped))
        with np.load(io.BytesIO(base64.b64decode(arrays_text)), allow_pickle=False) as stored:
            arrays = {name: stored[name].astype(np.float32) for name in stored.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, binascii.Error) as error:
        raise StoreError(
            f"the stored tuning cannot be read ({error}); delete it with `clew tune --forget`"
        ) from None
    found = {}
    for name, (adapter_class, parts) in _ARRAY_FIELDS.items():
        if f"{name}.{parts[0]}" in arrays:
            found[name] = adapter_class(*(arrays[f"{name}.{part}"] for part in parts))
    return Tuning(**found, helped_recipes=recipes)


@dataclass(frozen=True, slots=True)
class ContrastiveExample:
    """A question, its positives and hard negatives; other questions' texts are negatives too."""

    question: str
    positives: tuple[TextGroup, ...]
    negatives: tuple[TextGroup, ...] = ()
