"""Vectors without a direction: refused where they arise, reported and repaired where they lie."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import ModelError
from clew.llm.embed import EmbedRole, Vectors
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.text.unicode import digest
from conftest import VALLEY, stream


class FailingEmbed(HashEmbed):
    """Gives a value in place of each number of one text."""

    value = np.nan

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        vectors = await super().__call__(texts, role=role)
        vectors[-1] = self.value
        return vectors


def open_kb(folder: Path, embed: HashEmbed) -> KnowledgeBase:
    return KnowledgeBase(
        SqliteStore(folder, create=True, durable=False),
        Settings(kb=folder, extractor="offline"),
        embed,
    )


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
async def test_no_embedder_of_ones_own_stores_a_vector_without_a_direction(
    tmp_path: Path, value: float
) -> None:
    embed = FailingEmbed()
    embed.value = value
    base = open_kb(tmp_path, embed)
    with pytest.raises(ModelError, match="hash gave vectors of zeros, or of what is no number"):
        await base.take(stream(VALLEY))


@pytest.mark.parametrize("value", [0.0, np.nan])
async def test_stored_vectors_without_a_direction_are_reported_and_repaired(
    tmp_path: Path, value: float
) -> None:
    base = open_kb(tmp_path, HashEmbed())
    await base.take(stream(VALLEY))
    assert not await base.verify()
    table = base.store.vectors("hash", "chunk")
    table.append([digest("other")], np.full((1, 64), value, np.float32))
    assert "1 vectors are of zeros or no numbers" in " ".join(await base.verify())
    await base.repair()
    assert not await base.verify()
    assert table.find_rows([digest("other")]).tolist() == [-1]
