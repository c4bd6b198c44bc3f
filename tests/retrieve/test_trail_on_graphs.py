"""The way that a walk is said to have come: every fact on it joins what stands beside it."""

from pathlib import Path

import pytest
from film_graph import take_films

from clew.engine import KnowledgeBase


@pytest.mark.parametrize(
    "question",
    [
        "who directed The Prowler",
        "who starred in films by the director of Grey Coast",
        "which films did the writer of Night Ferry direct",
        "what was released in 1991",
    ],
)
async def test_every_hop_joins_its_ends(base: KnowledgeBase, tmp_path: Path, question: str) -> None:
    await take_films(base, tmp_path)
    found = await base.search(question, recipe="clew")
    assert found.evidence.paths
    for path in found.evidence.paths:
        for one, fact, other in zip(path.entities, path.facts, path.entities[1:], strict=False):
            assert one in fact, path
            assert other in fact, path
