"""Arrays that are derived in parts, as on a cluster, equal those that are derived as a whole."""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clew.config import EmbedSettings, Settings
from clew.graph.parts import split_by_key, split_range
from clew.index.derive import derive_arrays
from clew.store.protocol import Addition, Arrays, Change, Tables
from clew.testing.contracts import make_addition
from clew.testing.hashed_kb import open_hashed
from conftest import VALLEY, document, one_in_three, stream

TOWNS = [
    document(
        f"town {n}",
        f"Mercury{n % 5} is a town on the Sarn. Anton J. Reeve{n % 7} founded it. Mr. Anton "
        f"Reeve{n % 7}, also known as the Miller{n % 3}, came from Mercury{n % 5}.",
    )
    for n in range(30)
]


def typed(name: str, kind: str, company: str) -> Addition:
    """A document that uses one name for a thing of this type, in some company."""
    made = make_addition(name, f"Avalon {company}.")
    found = made.extractions[0]
    entities = tuple(
        replace(one, type=kind if one.name == "Avalon" else "word") for one in found.entities
    )
    return replace(made, extractions=(replace(found, entities=entities),))


HOMONYMS = [
    typed(f"{kind} {n}", kind, company)
    for kind, company in (("person", "Ada Byron Lovelace"), ("place", "Kent Sussex Dover"))
    for n in range(3)
]


class RunSent:
    """Computes parts from what would be sent to another process, and notes the functions."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.seen: dict[str, int] = {}

    def __call__(
        self,
        function: Callable[..., Any],
        parts: Sequence[tuple[Any, ...]],
        shared: tuple[Any, ...] = (),
    ) -> list[Any]:
        self.seen[function.__name__] = len(parts)
        sent = [pickle.loads(pickle.dumps((function, part, shared))) for part in parts]  # noqa: S301
        return [made(*part, *more) for made, part, more in sent]


@pytest.mark.parametrize("count", one_in_three([2, 3, 16]))
async def test_parts_give_the_same_arrays(tmp_path: Path, count: int) -> None:
    embed = EmbedSettings(kinds=("chunk", "entity", "fact"))
    base = await open_hashed(Settings(kb=tmp_path / "kb", embed=embed), True)
    await base.store.write(Change(add=HOMONYMS), derive_arrays)
    await base.take(stream([*VALLEY, *TOWNS]))
    run = RunSent(count)
    kept: dict[str, Arrays] = {}

    def derive(tables: Tables) -> Arrays:
        kept["whole"] = derive_arrays(tables)
        kept["parts"] = derive_arrays(tables, run)
        return kept["whole"]

    for change in (Change(rebuild=True), Change(remove=["town 3"]), Change(values={})):
        await base.store.write(change, derive)
        assert kept["whole"].keys() == kept["parts"].keys()
        for name, array in kept["whole"].items():
            assert array.dtype == kept["parts"][name].dtype, name
            assert np.array_equal(array, kept["parts"][name]), name
    assert len(kept["whole"]["sense_mentions"])
    assert run.seen.keys() == {
        *("_split_names", "_find_bucket_pairs", "_measure_pairs", "pair_by_spelling"),
        *("build_csr", "_index_texts"),
    }
    assert run.seen["pair_by_spelling"] == count
    await base.close()


def test_equal_keys_are_in_one_block_and_nothing_is_lost() -> None:
    hashes = np.array([5, -7, 5, 11, -7, 2**62, 0], np.int64)
    for parts in (1, 2, 4):
        blocks = split_by_key(hashes, parts)
        assert len(blocks) == parts
        assert sorted(np.concatenate(blocks).tolist()) == list(range(len(hashes)))
        homes = [{int(hashes[at]) for at in block} for block in blocks]
        assert sum(len(home) for home in homes) == len({*hashes.tolist()})
    assert [*range(10)][split_range(10, 1)[0]] == [*range(10)]
    assert [one.stop - one.start for one in split_range(10, 3)] == [3, 3, 4]
    assert split_range(0, 4) == [slice(0, 0)]
