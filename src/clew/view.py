"""One generation of a knowledge base, as arrays: what retrieval walks on.

Elements are positions 0…n-1 here; `keys` leads from a position to the store's key. Everything is
memory-mapped and shared by all questions of a generation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, csr
from clew.store.protocol import Arrays, Tables
from clew.store.text_index import TextIndex, index_texts, text_arrays, text_index
from clew.text import hash64, normal_name
from clew.types import Kind

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

# Incidences kept as compressed rows, each in both directions where retrieval needs both.
_LINKS = ("chunk_entity", "entity_chunk", "fact_entity", "entity_fact", "fact_chunk", "chunk_fact")


@dataclass(frozen=True)
class View:
    """Arrays of one generation, and the vectors beside them."""

    arrays: Arrays
    matrices: Mapping[Kind, Floats]
    generation: int = 0

    def keys(self, kind: Kind) -> Ints:
        """The store's key of each position."""
        return self.arrays.get(f"{kind}_keys", np.zeros(0, np.int64))

    def count(self, kind: Kind) -> int:
        """How many there are."""
        return len(self.keys(kind))

    def similar(self, kind: Kind, vector: Floats) -> Floats:
        """Cosine of every element with `vector`; -1 for those without a vector."""
        rows = self.arrays.get(f"{kind}_rows", np.zeros(0, np.int64))
        matrix = self.matrices.get(kind)
        if matrix is None or not len(matrix):
            return np.full(len(rows), -1, np.float32)
        scores = np.append(matrix @ vector, np.float32(-1))
        found: Floats = scores[rows]
        return found

    def vectors(self, kind: Kind, positions: Ints) -> Floats:
        """The vectors of some elements; zeros for those without one."""
        rows = self.arrays[f"{kind}_rows"][positions]
        matrix = self.matrices[kind]
        found = np.asarray(matrix[np.maximum(rows, 0)], np.float32)
        found[rows < 0] = 0
        return found

    def links(self, name: str) -> Csr:
        """One incidence: `chunk_entity` leads from a chunk to its entities, and so on."""
        return self._links[name]

    @cached_property
    def _links(self) -> dict[str, Csr]:
        empty = np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
        if "chunk_keys" not in self.arrays:
            return {name: Csr(*empty) for name in _LINKS}
        return {
            name: Csr(*(self.arrays[f"{name}_{part}"] for part in ("starts", "columns", "weights")))
            for name in _LINKS
        }

    @cached_property
    def text(self) -> TextIndex:
        """The lexical index."""
        if "text_terms" not in self.arrays:
            return index_texts(np.zeros(0, np.int64), {})
        return text_index(self.arrays)

    def named(self, names: Sequence[str]) -> list[NDArray[np.int32]]:
        """The entities that bear each name, as their own name or as an alias."""
        hashes: NDArray[np.uint64] = self.arrays.get("name_hashes", np.zeros(0, np.uint64))
        owners = self.arrays.get("name_entities", np.zeros(0, np.int32))
        wanted = np.array([hash64(normal_name(name)) for name in names], np.uint64)
        first = np.searchsorted(hashes, wanted, "left")
        last = np.searchsorted(hashes, wanted, "right")
        return [owners[a:b] for a, b in zip(first, last, strict=True)]


def arrays_of(tables: Tables) -> dict[str, NDArray[Any]]:
    """Derive a generation's arrays from the store's tables."""
    arrays: dict[str, NDArray[Any]] = {}
    for kind, table in (
        ("chunk", tables.chunks),
        ("entity", tables.entities),
        ("fact", tables.facts),
    ):
        arrays[f"{kind}_keys"] = table[:, 0].copy()
        arrays[f"{kind}_rows"] = table[:, 1].copy()
    chunks, entities, facts = (arrays[f"{kind}_keys"] for kind in ("chunk", "entity", "fact"))

    entity, chunk, times, about = tables.mentions.T
    entity, chunk = np.searchsorted(entities, entity), np.searchsorted(chunks, chunk)
    counted = np.maximum(times, 1).astype(np.float32)
    arrays |= _both(("entity", len(entities), entity), ("chunk", len(chunks), chunk), counted)
    arrays["chunk_entity_about"] = csr(len(chunks), chunk, entity, about / np.float32(1000)).weights

    fact, member, role = tables.participants.T
    fact, member = np.searchsorted(facts, fact), np.searchsorted(entities, member)
    arrays |= _both(
        ("fact", len(facts), fact), ("entity", len(entities), member), role.astype(np.float32)
    )

    said, where, start = tables.supports.T
    said, where = np.searchsorted(facts, said), np.searchsorted(chunks, where)
    arrays |= _both(
        ("fact", len(facts), said), ("chunk", len(chunks), where), start.astype(np.float32)
    )

    arrays |= _names(tables, entities)
    old = text_index(tables.previous) if "text_terms" in tables.previous else None
    old_keys = tables.previous["chunk_keys"] if old is not None else None
    return arrays | text_arrays(index_texts(chunks, tables.texts, old, old_keys))


def _both(
    left: tuple[str, int, Ints], right: tuple[str, int, Ints], weights: Floats
) -> dict[str, NDArray[Any]]:
    """An incidence in both directions, as named arrays."""
    (one, ones, sources), (other, others, targets) = left, right
    forth, back = csr(ones, sources, targets, weights), csr(others, targets, sources, weights)
    return {
        f"{name}_{part}": getattr(links, part)
        for name, links in ((f"{one}_{other}", forth), (f"{other}_{one}", back))
        for part in ("starts", "columns", "weights")
    }


def _names(tables: Tables, entities: Ints) -> dict[str, NDArray[Any]]:
    """Names and aliases, sorted by hash, with their owners' positions."""
    hashes = np.concatenate([tables.entities[:, 2], tables.aliases[:, 1]]).astype(np.uint64)
    owners = np.concatenate([tables.entities[:, 0], tables.aliases[:, 0]])
    order = np.lexsort((owners, hashes))
    return {
        "name_hashes": hashes[order],
        "name_entities": np.searchsorted(entities, owners[order]).astype(np.int32),
    }
