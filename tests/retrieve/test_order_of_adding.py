"""Rankings do not depend on the order in which documents were added."""

from pathlib import Path

import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.retrieve.rank import fuse_rankings
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.types import Hit
from conftest import document, stream

# Many alike: equal words, equal scores.
TOWNS = ("Vessen", "Hallowmere", "Pellworth", "Deepwell", "Sarn", "Tarn")
DOCUMENTS = [
    document(
        f"note-{number}",
        f"{town} is a market town near {TOWNS[number - 1]}. The mill of {town} was built in 1850.",
    )
    for number, town in enumerate(TOWNS)
]
QUESTIONS = ("Which market town is near Vessen?", "Which mill was built in 1850?")


async def _build(folder: Path, backwards: bool) -> KnowledgeBase:
    settings = Settings(kb=folder, extractor="offline")
    base = KnowledgeBase(
        SqliteStore(folder, create=True, durable=False), settings, HashEmbed(dim=16)
    )
    for one in reversed(DOCUMENTS) if backwards else DOCUMENTS:
        await base.take(stream([one]))
    return base


async def test_every_ranking_is_the_same_for_any_order(tmp_path: Path) -> None:
    one, other = await _build(tmp_path / "1", False), await _build(tmp_path / "2", True)
    for recipe in ("bm25", "hybrid", "hipporag2", "lightrag", "pathrag", "minirag", "clew"):
        for question in QUESTIONS:
            found = [
                [
                    (chunk.text, round(chunk.score, 4))
                    for chunk in (await base.search(question, recipe=recipe)).evidence.chunks
                ]
                for base in (one, other)
            ]
            assert found[0] == found[1], recipe
    await one.close()
    await other.close()


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1)])
def test_equals_share_a_rank_where_rankings_are_fused(order: tuple[int, ...]) -> None:
    ties = [Hit(at, 0.5, "") for at in order]
    fused = {hit.at: hit.score for hit in fuse_rankings([[Hit(0, 0.9, ""), *ties], ties])}
    assert fused == {0: 1 / 61, **dict.fromkeys((1, 2, 3), 1 / 62 + 1 / 61)}
