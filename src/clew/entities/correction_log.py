"""The log of a user's merges and splits, so that each can be undone in any order.

It holds ids and keys, never names: the names of a removed document are gone with it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from clew.store.protocol import SENSE_STRIDE, KeyValueStore, Snapshot
from clew.store.resolved_entities import RESOLUTION_KIND, SENSES_KIND, ResolvedSnapshot

CORRECTIONS_KIND = "correction"  # key-value kind: number → one merge or split; "last" → number
WITHDRAWN = "null"  # stored instead of a decision that no longer holds
_LAST = "last"
Values = Mapping[str, Mapping[str, str]]
"""Stored values by kind and key."""


@dataclass(frozen=True, slots=True)
class DecidedCell:
    """One decision that a correction changed; of a name's senses, that of one document."""

    kind: str
    key: str
    part: str
    """Document id of a sense, else empty."""
    before: Any
    after: Any

    @property
    def place(self) -> tuple[str, str, str]:
        """What was decided."""
        return self.kind, self.key, self.part


@dataclass(frozen=True, slots=True)
class Correction:
    """A merge or split by the user, and the decisions that it changed."""

    number: int
    what: Literal["merge", "split"]
    names: tuple[tuple[str, int], ...]
    """Ids and keys of the names: those it is about, the entity's own first."""
    documents: tuple[str, ...]
    time: float
    cells: tuple[DecidedCell, ...]
    undone: bool = False

    def to_json(self) -> str:
        """The stored JSON value."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class ShownCorrection:
    """A correction with its names as they are now; a name that is gone is empty."""

    number: int
    what: Literal["merge", "split"]
    names: tuple[str, ...]
    documents: tuple[str, ...]
    time: float


async def read_corrections(store: KeyValueStore) -> list[Correction]:
    """Read the log, oldest first."""
    last = int((await store.get(CORRECTIONS_KIND, [_LAST])).get(_LAST, "0"))
    numbers = [str(number) for number in range(1, last + 1)]
    held = await store.get(CORRECTIONS_KIND, numbers) if numbers else {}
    return [_parse(held[number]) for number in numbers if number in held]


def _parse(value: str) -> Correction:
    found = json.loads(value)
    return Correction(
        **found
        | {
            "names": tuple((name, key) for name, key in found["names"]),
            "documents": tuple(found["documents"]),
            "cells": tuple(DecidedCell(**cell) for cell in found["cells"]),
        }
    )


def log_correction(one: Correction) -> dict[str, dict[str, str]]:
    """Return the values that add a correction to the log."""
    return {CORRECTIONS_KIND: {_LAST: str(one.number), str(one.number): one.to_json()}}


def find_changes(
    kind: str, before: Mapping[str, str], after: Mapping[str, str]
) -> list[DecidedCell]:
    """Return the decisions of one kind that differ from those stored before."""
    changed = []
    for key, value in after.items():
        old, new = _split_parts(kind, before.get(key)), _split_parts(kind, value)
        for part in sorted(old.keys() | new.keys()):
            if old.get(part) != new.get(part):
                changed.append(DecidedCell(kind, key, part, old.get(part), new.get(part)))
    return changed


def _split_parts(kind: str, value: str | None) -> dict[str, Any]:
    found = json.loads(value or WITHDRAWN)
    return (found or {}) if kind == SENSES_KIND else {"": found}


def revert(log: Sequence[Correction], undone: Correction) -> list[DecidedCell]:
    """Return what the decisions of a correction are without it.

    A later correction of the same pair still holds; else the one before, or what was before all.
    """
    rest = [one for one in log if not one.undone and one.number != undone.number]
    latest = {cell.place: cell.after for one in rest for cell in one.cells}
    first = {cell.place: cell.before for one in reversed(log) for cell in one.cells}
    return [
        DecidedCell(*cell.place, cell.after, latest.get(cell.place, first[cell.place]))
        for cell in undone.cells
    ]


def apply_cells(cells: Iterable[DecidedCell], held: Values) -> dict[str, dict[str, str]]:
    """Return the values to store where these decisions hold instead."""
    values: dict[str, dict[str, str]] = {}
    for cell in cells:
        stored = values.setdefault(cell.kind, {})
        if cell.kind == RESOLUTION_KIND:
            stored[cell.key] = json.dumps(cell.after)
            continue
        known = stored.get(cell.key, held.get(cell.kind, {}).get(cell.key, "{}"))
        parts = json.loads(known) | {cell.part: cell.after}
        stored[cell.key] = json.dumps({k: v for k, v in parts.items() if v is not None})
    return values


async def show_corrections(
    snapshot: Snapshot, log: Sequence[Correction], limit: int
) -> list[ShownCorrection]:
    """Return the newest corrections that hold, with the names of what they are about."""
    chosen = [one for one in reversed(log) if not one.undone][:limit]
    raw = snapshot.raw if isinstance(snapshot, ResolvedSnapshot) else snapshot
    keys = {key % SENSE_STRIDE for one in chosen for _, key in one.names}
    entities = await raw.entities(sorted(keys))
    # A key may have gone to another name since, so the id is compared too.
    names = {(entity.id, key): entity.name for key, entity in entities.items()}
    documents = await snapshot.names(sorted({doc for one in chosen for doc in one.documents}))
    return [
        ShownCorrection(
            one.number,
            one.what,
            tuple(names.get((i.partition("#")[0], key % SENSE_STRIDE), "") for i, key in one.names),
            tuple(name for doc in one.documents for name in documents.get(doc, ())[:1]),
            one.time,
        )
        for one in chosen
    ]
