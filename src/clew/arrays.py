"""Deriving a generation's arrays from the store's tables."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.alike import name_words
from clew.graph.carry import carried
from clew.graph.claims import Owned, rarities, settled
from clew.graph.csr import Csr, csr, spread
from clew.graph.owners import Named, Spelt, owners_of
from clew.names import FORM, TOKEN
from clew.resolution import resolve
from clew.store.nodes import LONG
from clew.store.protocol import SENSE, Arrays, Publish, Tables
from clew.store.text_index import index_texts, text_arrays, text_index

# Raise it with every change of what the arrays are or mean: older ones are then derived anew.
LAYOUT = 5

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

_KNOWN = 0.3  # names claimed less surely than this are not found by mere likeness


def arrays_of(tables: Tables) -> dict[str, NDArray[Any]]:
    """Derive a generation's arrays from the store's tables: names become things, then columns."""
    settled_names = resolve(tables)
    tables = settled_names.tables
    arrays: dict[str, NDArray[Any]] = {"layout": np.array([LAYOUT]), **settled_names.arrays}
    for kind, table in (
        ("chunk", tables.chunks),
        ("entity", tables.entities),
        ("fact", tables.facts),
    ):
        arrays[f"{kind}_keys"] = table[:, 0].copy()
        arrays[f"{kind}_rows"] = table[:, 1].copy()
    arrays["entity_literal"] = tables.entities[:, 3] > 0
    arrays["entity_long"] = tables.entities[:, 6] > LONG
    arrays["fact_long"] = tables.facts[:, 4] > LONG
    arrays["fact_weight"] = (tables.facts[:, 3] / 1000).astype(np.float32)
    arrays |= _labels("fact_relation", "relation_fact", tables.facts[:, 2])
    arrays |= _labels("entity_type", "type_entity", tables.entities[:, 4])
    chunks, entities, facts = (arrays[f"{kind}_keys"] for kind in ("chunk", "entity", "fact"))

    entity, chunk, times, about, _ = tables.mentions.T
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
    arrays |= _owners(tables, arrays, Owned(entity, chunk, about / np.float32(1000)))
    old = text_index(tables.previous) if "text_terms" in tables.previous else None
    old_keys = tables.previous["chunk_keys"] if old is not None else None
    arrays |= carried(tables.previous, arrays)
    return arrays | text_arrays(index_texts(chunks, tables.texts, old, old_keys))


def keeping_trees(held: Arrays) -> Publish:
    """Derive all else afresh, but take over the trees of a generation: they may have cost much."""

    def publish(tables: Tables) -> Arrays:
        arrays = arrays_of(tables)
        return arrays | carried(held, arrays)

    return publish


def up_to_date(arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Whether arrays were derived by this layout."""
    held = arrays.get("layout")
    return held is not None and int(held[0]) == LAYOUT


def positions(keys: Ints, wanted: Ints) -> Ints:
    """Where each wanted key stands among the ascending keys; all of them are there."""
    if not len(keys) or not len(wanted):
        return np.zeros(len(wanted), np.int64)
    if keys[-1] >= SENSE:  # keys of senses are far apart
        return np.searchsorted(keys, wanted)
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
    return _parts(f"{one}_{other}", forth) | _parts(f"{other}_{one}", back)


def _labels(name: str, bearer: str, codes: Ints) -> dict[str, NDArray[Any]]:
    """Codes as small numbers, -1 for none; `bearer` leads from each to one that bears it.

    Through the bearer a label's wording is read from the store: arrays hold numbers only.
    """
    found, first, label = np.unique(codes, return_index=True, return_inverse=True)
    real = found != 0
    number = np.where(real, np.cumsum(real) - 1, -1).astype(np.int32)
    return {name: number[label], bearer: first[real].astype(np.int64)}


def _names(tables: Tables, entities: Ints) -> dict[str, NDArray[Any]]:
    """Names and their forms, sorted by hash, own names first: a weight of 2 marks those.

    `entity_same` leads from an entity to the first one whose name has the same loose key.
    """
    own, forms = tables.entities, tables.forms[tables.forms[:, 3] != TOKEN]
    hashes = np.concatenate([own[:, 2], forms[:, 1]]).astype(np.uint64)
    bearers = np.searchsorted(entities, np.concatenate([own[:, 0], forms[:, 0]]))
    weights = np.concatenate([np.full(len(own), 2000), forms[:, 2]])
    kinds = np.concatenate([np.full(len(own), FORM), forms[:, 3]])
    # Own names first, then the surest; two keys in one number sort faster than two.
    order = np.lexsort((bearers - (weights << 40), hashes))
    _, first, group = np.unique(own[:, 2], return_index=True, return_inverse=True)
    return {
        "entity_same": first[group].astype(np.int32),
        "name_hashes": hashes[order],
        "name_entities": bearers[order].astype(np.int32),
        "name_weights": (weights[order] / 1000).astype(np.float32),
        "name_kinds": kinds[order].astype(np.int8),
    }


def _owners(
    tables: Tables, arrays: dict[str, NDArray[Any]], mentions: Owned
) -> dict[str, NDArray[Any]]:
    """Entity → the chunks about it, and the tokens of names that some chunk is about."""
    entities, same = arrays["entity_keys"], arrays["entity_same"].astype(np.int64)
    count = len(entities)
    tokens = tables.forms[tables.forms[:, 3] == TOKEN]
    bearer = np.searchsorted(entities, tokens[:, 0])
    order = np.lexsort((tokens[:, 2], bearer))
    bearer, codes = bearer[order], tokens[order, 1]
    lengths = np.zeros(count, np.int64)
    np.maximum.at(lengths, bearer, tokens[order, 2] + 1)
    met = np.bincount(same[mentions.entities], minlength=count)[same]
    claimed = mentions.about > 0
    owned, firm = settled(
        Owned(*(getattr(mentions, part)[claimed] for part in Owned.__slots__)),
        same,
        lengths,
        rarities(met, len(arrays["chunk_keys"])),
    )
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(bearer, minlength=count), out=starts[1:])
    # One entity stands for all that bear the same name.
    known = np.unique(same[owned.entities[owned.about >= _KNOWN]])
    name, at = spread(starts[known], starts[known + 1])
    words = name_words(len(known), name, codes[at])
    selves = np.full(count, -1, np.int64)
    selves[known] = np.arange(len(known))
    spelt = Spelt(starts, codes, words, known, selves[same])
    named = Named(*(arrays[f"name_{part}"] for part in Named.__slots__))
    owners = owners_of(count, named, owned, spelt)
    return {
        **{f"owners_{part}": getattr(owners, part) for part in owners.__slots__},
        "word_codes": words.codes,
        "word_entities": known,
        **_parts("word_names", words.names),
        **_parts("word_tokens", words.tokens),
    }


def _parts(name: str, links: Csr) -> dict[str, NDArray[Any]]:
    return {f"{name}_{part}": getattr(links, part) for part in ("starts", "columns", "weights")}
