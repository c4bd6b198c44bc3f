"""Stores the tuned adapters as text in the knowledge base's key-value store."""

import base64
import binascii
import io
import json
import zipfile

import numpy as np

from clew.adapt.values import (
    AdaptedEmbedder,
    Floats,
    HopClassifier,
    PathAdapter,
    QueryAdapter,
    Tuning,
)
from clew.errors import StoreError
from clew.llm.embed import Embedder
from clew.store.protocol import KeyValueStore
from clew.view import View

_STORE_KIND = "tuning"
_MEMO_KEY = "tuning"
_FORMAT_PREFIX = "2 "  # change it when the arrays change their meaning
_SEPARATOR = "\n"  # between the recipes and the arrays
_ARRAY_FIELDS = {
    "paths": (PathAdapter, ("question", "label", "weights")),
    "queries": (QueryAdapter, ("down", "up")),
    "hops": (HopClassifier, ("weights", "bias")),
}


def get_tuning(view: View) -> Tuning:
    """Return the tuning that `attach_tuning` left with the view; an empty one otherwise."""
    tuning: Tuning = view.memo.get(_MEMO_KEY) or Tuning()
    return tuning


def without_tuning(view: View) -> View:
    """Return the same generation without tuning and without anything derived from it."""
    return View(view.arrays, view.matrices, view.generation)


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
            f"what was learnt cannot be read ({error}); `clew tune --forget`"
        ) from None
    found = {}
    for name, (adapter_class, parts) in _ARRAY_FIELDS.items():
        if f"{name}.{parts[0]}" in arrays:
            found[name] = adapter_class(*(arrays[f"{name}.{part}"] for part in parts))
    return Tuning(**found, helped_recipes=recipes)
