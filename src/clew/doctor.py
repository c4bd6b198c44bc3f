"""Is this machine ready? One check per part, each with the way out."""

import importlib.util
import platform
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import ClewError
from clew.llm.embedders import embedder
from clew.llm.local_embed import LocalEmbed

_EXTRAS = {
    "local": ("onnxruntime", "tokenizers"),
    "pdf": ("pypdf",),
    "nlp": ("spacy",),
    "openai": ("openai",),
}


@dataclass(frozen=True)
class Check:
    """What was looked at and what was seen; `missing` is optional, `broken` is not."""

    name: str
    state: Literal["ok", "missing", "broken"]
    message: str


async def examine(settings: Settings) -> list[Check]:
    """Look at everything that a first use needs."""
    machine = f"{platform.python_version()} on {platform.machine()}"
    python: Literal["ok", "broken"] = "ok" if sys.version_info >= (3, 11) else "broken"
    return [
        Check("python", python, machine),
        Check("sqlite", "ok", sqlite3.sqlite_version),
        *_extras(),
        await _embedder(settings),
        await _kb(settings),
    ]


def _extras() -> Iterator[Check]:
    for extra, modules in _EXTRAS.items():
        lacking = [m for m in modules if importlib.util.find_spec(m) is None]
        if lacking:
            yield Check(f"extra {extra}", "missing", f"`pip install 'clew[{extra}]'` brings it")
        else:
            yield Check(f"extra {extra}", "ok", "installed")


async def _embedder(settings: Settings) -> Check:
    try:
        embed = embedder(settings.embed, settings.cache)
        vectors = await embed(["a thread through the labyrinth"])
    except ClewError as error:
        return Check("embedder", "broken", str(error))
    how = embed.describe() if isinstance(embed, LocalEmbed) else embed.name
    return Check("embedder", "ok", f"{how}, {vectors.shape[1]} dimensions")


async def _kb(settings: Settings) -> Check:
    if not (settings.kb / "kb.sqlite").is_file():
        return Check("knowledge base", "missing", f"none in {settings.kb}; `clew add PATH…`")
    try:
        base = await KnowledgeBase.open(settings, embed=False)
        found = await base.status()
        await base.close()
    except ClewError as error:
        return Check("knowledge base", "broken", str(error))
    return Check("knowledge base", "ok", f"{found['documents']} documents in {settings.kb}")
