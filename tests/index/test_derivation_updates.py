"""Arrays that are updated from those of the previous generation equal arrays made afresh."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clew.index import owners
from clew.index.derive import derive_arrays
from clew.index.incidences import is_resolved_as_before
from clew.store import array_files, edited_rows
from clew.store.mapped_arrays import MappedArrays
from clew.store.protocol import Addition, Array, Arrays, Change, Tables
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import make_addition, make_triple
from clew.types import Extraction, RawEntity

COMPANY = {
    "person": ["Ada", "Byron", "Mary", "Shelley", "ADA", "Percy"],
    "place": ["Kent", "Dover", "Sussex", "Hastings", "dover", "Rye"],
}
NOT_COMPARED = ("text_", "detail_")  # they need the texts of all passages, or what was embedded


def draw_document(draw: np.random.Generator, number: int) -> Addition:
    """A document of a few names, of which one is sometimes a person and sometimes a place."""
    kind = str(draw.choice(list(COMPANY)))
    names = draw.choice(COMPANY[kind], 3, replace=False).tolist()
    names.insert(int(draw.integers(0, 3)), "Avalon")
    facts = [make_triple(names[0], "knows", names[1]), make_triple(names[1], "likes", names[2])]
    if draw.random() < 0.2:
        facts.append(make_triple(names[2], "also known as", names[3]))
    made = make_addition(f"doc {number}", f"{' '.join(names)} {number % 17}.", facts=facts)
    found = made.extractions[0]
    entities = tuple(
        replace(one, type=kind if one.name == "Avalon" else one.type) for one in found.entities
    )
    return replace(made, extractions=(replace(found, entities=entities),))


def has_changes(arrays: Arrays) -> bool:
    """Whether some of the arrays are stored as an earlier file and what changed."""
    return isinstance(arrays, MappedArrays) and bool(arrays.changes)


def draw_biography(draw: np.random.Generator, number: int) -> Addition:
    """A document that is more or less about some of its names, which share words and forms."""
    first, last, places = ["Ada", "Mary", "A."], ["Byron", "King", "Shelley"], ["Kent", "Dover"]
    names = [f"{one} {other}" for one in first for other in last]
    names += [*last, *places, "County of Kent", "The Dover Road", f"Person {number % 7}"]
    chosen = draw.choice(names, 4, replace=False).tolist()
    made = make_addition(f"doc {number}", f"{' '.join(chosen)} {number}.")
    entities = tuple(
        RawEntity(
            name,
            "person" if draw.random() < 0.5 else "",
            about=float(draw.choice([0, 0, 0.3, 0.44, 0.5, 0.6, 0.9, 1])),
            aliases=(str(draw.choice(names)),) if draw.random() < 0.1 else (),
        )
        for name in chosen
    )
    facts = (make_triple(chosen[0], "knows", chosen[1]),)
    return replace(made, extractions=(Extraction(entities, facts),))


def compare_with_fresh(tables: Tables, seen: Counter[str]) -> Arrays:
    """Derive arrays from those before, and compare them with arrays that are derived anew."""
    found = derive_arrays(tables)
    fresh = derive_arrays(replace(tables, previous={}, touched_names=None))
    compared = [name for name in fresh if not name.startswith(NOT_COMPARED)]
    assert {*compared} == {name for name in found if not name.startswith(NOT_COMPARED)}
    for name in compared:
        assert found[name].dtype == fresh[name].dtype, name
        assert np.array_equal(found[name], fresh[name]), name
    keys = {kind: found[f"{kind}_keys"] for kind in ("chunk", "entity", "fact")}
    seen["updated"] += is_resolved_as_before(tables.previous, keys, found)
    seen["moved"] += not set(tables.previous.get("entity_keys", ())) <= set(keys["entity"])
    seen["merged"] += len(found["merged"]) > 0
    return found


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2))]
)
async def test_updated_arrays_equal_fresh_ones(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_files, "MIN_CHANGED_BYTES", 1)
    if seed:  # tables of which few rows are looked at
        monkeypatch.setattr(edited_rows, "MIN_EDITED_BYTES", 0)
    derived: dict[str, Array] = {}
    draw = np.random.default_rng(seed)
    store = SqliteStore(tmp_path, create=True, durable=False)
    seen: Counter[str] = Counter()

    def derive(tables: Tables) -> Arrays:
        found = compare_with_fresh(tables, seen)
        seen["senses"] += len(found["sense_mentions"]) > 0
        derived.clear()
        derived.update(found)
        return found

    held: list[str] = []
    for number in range(0, 66, 3):
        added = [draw_document(draw, number + i) for i in range(int(draw.integers(0, 4)))]
        gone = draw.choice(held, min(len(held), int(draw.integers(0, 3))), replace=False).tolist()
        await store.write(Change(add=added, remove=gone), derive)
        held = [*(set(held) - {*gone}), *(one.document.names[0] for one in added)]
        held.sort()
        reader = SqliteStore(tmp_path)
        async with reader.snapshot() as now:
            for name, array in derived.items():  # as they were stored, most of them as changes
                assert np.ascontiguousarray(now.arrays[name]).tobytes() == array.tobytes(), name
            seen["changes"] += has_changes(now.arrays)
        await reader.close()
    await store.close()
    assert min(seen.values()) >= 2, seen


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))]
)
async def test_passages_about_entities_are_found_again_where_something_changed(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Few names are here, so that most are looked at: they would else be found as if all were new.
    monkeypatch.setattr(owners, "MAX_SHARE", 1.0)
    draw = np.random.default_rng(seed)
    store = SqliteStore(tmp_path, create=True, durable=False)
    seen: Counter[str] = Counter()

    def derive(tables: Tables) -> Arrays:
        found = compare_with_fresh(tables, seen)
        for name in ("claim", "owned", "owners", "word_tokens"):
            seen[name] += len(found[f"{name}_columns"]) > 0
        seen["asked"] += bool(found["owners_asked"].any())
        seen["sure"] += bool(not found["owners_asked"].all())
        return found

    held: list[str] = []
    for number in range(0, 90, 3):
        added = [draw_biography(draw, number + i) for i in range(int(draw.integers(0, 4)))]
        gone = draw.choice(held, min(len(held), int(draw.integers(0, 3))), replace=False).tolist()
        await store.write(Change(add=added, remove=gone), derive)
        held = sorted({*held, *(one.document.names[0] for one in added)} - {*gone})
    await store.close()
    assert min(seen.values()) >= 2, seen
