"""What users and models said of names, kept in memory by id and handed on as columns over keys."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from clew.store.protocol import SENSE, Array

RESOLUTION = "resolution"  # kind of memory: two ids → whether they are the same, and who says so
SENSES = "senses"  # kind of memory: an entity's id → document id → number of the sense meant there
FIRST_SENSE = 16  # senses set apart by hand are numbered from here; below are classes


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether two entities are the same, and who says so."""

    one: str
    other: str
    same: bool
    by: Literal["user", "model"]

    @property
    def key(self) -> str:
        """Under which it is remembered: a pair has no order."""
        return " ".join(sorted((self.one, self.other)))

    def value(self) -> str:
        """As it is remembered."""
        return json.dumps({"same": self.same, "by": self.by})


def decided(held: Mapping[str, str], entities: Mapping[str, int]) -> Array:
    """Two keys, 1 for the same, 1 for a model's word; pairs of which one is gone are left out."""
    found = []
    for pair, value in sorted(held.items()):
        keys = [node_key(name, entities) for name in pair.split()]
        said = json.loads(value)
        if None not in keys:
            found.append((*keys, int(said["same"]), int(said["by"] == "model")))
    return np.array(found, np.int64).reshape(-1, 4)


def pinned(
    held: Mapping[str, str], entities: Mapping[str, int], chunks: Mapping[str, Sequence[int]]
) -> Array:
    """Entity key, chunk key, sense; `chunks` leads from a document's id to its chunks' keys."""
    found = [
        (entities[name], chunk, sense)
        for name, value in sorted(held.items())
        if name in entities
        for document, sense in sorted(json.loads(value).items())
        for chunk in chunks.get(document, ())
    ]
    return np.array(found, np.int64).reshape(-1, 3)


def node_key(name: str, entities: Mapping[str, int]) -> int | None:
    """The key of an id, which may be a sense's."""
    base, _, sense = name.partition("#")
    key = entities.get(base)
    return None if key is None else key + int(sense or 0) * SENSE
