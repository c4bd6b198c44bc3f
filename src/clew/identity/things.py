"""Explanation of a resolved entity: its merged names and its homonyms."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.errors import StoreError
from clew.graph.resolve.groups import REASONS
from clew.kinds import CLASSES
from clew.store.nodes import Things, node_id
from clew.store.protocol import SENSE, Arrays, Snapshot
from clew.text import normal_name
from clew.types import Entity
from clew.view import View


@dataclass(frozen=True, slots=True)
class Merge:
    """Two names that were merged, and why."""

    name: str
    into: str
    because: str
    score: float


@dataclass(frozen=True, slots=True)
class Thing:
    """A resolved entity with its key, merges, merged names and homonyms."""

    key: int
    entity: Entity
    merges: tuple[Merge, ...]
    names: tuple[Entity, ...]
    namesakes: tuple[str, ...]


async def things_called(name: str, now: Snapshot) -> list[Thing]:
    """Return the entities with a name, exact spellings first, with their merges."""
    view = View(now.arrays, {})
    keys = [int(view.keys("entity")[at]) for at in view.called(name)]
    if not keys:
        raise StoreError(
            f"nothing is called {name!r} here; `clew search {name!r}` finds what is close"
        )
    things = [await _thing(now, key) for key in keys]
    exactly = normal_name(name)
    return sorted(things, key=lambda t: all(normal_name(n.name) != exactly for n in t.names))


async def _thing(snapshot: Snapshot, key: int) -> Thing:
    arrays = snapshot.arrays
    merged = arrays.get("merged", np.zeros((0, 2), np.int64))
    group = [key, *merged[merged[:, 1] == key, 0].tolist()]
    pairs = arrays.get("merged_pairs", np.zeros((0, 3), np.int64))
    mine = np.flatnonzero(np.isin(pairs[:, 0], group) & np.isin(pairs[:, 1], group))
    names = await _names(snapshot, [*group, *pairs[mine, :2].ravel().tolist()])
    merges = tuple(
        Merge(
            names[int(right)].name,
            names[int(left)].name,
            REASONS[int(reason)],
            float(arrays["merged_scores"][at]),
        )
        for at, (left, right, reason) in zip(mine.tolist(), pairs[mine].tolist(), strict=True)
    )
    entity = (await snapshot.entities([key]))[key]
    return Thing(key, entity, merges, tuple(names[k] for k in group), _namesakes(arrays, key))


def _namesakes(arrays: Arrays, key: int) -> tuple[str, ...]:
    """Return the other senses of the same name, by their distinguishing class."""
    keys = arrays["entity_keys"]
    others = keys[(keys % SENSE == key % SENSE) & (keys != key)]
    return tuple(_sense(int(other)) for other in others)


def _sense(key: int) -> str:
    number = key // SENSE
    if number == 0:
        return "its main sense"
    return CLASSES[number] if number < len(CLASSES) else f"set apart by hand ({number})"


async def _names(snapshot: Snapshot, keys: Sequence[int]) -> dict[int, Entity]:
    """Load names as stored in the tables, before merging; each has its sense's id."""
    stored = await (snapshot.raw if isinstance(snapshot, Things) else snapshot).entities(
        sorted({int(key) % SENSE for key in keys})
    )
    return {
        int(key): replace(entity, id=node_id(entity.id, int(key)))
        for key in keys
        for entity in [stored[int(key) % SENSE]]
    }
