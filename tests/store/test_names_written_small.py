"""How a name is written is stored with its row, and read again where an earlier version did not."""

from pathlib import Path

import numpy as np

from clew.config import Settings
from clew.store.sqlite import tables
from clew.store.sqlite.connections import ConnectionPool
from clew.testing.hashed_kb import open_hashed
from clew.text.small_names import NOT_SMALL, SMALL
from conftest import document, stream

PAGES = (
    document("tick", "The grey hill tick lives in Tarn.", "Grey hill tick"),
    document("tarn", "Tarn is a town. Ada Lindberg was born in Tarn.", "Tarn"),
)


async def test_names_of_an_earlier_version_are_read_again(tmp_path: Path) -> None:
    base = await open_hashed(Settings(kb=tmp_path), True)
    await base.take(stream(PAGES))
    async with base.store.snapshot() as now:
        keys = now.arrays["entity_keys"].tolist()
        names = await now.entity_names(keys)
        codes = {
            names[key]: code for key, code in zip(keys, now.arrays["entity_small"], strict=True)
        }
        held = {name: np.asarray(now.arrays[name]) for name in now.arrays}
    assert codes["Grey hill tick"] == SMALL and codes["Tarn"] == NOT_SMALL
    stored, held["raw_entities"] = held["raw_entities"], held["raw_entities"].copy()
    held["raw_entities"][:, 7] %= 2
    nothing = {name: set[int]() for name in ("chunks", "entities", "facts")}
    pool = ConnectionPool(tmp_path / "kb.sqlite", durable=False)
    with pool.connection() as db:
        same = tables.read_tables(db, held, nothing).entities
        np.testing.assert_array_equal(same, held["raw_entities"])
        del held["entity_small"]
        np.testing.assert_array_equal(tables.read_tables(db, held, nothing).entities, stored)
    pool.close()
    await base.close()
