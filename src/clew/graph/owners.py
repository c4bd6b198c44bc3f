"""Which passages are about which entity: by the same name, by a shorter form, by a part of it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, csr

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

# A mere part of a name is taken for it only when at most so many passages could be meant.
FEW = 3
# No entity leads to more passages than this: the surest stay. Bounds the work of a walk.
MOST = 32


@dataclass(frozen=True, slots=True)
class Named:
    """Names and forms sorted by hash: who bears each, how surely (2 marks the own name)."""

    hashes: NDArray[np.uint64]
    entities: NDArray[np.int32]
    weights: Floats


@dataclass(frozen=True, slots=True)
class Owned:
    """Passages that are about an entity: three columns."""

    entities: Ints
    chunks: Ints
    about: Floats


def owners_of(count: int, named: Named, parts: NDArray[np.bool_], owned: Owned) -> Csr:
    """For each of `count` entities the passages about it, weighed by how surely they are."""
    own = named.weights > 1
    short = ~own & ~parts
    exact = _matched(named, own, own, owned)
    meant = _joined(exact, _matched(named, own, short, owned))
    left = _without(count, meant)
    guessed = _matched(named, short & left[named.entities], own, owned)
    left &= _without(count, guessed)
    partly = _few(count, _matched(named, own & left[named.entities], parts, owned))
    return _surest(count, _joined(_joined(meant, guessed), partly))


def _matched(
    named: Named, asking: NDArray[np.bool_], answering: NDArray[np.bool_], owned: Owned
) -> Owned:
    """Entities whose names in `asking` equal an owned entity's names in `answering`."""
    ask, answer = np.flatnonzero(asking), np.flatnonzero(answering)
    # Owned passages, by the position of the entity that owns them.
    by_entity = np.argsort(owned.entities, kind="stable")
    first_owned = np.searchsorted(owned.entities[by_entity], named.entities[answer], "left")
    last_owned = np.searchsorted(owned.entities[by_entity], named.entities[answer], "right")
    answer = answer[last_owned > first_owned]
    first = np.searchsorted(named.hashes[answer], named.hashes[ask], "left")
    last = np.searchsorted(named.hashes[answer], named.hashes[ask], "right")
    who, which = _spread(first, last)
    asker, answerer = ask[who], answer[which]
    begin = np.searchsorted(owned.entities[by_entity], named.entities[answerer], "left")
    end = np.searchsorted(owned.entities[by_entity], named.entities[answerer], "right")
    pair, at = _spread(begin, end)
    row = by_entity[at]
    sure = np.minimum(named.weights[asker[pair]], 1) * np.minimum(named.weights[answerer[pair]], 1)
    entities = named.entities[asker[pair]].astype(np.int64)
    return Owned(entities, owned.chunks[row], (sure * owned.about[row]).astype(np.float32))


def _spread(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Ranges written out: (which range, each index in it)."""
    size = last - first
    which = np.repeat(np.arange(len(first)), size)
    offset = np.arange(len(which)) - np.repeat(np.cumsum(size) - size, size)
    return which, first[which] + offset


def _joined(one: Owned, other: Owned) -> Owned:
    return Owned(
        np.concatenate([one.entities, other.entities]),
        np.concatenate([one.chunks, other.chunks]),
        np.concatenate([one.about, other.about]),
    )


def _without(count: int, found: Owned) -> NDArray[np.bool_]:
    """Entities for which nothing was found."""
    lacking = np.ones(count, np.bool_)
    lacking[found.entities] = False
    return lacking


def _few(count: int, found: Owned) -> Owned:
    """Only entities with at most `FEW` passages."""
    pairs = np.unique(np.stack([found.entities, found.chunks], 1), axis=0)
    many = np.bincount(pairs[:, 0], minlength=count) > FEW
    keep = ~many[found.entities]
    return Owned(found.entities[keep], found.chunks[keep], found.about[keep])


def _surest(count: int, found: Owned) -> Csr:
    """Each pair once with its best weight, and the surest `MOST` per entity."""
    order = np.lexsort((-found.about, found.chunks, found.entities))
    entities, chunks, about = found.entities[order], found.chunks[order], found.about[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (np.diff(entities) != 0) | (np.diff(chunks) != 0)
    entities, chunks, about = entities[fresh], chunks[fresh], about[fresh]
    order = np.lexsort((chunks, -about, entities))
    entities, chunks, about = entities[order], chunks[order], about[order]
    begin = np.searchsorted(entities, entities, "left")
    keep = np.arange(len(entities)) - begin < MOST
    return csr(count, entities[keep], chunks[keep], about[keep])
