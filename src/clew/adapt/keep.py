"""Stores the tuned adapters as text in the knowledge base's key-value store."""

import base64
import binascii
import io
import json
import zipfile

import numpy as np

from clew.adapt.values import Adapted, Floats, HopChoice, PathAdapter, QueryAdapter, Tuning
from clew.errors import StoreError
from clew.llm.embed import Embed
from clew.store.protocol import Memory
from clew.view import View

_KIND = "tuning"
_MEMO = "tuning"
_FORM = "2 "  # change it when the arrays change their meaning
_NEXT = "\n"  # between the recipes and the arrays
_PARTS = {
    "paths": (PathAdapter, ("question", "label", "weights")),
    "queries": (QueryAdapter, ("down", "up")),
    "hops": (HopChoice, ("weights", "bias")),
}


def tuning_of(view: View) -> Tuning:
    """Return the tuning that `attach_tuning` left with the view; an empty one otherwise."""
    tuning: Tuning = view.memo.get(_MEMO) or Tuning()
    return tuning


def untaught(view: View) -> View:
    """Return the same generation without tuning and without anything derived from it."""
    return View(view.arrays, view.matrices, view.generation)


async def remind(view: View, memory: Memory, embed: Embed | None) -> None:
    """Load the tuning into the view, for all questions of its generation."""
    if embed is not None:
        view.memo[_MEMO] = await recalled(memory, embed.name)


def adapted(view: View, embed: Embed | None, recipe: str) -> Embed | None:
    """Return the embedder with the query adapter, where that helps this recipe."""
    tuning = tuning_of(view)
    if embed is None or tuning.queries is None or recipe not in tuning.helped:
        return embed
    return Adapted(embed, tuning.queries)


async def recalled(memory: Memory, embedder: str) -> Tuning:
    """Load the tuning of this embedder; an empty one if there is none."""
    text = (await memory.recall(_KIND, [embedder])).get(embedder, "")
    return _read(text[len(_FORM) :]) if text.startswith(_FORM) else Tuning()


async def kept(memory: Memory, embedder: str, tuning: Tuning) -> int:
    """Replace the stored tuning; return its size in bytes."""
    text = _FORM + _written(tuning)
    await memory.remember(_KIND, {embedder: text})
    return len(text)


async def forgotten(memory: Memory, embedder: str) -> None:
    """Delete the stored tuning."""
    await memory.remember(_KIND, {embedder: ""})


def _written(tuning: Tuning) -> str:
    arrays: dict[str, Floats] = {}
    for name, (_, parts) in _PARTS.items():
        value = getattr(tuning, name)
        if value is not None:
            arrays |= {f"{name}.{part}": getattr(value, part).astype(np.float16) for part in parts}
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return json.dumps(tuning.helped) + _NEXT + base64.b64encode(file.getvalue()).decode("ascii")


def _read(text: str) -> Tuning:
    helped, _, arrays_text = text.partition(_NEXT)
    try:
        recipes = tuple(json.loads(helped))
        with np.load(io.BytesIO(base64.b64decode(arrays_text)), allow_pickle=False) as stored:
            arrays = {name: stored[name].astype(np.float32) for name in stored.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, binascii.Error) as error:
        raise StoreError(
            f"what was learnt cannot be read ({error}); `clew tune --forget`"
        ) from None
    found = {}
    for name, (adapter_class, parts) in _PARTS.items():
        if f"{name}.{parts[0]}" in arrays:
            found[name] = adapter_class(*(arrays[f"{name}.{part}"] for part in parts))
    return Tuning(**found, helped=recipes)
