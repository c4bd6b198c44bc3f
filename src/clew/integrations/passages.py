"""What the adapters share: the passages of a question, and where each is from."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from clew.agents.base import Results
from clew.types import Passage
from clew.version import pip_install_command


@contextmanager
def naming_extra(extra: str) -> Iterator[None]:
    """Say what to install where the framework of an adapter is missing."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            f"{missing}: `{pip_install_command(extra)}`", name=missing.name
        ) from missing


class Searcher(Protocol):
    """What an adapter needs: `clew.open(…)`, or `clew.connect(…)` to a server."""

    def search(self, question: str, *, recipe: str | None = None, k: int = 10) -> Results:
        """Retrieve evidence for a question."""


def find_passages(kb: Searcher, question: str, recipe: str | None, k: int) -> tuple[Passage, ...]:
    """Return the passages of a question, best first."""
    return tuple(kb.search(question, recipe=recipe, k=k).evidence.chunks)


async def find_passages_async(
    kb: Searcher, question: str, recipe: str | None, k: int
) -> tuple[Passage, ...]:
    """Return the passages of a question without blocking the event loop."""
    return await asyncio.to_thread(find_passages, kb, question, recipe, k)


def describe_passage(passage: Passage) -> dict[str, Any]:
    """Return where a passage is from: enough to cite it by document and characters."""
    where: dict[str, Any] = {
        "doc": passage.doc,
        "title": passage.title,
        "start": passage.start,
        "end": passage.end,
        "score": passage.score,
    }
    return where | ({"page": passage.page} if passage.page else {})
