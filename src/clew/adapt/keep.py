"""Keeping what was learnt with the knowledge base, as text in its memory."""

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
_FORM = "2 "  # raise it when the arrays mean something else
_NEXT = "\n"  # between what helps whom and the arrays
_PARTS = {
    "paths": (PathAdapter, ("question", "label", "weights")),
    "queries": (QueryAdapter, ("down", "up")),
    "hops": (HopChoice, ("weights", "bias")),
}


def tuning_of(view: View) -> Tuning:
    """What was learnt for this knowledge base, as `remind` left it with its view."""
    found: Tuning = view.memo.get(_MEMO) or Tuning()
    return found


def untaught(view: View) -> View:
    """The same generation as it was before anything was learnt, nor derived from that."""
    return View(view.arrays, view.matrices, view.generation)


async def remind(view: View, memory: Memory, embed: Embed | None) -> None:
    """Leave what was learnt with the view, for all questions of its generation."""
    if embed is not None:
        view.memo[_MEMO] = await recalled(memory, embed.name)


def adapted(view: View, embed: Embed | None, recipe: str) -> Embed | None:
    """The embedder with what was learnt about questions, where that helps this recipe."""
    tuning = tuning_of(view)
    if embed is None or tuning.queries is None or recipe not in tuning.helped:
        return embed
    return Adapted(embed, tuning.queries)


async def recalled(memory: Memory, embedder: str) -> Tuning:
    """What was learnt over this embedder's vectors; an empty value for nothing."""
    held = (await memory.recall(_KIND, [embedder])).get(embedder, "")
    return _read(held[len(_FORM) :]) if held.startswith(_FORM) else Tuning()


async def kept(memory: Memory, embedder: str, tuning: Tuning) -> int:
    """Keep it in place of what was there; return its size in bytes."""
    text = _FORM + _written(tuning)
    await memory.remember(_KIND, {embedder: text})
    return len(text)


async def forgotten(memory: Memory, embedder: str) -> None:
    """Go back to the embedder as it is."""
    await memory.remember(_KIND, {embedder: ""})


def _written(tuning: Tuning) -> str:
    arrays: dict[str, Floats] = {}
    for name, (_, parts) in _PARTS.items():
        held = getattr(tuning, name)
        if held is not None:
            arrays |= {f"{name}.{part}": getattr(held, part).astype(np.float16) for part in parts}
    room = io.BytesIO()
    np.savez_compressed(room, allow_pickle=False, **arrays)
    return json.dumps(tuning.helped) + _NEXT + base64.b64encode(room.getvalue()).decode("ascii")


def _read(text: str) -> Tuning:
    helped, _, arrays_text = text.partition(_NEXT)
    try:
        recipes = tuple(json.loads(helped))
        with np.load(io.BytesIO(base64.b64decode(arrays_text)), allow_pickle=False) as held:
            arrays = {name: held[name].astype(np.float32) for name in held.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, binascii.Error) as error:
        raise StoreError(
            f"what was learnt cannot be read ({error}); `clew tune --forget`"
        ) from None
    found = {}
    for name, (shape, parts) in _PARTS.items():
        if f"{name}.{parts[0]}" in arrays:
            found[name] = shape(*(arrays[f"{name}.{part}"] for part in parts))
    return Tuning(**found, helped=recipes)
