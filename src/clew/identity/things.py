"""Explanation of a resolved entity: its merged names and its homonyms."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.errors import StoreError
from clew.graph.resolve.groups import MERGE_REASONS
from clew.kinds import ENTITY_CLASSES
from clew.store.nodes import ResolvedSnapshot, node_id
from clew.store.protocol import SENSE_STRIDE, Arrays, Snapshot
from clew.text import normalize_name
from clew.types import Entity
from clew.view import View


@dataclass(frozen=True, slots=True)
class NameMerge:
    """Two names that were merged, and why."""

    name: str
    into: str
    because: str
    score: float


@dataclass(frozen=True, slots=True)
class EntityExplanation:
    """A resolved entity with its key, merges, merged names and homonyms."""

    key: int
    entity: Entity
    merges: tuple[NameMerge, ...]
    names: tuple[Entity, ...]
    namesakes: tuple[str, ...]


async def explain_entities(name: str, now: Snapshot) -> list[EntityExplanation]:
    """Return the entities with a name, exact spellings first, with their merges."""
    view = View(now.arrays, {})
    keys = [int(view.keys("entity")[at]) for at in view.find_by_name_or_alias(name)]
    if not keys:
        raise StoreError(
            f"nothing is called {name!r} here; `clew search {name!r}` finds what is close"
        )
    things = [await _explain_entity(now, key) for key in keys]
    exactly = normalize_name(name)
    return sorted(things, key=lambda t: all(normalize_name(n.name) != exactly for n in t.names))


async def _explain_entity(snapshot: Snapshot, key: int) -> EntityExplanation:
    arrays = snapshot.arrays
    merged = arrays.get("merged", np.zeros((0, 2), np.int64))
    group = [key, *merged[merged[:, 1] == key, 0].tolist()]
    pairs = arrays.get("merged_pairs", np.zeros((0, 3), np.int64))
    mine = np.flatnonzero(np.isin(pairs[:, 0], group) & np.isin(pairs[:, 1], group))
    names = await _load_names(snapshot, [*group, *pairs[mine, :2].ravel().tolist()])
    merges = tuple(
        NameMerge(
            names[int(right)].name,
            names[int(left)].name,
            MERGE_REASONS[int(reason)],
            float(arrays["merged_scores"][at]),
        )
        for at, (left, right, reason) in zip(mine.tolist(), pairs[mine].tolist(), strict=True)
    )
    entity = (await snapshot.entities([key]))[key]
    return EntityExplanation(
        key, entity, merges, tuple(names[k] for k in group), _find_namesakes(arrays, key)
    )


def _find_namesakes(arrays: Arrays, key: int) -> tuple[str, ...]:
    """Return the other senses of the same name, by their distinguishing class."""
    keys = arrays["entity_keys"]
    others = keys[(keys % SENSE_STRIDE == key % SENSE_STRIDE) & (keys != key)]
    return tuple(_format_sense(int(other)) for other in others)


def _format_sense(key: int) -> str:
    number = key // SENSE_STRIDE
    if number == 0:
        return "its main sense"
    return (
        ENTITY_CLASSES[number] if number < len(ENTITY_CLASSES) else f"set apart by hand ({number})"
    )


async def _load_names(snapshot: Snapshot, keys: Sequence[int]) -> dict[int, Entity]:
    """Load names as stored in the tables, before merging; each has its sense's id."""
    stored = await (snapshot.raw if isinstance(snapshot, ResolvedSnapshot) else snapshot).entities(
        sorted({int(key) % SENSE_STRIDE for key in keys})
    )
    return {
        int(key): replace(entity, id=node_id(entity.id, int(key)))
        for key in keys
        for entity in [stored[int(key) % SENSE_STRIDE]]
    }
