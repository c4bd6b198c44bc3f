"""Clew: agentic GraphRAG over one knowledge base, every sentence cited.

    import clew

    kb = clew.open("kb")
    kb.add(["docs/"])
    print(kb.ask("Who designed the bridge?").answer)

`clew.connect("http://host:8321", key=…)` is the same over HTTP, and `kb.aio` the async form. Heavy
parts load when they are first used.
"""

from typing import TYPE_CHECKING

from clew.errors import ClewError
from clew.version import __version__

if TYPE_CHECKING:
    from clew.api import Kb, open
    from clew.client import RemoteKb, connect

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
