"""How far embedding is, told so that the time that is left can be reckoned from it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.store.memory import MemoryStore
from clew.testing.fakes import HashEmbed

LONG, SHORT = 20, 40  # documents


async def test_long_texts_count_for_more_than_short_ones(tmp_path: Path) -> None:
    for at in range(LONG + SHORT):
        words = " ".join(f"w{at}x{n}" for n in range(200 if at < LONG else 8))
        (tmp_path / f"{at:03}.txt").write_text(f"Item {at} {words}.")
    embed, told = _Batches(), list[tuple[int, int, int]]()

    def note(stage: str, done: int, total: int) -> None:
        if stage == "embed" and total:
            told.append((done, total, embed.characters))

    base = KnowledgeBase(MemoryStore(), Settings(extractor="offline"), embed)
    await base.add([tmp_path], progress=note)
    assert told[-1][0] == told[-1][1]
    assert len(told) > 5
    for done, total, characters in told:  # the longest are embedded first
        assert abs(done / total - characters / embed.characters) < 0.06


class _Batches:
    """Embeds a few texts a call, and counts the characters of all."""

    batch, concurrency = 6, 1
    name, dim = "batches", HashEmbed().dim

    def __init__(self) -> None:
        self.characters = 0

    async def __call__(self, texts: Sequence[str], **_: object) -> np.ndarray:
        self.characters += sum(map(len, texts))
        return await HashEmbed()(texts)
