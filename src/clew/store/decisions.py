"""Merge decisions and sense pins of users and models: stored by id, read as key columns."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from clew.store.protocol import SENSE_STRIDE, Array

RESOLUTION_KIND = (
    "resolution"  # key-value kind: two ids → whether they are the same, and who decided
)
SENSES_KIND = "senses"  # key-value kind: entity id → document id → number of the sense used there
FIRST_MANUAL_SENSE = 16  # manual senses are numbered from here; lower numbers are entity classes


@dataclass(frozen=True, slots=True)
class MergeDecision:
    """Whether two entities are the same, and who decided."""

    one: str
    other: str
    same: bool
    by: Literal["user", "model"]

    @property
    def key(self) -> str:
        """Storage key of the unordered pair."""
        return " ".join(sorted((self.one, self.other)))

    def to_json(self) -> str:
        """The stored JSON value."""
        return json.dumps({"same": self.same, "by": self.by})


def parse_decisions(held: Mapping[str, str], entities: Mapping[str, int]) -> Array:
    """Rows of two keys, same (0/1), by model (0/1); pairs with a removed entity are dropped."""
    found = []
    for pair, value in sorted(held.items()):
        keys = [parse_node_id(name, entities) for name in pair.split()]
        decision = json.loads(value)
        if None not in keys:
            found.append((*keys, int(decision["same"]), int(decision["by"] == "model")))
    return np.array(found, np.int64).reshape(-1, 4)


def parse_sense_pins(
    held: Mapping[str, str], entities: Mapping[str, int], chunks: Mapping[str, Sequence[int]]
) -> Array:
    """Rows of entity key, chunk key, sense; `chunks` maps a document id to its chunk keys."""
    found = [
        (entities[name], chunk, sense)
        for name, value in sorted(held.items())
        if name in entities
        for document, sense in sorted(json.loads(value).items())
        for chunk in chunks.get(document, ())
    ]
    return np.array(found, np.int64).reshape(-1, 3)


def parse_node_id(name: str, entities: Mapping[str, int]) -> int | None:
    """The key of an entity id or sense id."""
    base, _, sense = name.partition("#")
    key = entities.get(base)
    return None if key is None else key + int(sense or 0) * SENSE_STRIDE
