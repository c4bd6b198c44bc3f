"""Clew: agentic GraphRAG over one knowledge base, every sentence cited.

    import clew

    kb = clew.open("kb")
    kb.add(["docs/"])
    print(kb.ask("Who designed the bridge?").answer)

`clew.connect("http://host:8321", key=…)` is the same over HTTP, and `kb.aio` the async form. Heavy
parts load when they are first used.
"""

import os
from typing import TYPE_CHECKING

from clew.errors import ClewError
from clew.version import __version__

if TYPE_CHECKING:
    from clew.api import Kb, open
    from clew.client import RemoteKb, connect

# NumPy's threads sleep when they have nothing to do. By default they spin, which takes a second
# core for all of a question, though each product of matrix and vector lasts a few milliseconds.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # noqa: TID251  (set, not read)

__all__ = ["ClewError", "Kb", "RemoteKb", "__version__", "connect", "open"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    if name in ("Kb", "open"):
        from clew import api

        return getattr(api, name)
    if name in ("RemoteKb", "connect"):
        from clew import client

        return getattr(client, name)
    raise AttributeError(f"module 'clew' has no attribute {name!r}")
