"""Which passages are about which entity: by the same name, a shorter form, a like one, a part."""

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

# A mere part of a name is taken for it only when at most so many passages could be meant.
FEW = 3
# No entity leads to more passages than this: the surest stay. Bounds the work of a walk.
MOST = 32
# An entity whose passages are less sure than this is also looked up by likeness.
UNSURE = 0.7
# A single word that is merely alike.
LIKE_WORD = 0.7


@dataclass(frozen=True, slots=True)
class Named:
    """Names and forms sorted by hash: who bears each, how surely (2 marks the own name)."""

    hashes: NDArray[np.uint64]
    entities: NDArray[np.int32]
    weights: Floats
    kinds: NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Spelt:
    """All entities' tokens, row by row, and the index over those of names that have owners."""

    starts: Ints
    codes: Ints
    words: NameWords
    known: Ints
    """The entity of each name in `words`."""
    selves: Ints
    """For each entity the name in `words` that it bears; -1 for none."""


def owners_of(count: int, named: Named, owned: Owned, spelt: Spelt) -> Csr:
    """For each of `count` entities the passages about it, weighed by how surely they are."""
    held = csr(count, owned.entities, owned.chunks, owned.about)
    own = named.weights > 1
    form = ~own & (named.kinds == FORM)
    found = _joined(_matched(named, own, own, held), _matched(named, own, form, held))
    lacking = _without(count, found)
    found = _joined(found, _matched(named, form & lacking[named.entities], own, held))
    found = _joined(found, _like(spelt, held, _sure(count, found)))
    for asking, answering in ((named.kinds == HEAD, own), (own, named.kinds == PART)):
        lacking = _without(count, found)
        guessed = _matched(named, asking & lacking[named.entities], answering, held)
        found = _joined(found, _few(count, guessed))
    return _surest(count, found)


def _matched(named: Named, asking: Mask, answering: Mask, held: Csr) -> Owned:
    """Entities whose names in `asking` equal an owned entity's names in `answering`."""
    ask, answer = np.flatnonzero(asking), np.flatnonzero(answering)
    answer = answer[held.degrees()[named.entities[answer]] > 0]
    first = np.searchsorted(named.hashes[answer], named.hashes[ask], "left")
    last = np.searchsorted(named.hashes[answer], named.hashes[ask], "right")
    who, which = spread(first, last)
    asker, answerer = ask[who], answer[which]
    sure = np.minimum(named.weights[asker], 1) * np.minimum(named.weights[answerer], 1)
    return _owned(named.entities[asker].astype(np.int64), named.entities[answerer], sure, held)


def _owned(asker: Ints, known: NDArray[np.integer], sure: Floats, held: Csr) -> Owned:
    """The passages about `known` as passages about `asker`, this surely."""
    pair, edge = held.edges_of(known.astype(np.int64))
    about = (sure[pair] * held.weights[edge]).astype(np.float32)
    return Owned(asker[pair], held.columns[edge].astype(np.int64), about)


def _like(spelt: Spelt, held: Csr, sure: Floats) -> Owned:
    """Owners of the names that look most like an entity's, where it has no sure ones itself."""
    asking = np.flatnonzero((sure < UNSURE) & (np.diff(spelt.starts) > 0))
    size, at = np.diff(spelt.starts)[asking], spread(*_rows(spelt.starts, asking))[1]
    starts = np.concatenate([[0], np.cumsum(size)])
    asker, name, score = alike(spelt.words, starts, spelt.codes[at], spelt.selves[asking])
    single = size[asker] == 1
    unique = np.bincount(asker, minlength=len(asking))[asker] == 1
    score = np.where(single, score * LIKE_WORD, score).astype(np.float32)
    keep = ~single | unique
    return _owned(asking[asker[keep]], spelt.known[name[keep]], score[keep], held)


def _rows(starts: Ints, rows: Ints) -> tuple[Ints, Ints]:
    return starts[rows], starts[rows + 1]


def _joined(one: Owned, other: Owned) -> Owned:
    return Owned(
        np.concatenate([one.entities, other.entities]),
        np.concatenate([one.chunks, other.chunks]),
        np.concatenate([one.about, other.about]),
    )


def _sure(count: int, found: Owned) -> Floats:
    """The surest passage of each entity."""
    sure = np.zeros(count, np.float32)
    np.maximum.at(sure, found.entities, found.about)
    return sure


def _without(count: int, found: Owned) -> Mask:
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
