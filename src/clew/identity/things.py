"""Why a thing is what it is: the names it was made of, and its namesakes."""

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
    """Two names that were made one, and why."""

    name: str
    into: str
    because: str
    score: float


@dataclass(frozen=True, slots=True)
class Thing:
    """One entity as it stands: its key, itself, the names it was made of, and its namesakes."""

    key: int
    entity: Entity
    merges: tuple[Merge, ...]
    names: tuple[Entity, ...]
    namesakes: tuple[str, ...]


async def things_called(name: str, now: Snapshot) -> list[Thing]:
    """The entities that go by a name, those spelt just so first, with how each came about."""
    view = View(now.arrays, {})
    keys = [int(view.keys("entity")[at]) for at in view.called(name)]
    if not keys:
        raise StoreError(
            f"nothing is called {name!r} here; `clew search {name!r}` finds what is close"
        )
    things = [await _thing(now, key) for key in keys]
    exactly = normal_name(name)
    return sorted(things, key=lambda t: all(normal_name(n.name) != exactly for n in t.names))


async def _thing(now: Snapshot, key: int) -> Thing:
    arrays = now.arrays
    merged = arrays.get("merged", np.zeros((0, 2), np.int64))
    group = [key, *merged[merged[:, 1] == key, 0].tolist()]
    tied = arrays.get("merged_pairs", np.zeros((0, 3), np.int64))
    mine = np.flatnonzero(np.isin(tied[:, 0], group) & np.isin(tied[:, 1], group))
    names = await _names(now, [*group, *tied[mine, :2].ravel().tolist()])
    merges = tuple(
        Merge(
            names[int(right)].name,
            names[int(left)].name,
            REASONS[int(reason)],
            float(arrays["merged_scores"][at]),
        )
        for at, (left, right, reason) in zip(mine.tolist(), tied[mine].tolist(), strict=True)
    )
    entity = (await now.entities([key]))[key]
    return Thing(key, entity, merges, tuple(names[k] for k in group), _namesakes(arrays, key))


def _namesakes(arrays: Arrays, key: int) -> tuple[str, ...]:
    """The other things that bear the very same name, by the class that tells them apart."""
    keys = arrays["entity_keys"]
    others = keys[(keys % SENSE == key % SENSE) & (keys != key)]
    return tuple(_sense(int(other)) for other in others)


def _sense(key: int) -> str:
    number = key // SENSE
    if number == 0:
        return "its main sense"
    return CLASSES[number] if number < len(CLASSES) else f"set apart by hand ({number})"


async def _names(now: Snapshot, keys: Sequence[int]) -> dict[int, Entity]:
    """Names as they are in the tables, whatever was made of them; each has its sense's id."""
    held = await (now.raw if isinstance(now, Things) else now).entities(
        sorted({int(key) % SENSE for key in keys})
    )
    return {
        int(key): replace(one, id=node_id(one.id, int(key)))
        for key in keys
        for one in [held[int(key) % SENSE]]
    }
