"""Deriving a generation's arrays from the store's tables."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import csr
from clew.graph.owners import Named, Owned, owners_of
from clew.store.protocol import Tables
from clew.store.text_index import index_texts, text_arrays, text_index

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


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
    arrays["entity_literal"] = tables.entities[:, 3] > 0
    chunks, entities, facts = (arrays[f"{kind}_keys"] for kind in ("chunk", "entity", "fact"))

    entity, chunk, times, about = tables.mentions.T
    entity, chunk = positions(entities, entity), positions(chunks, chunk)
    counted = np.maximum(times, 1).astype(np.float32)
    arrays |= _both(("entity", len(entities), entity), ("chunk", len(chunks), chunk), counted)
    arrays["chunk_entity_about"] = csr(len(chunks), chunk, entity, about / np.float32(1000)).weights

    fact, member, role = tables.participants.T
    fact, member = positions(facts, fact), positions(entities, member)
    arrays |= _both(
        ("fact", len(facts), fact), ("entity", len(entities), member), role.astype(np.float32)
    )

    said, where, start = tables.supports.T
    said, where = positions(facts, said), positions(chunks, where)
    arrays |= _both(
        ("fact", len(facts), said), ("chunk", len(chunks), where), start.astype(np.float32)
    )

    arrays |= _names(tables, entities)
    named = Named(arrays["name_hashes"], arrays["name_entities"], arrays["name_weights"])
    own = np.flatnonzero(about > 0)
    owned = Owned(entity[own], chunk[own], (about[own] / 1000).astype(np.float32))
    owners = owners_of(len(entities), named, arrays["name_parts"], owned)
    arrays |= {f"owners_{part}": getattr(owners, part) for part in owners.__slots__}
    old = text_index(tables.previous) if "text_terms" in tables.previous else None
    old_keys = tables.previous["chunk_keys"] if old is not None else None
    return arrays | text_arrays(index_texts(chunks, tables.texts, old, old_keys))


def positions(keys: Ints, wanted: Ints) -> Ints:
    """Where each wanted key stands among the ascending keys; all of them are there."""
    if not len(keys) or not len(wanted):
        return np.zeros(len(wanted), np.int64)
    table = np.zeros(int(keys[-1]) + 1, np.int64)
    table[keys] = np.arange(len(keys))
    found: Ints = table[wanted]
    return found


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
    """Names and their forms, sorted by hash, own names first: a weight of 2 marks those.

    `entity_same` leads from an entity to the first one whose name has the same loose key.
    """
    own, forms = tables.entities, tables.forms
    hashes = np.concatenate([own[:, 2], forms[:, 1]]).astype(np.uint64)
    owners = np.concatenate([own[:, 0], forms[:, 0]])
    weights = np.concatenate([np.full(len(own), 2000), forms[:, 2]])
    parts = np.concatenate([np.zeros(len(own), np.bool_), forms[:, 3] > 0])
    order = np.lexsort((owners, -weights, hashes))
    _, first, group = np.unique(own[:, 2], return_index=True, return_inverse=True)
    return {
        "entity_same": first[group].astype(np.int32),
        "name_hashes": hashes[order],
        "name_entities": positions(entities, owners[order]).astype(np.int32),
        "name_weights": (weights[order] / 1000).astype(np.float32),
        "name_parts": parts[order],
    }
