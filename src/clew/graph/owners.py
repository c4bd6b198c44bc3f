"""Passages about each entity, matched by the same name, a short form, similarity or a part."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.alike import NameWords, alike
from clew.graph.claims import Owned
from clew.graph.csr import Csr, csr, spread
from clew.names import FORM, HEAD, PART

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

# A part of a name counts as the name only if at most so many passages match it.
FEW = 3
# Passages kept per entity, the most certain ones: bounds the work of a walk.
MOST = 32
# An entity whose best passage is less certain than this is also matched by similarity.
UNSURE = 0.7
# Factor for a single word that is only similar.
LIKE_WORD = 0.7


@dataclass(frozen=True, slots=True)
class Named:
    """Names and forms sorted by hash, with entity, weight (2 marks its own name) and kind."""

    hashes: NDArray[np.uint64]
    entities: NDArray[np.int32]
    weights: Floats
    kinds: NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Spelt:
    """Tokens of all entities' names by row, and the index over names that have passages."""

    starts: Ints
    codes: Ints
    words: NameWords
    known: Ints
    """The entity of each name in `words`."""
    selves: Ints
    """For each entity its own name in `words`; -1 for none."""


def owners_of(count: int, named: Named, owned: Owned, spelt: Spelt) -> Csr:
    """Return for each of `count` entities the passages about it, weighted by certainty."""
    passages_of = csr(count, owned.entities, owned.chunks, owned.about)
    own = named.weights > 1
    form = ~own & (named.kinds == FORM)
    found = _joined(_matched(named, own, own, passages_of), _matched(named, own, form, passages_of))
    unmatched = _without(count, found)
    found = _joined(found, _matched(named, form & unmatched[named.entities], own, passages_of))
    found = _joined(found, _like(spelt, passages_of, _sure(count, found)))
    for asking, answering in ((named.kinds == HEAD, own), (own, named.kinds == PART)):
        unmatched = _without(count, found)
        guessed = _matched(named, asking & unmatched[named.entities], answering, passages_of)
        found = _joined(found, _few(count, guessed))
    return _surest(count, found)


def _matched(named: Named, asking: Mask, answering: Mask, passages_of: Csr) -> Owned:
    """Match names in `asking` to equal names in `answering` of entities with passages."""
    ask, answer = np.flatnonzero(asking), np.flatnonzero(answering)
    answer = answer[passages_of.degrees()[named.entities[answer]] > 0]
    first = np.searchsorted(named.hashes[answer], named.hashes[ask], "left")
    last = np.searchsorted(named.hashes[answer], named.hashes[ask], "right")
    who, which = spread(first, last)
    query, known = ask[who], answer[which]
    certainty = np.minimum(named.weights[query], 1) * np.minimum(named.weights[known], 1)
    return _owned(
        named.entities[query].astype(np.int64), named.entities[known], certainty, passages_of
    )


def _owned(entity: Ints, known: NDArray[np.integer], certainty: Floats, passages_of: Csr) -> Owned:
    """Copy the passages about `known` to `entity`, scaled by certainty."""
    pair, edge = passages_of.edges_of(known.astype(np.int64))
    about = (certainty[pair] * passages_of.weights[edge]).astype(np.float32)
    return Owned(entity[pair], passages_of.columns[edge].astype(np.int64), about)


def _like(tokens: Spelt, passages_of: Csr, certainty: Floats) -> Owned:
    """Match entities without certain passages to those with the most similar names."""
    queries = np.flatnonzero((certainty < UNSURE) & (np.diff(tokens.starts) > 0))
    size, at = np.diff(tokens.starts)[queries], spread(*_rows(tokens.starts, queries))[1]
    starts = np.concatenate([[0], np.cumsum(size)])
    query, name, score = alike(tokens.words, starts, tokens.codes[at], tokens.selves[queries])
    single = size[query] == 1
    unique = np.bincount(query, minlength=len(queries))[query] == 1
    score = np.where(single, score * LIKE_WORD, score).astype(np.float32)
    keep = ~single | unique
    return _owned(queries[query[keep]], tokens.known[name[keep]], score[keep], passages_of)


def _rows(starts: Ints, rows: Ints) -> tuple[Ints, Ints]:
    return starts[rows], starts[rows + 1]


def _joined(one: Owned, other: Owned) -> Owned:
    return Owned(
        np.concatenate([one.entities, other.entities]),
        np.concatenate([one.chunks, other.chunks]),
        np.concatenate([one.about, other.about]),
    )


def _sure(count: int, found: Owned) -> Floats:
    """Return the highest certainty of each entity."""
    certainty = np.zeros(count, np.float32)
    np.maximum.at(certainty, found.entities, found.about)
    return certainty


def _without(count: int, found: Owned) -> Mask:
    """Return a mask of the entities without passages."""
    unmatched = np.ones(count, np.bool_)
    unmatched[found.entities] = False
    return unmatched


def _few(count: int, found: Owned) -> Owned:
    """Keep only entities with at most `MAX_AMBIGUOUS_PASSAGES` passages."""
    pairs = np.unique(np.stack([found.entities, found.chunks], 1), axis=0)
    many = np.bincount(pairs[:, 0], minlength=count) > FEW
    keep = ~many[found.entities]
    return Owned(found.entities[keep], found.chunks[keep], found.about[keep])


def _surest(count: int, found: Owned) -> Csr:
    """Keep each pair once with its best weight, and the best `MAX_PASSAGES` per entity."""
    order = np.lexsort((-found.about, found.chunks, found.entities))
    entities, chunks, about = found.entities[order], found.chunks[order], found.about[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (np.diff(entities) != 0) | (np.diff(chunks) != 0)
    entities, chunks, about = entities[is_first], chunks[is_first], about[is_first]
    order = np.lexsort((chunks, -about, entities))
    entities, chunks, about = entities[order], chunks[order], about[order]
    begin = np.searchsorted(entities, entities, "left")
    keep = np.arange(len(entities)) - begin < MOST
    return csr(count, entities[keep], chunks[keep], about[keep])
