"""Clew: agentic GraphRAG over one knowledge base, every sentence cited.

    import clew

    kb = clew.open("kb")
    kb.add(["docs/"])
    print(kb.ask("Who designed the bridge?").answer)

`kb.aio` is the same in async form. Heavy parts load when they are first used.
"""

from typing import TYPE_CHECKING

from clew.errors import ClewError
from clew.version import __version__

if TYPE_CHECKING:
    from clew.api import Kb, open

__all__ = ["ClewError", "Kb", "__version__", "open"]


def __getattr__(name: str) -> object:
    if name in ("Kb", "open"):
        from clew import api

        return getattr(api, name)
    raise AttributeError(f"module 'clew' has no attribute {name!r}")
