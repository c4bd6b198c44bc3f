"""Finds the passages about each entity, and resolves competing claims to one name.

Names are matched exactly, by a short form, by similarity, or by a part.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import (
    Csr,
    Floats,
    Ints,
    Mask,
    argsort_numbers,
    build_csr,
    expand_ranges,
    sorted_unique,
)
from clew.graph.name_matching import NameTokenIndex, match_names
from clew.text.names import FORM, HEAD, PART

# From MAIN_CLAIM on a document is certainly about the name; from SIDE_CLAIM on the name is another
# name of its subject; below, the name is only the most frequent one in it.
MAIN_CLAIM, SIDE_CLAIM, WEAK_SIDE_CLAIM = 0.85, 0.45, 0.5
# A side name claimed by more passages than this is dropped ("American").
MAX_SIDE_CLAIMS = 3
# The least rarity of a name whose frequency counts, and the weight of such a guess.
MIN_RARITY, GUESS_FACTOR = 0.3, 1.4
# A part of a name counts as the name only if at most so many passages match it.
MAX_AMBIGUOUS_PASSAGES = 3
# Passages kept per entity, the most certain ones: bounds the work of a walk.
MAX_PASSAGES = 32
# An entity whose best passage is less certain than this is also matched by similarity.
MIN_CERTAINTY = 0.7
# Factor for a single word that is only similar.
SINGLE_WORD_FACTOR = 0.7


@dataclass(frozen=True, slots=True)
class EntityPassages:
    """Passages about entities as three columns; `about` is the certainty."""

    entities: Ints
    chunks: Ints
    about: Floats


def resolve_claims(
    claims: EntityPassages, same: Ints, words: Ints, rarity: Floats
) -> tuple[EntityPassages, Mask]:
    """Weigh claims on one name (entities with equal `same`) against each other.

    `words` and `rarity` are per entity. A side claim yields to a main one, the more so for a
    single word; claims of equal rank share. Also returns which remaining claims are no guesses.
    """
    name, about = same[claims.entities], claims.about
    one_word = words[claims.entities] <= 1
    main = about >= MAIN_CLAIM
    side = ~main & (about >= SIDE_CLAIM)
    guess = about < SIDE_CLAIM
    mains = _count_claims(name, main, len(same))
    side &= ~((mains > 0) & ~one_word & (about <= WEAK_SIDE_CLAIM))
    sides = _count_claims(name, side, len(same))
    side &= (sides <= MAX_SIDE_CLAIMS) & ~((mains > 0) & one_word)
    guess &= rarity[claims.entities] > MIN_RARITY
    guesses = _count_claims(name, guess, len(same))
    weight = np.where(side, about / np.sqrt(np.maximum(sides, 1)), about)
    guessed = GUESS_FACTOR * about * rarity[claims.entities] / np.sqrt(np.maximum(guesses, 1))
    weight = np.where(guess, guessed, weight)
    keep = main | side | guess
    left = EntityPassages(
        claims.entities[keep], claims.chunks[keep], weight[keep].astype(np.float32)
    )
    return left, ~guess[keep]


def _count_claims(names: Ints, which: Mask, count: int) -> Ints:
    """Return for each claim how many of `which` are on the same name."""
    found: Ints = np.bincount(names[which], minlength=count)[names]
    return found


def name_rarities(chunk_counts: NDArray[np.number], chunks: int) -> Floats:
    """Return the rarity of names by chunk count: 1 up to three chunks, 0 for all chunks."""
    rare = np.log((chunks + 1) / (chunk_counts + 1)) / np.log(max(chunks, 6) / 3)
    found: Floats = np.clip(rare, 0, 1).astype(np.float32)
    return found


@dataclass(frozen=True, slots=True)
class NameTable:
    """Names and forms sorted by hash, with entity, weight (2 marks its own name) and kind."""

    hashes: NDArray[np.uint64]
    entities: NDArray[np.int32]
    weights: Floats
    kinds: NDArray[np.int8]

    def take(self, rows: Ints) -> "NameTable":
        """Some rows."""
        return NameTable(
            self.hashes[rows], self.entities[rows], self.weights[rows], self.kinds[rows]
        )

    def renumber(self, which: Ints) -> "NameTable":
        """The same names, with entities numbered as in the ascending `which`."""
        numbers = np.searchsorted(which, self.entities).astype(self.entities.dtype)
        return NameTable(self.hashes, numbers, self.weights, self.kinds)


@dataclass(frozen=True, slots=True)
class EntityTokens:
    """Tokens of all entities' names by row, and the index over names that have passages."""

    starts: Ints
    codes: Ints
    words: NameTokenIndex
    name_entities: Ints
    """The entity of each name in `words`."""
    own_names: Ints
    """For each entity its own name in `words`; -1 for none."""


class PassageFinder:
    """Finds the passages about entities; what a search needs of all names is made once."""

    def __init__(
        self, passages_of: Csr, named: NameTable, spelt: EntityTokens, codes: Ints
    ) -> None:
        """`passages_of` are the passages that entities own; `named` has all names that are asked.

        Of many passages, equals are chosen by their `codes`.
        """
        self._passages_of, self._spelt, self._codes = passages_of, spelt, codes
        known = passages_of.degrees_of(named.entities) > 0
        own = named.weights > 1
        self._own = named.take(np.flatnonzero(known & own))
        self._forms = named.take(np.flatnonzero(known & ~own & (named.kinds == FORM)))
        self._parts = named.take(np.flatnonzero(known & (named.kinds == PART)))

    def find(self, asked: NameTable, which: Ints) -> tuple[Csr, Mask]:
        """Return for each of some entities the passages about it, weighted by certainty.

        `asked` are the names of these entities, which are numbered as in `which`. Also returns
        which of them were matched by similarity.
        """
        count = len(which)
        own = asked.weights > 1
        form = ~own & (asked.kinds == FORM)
        found = _concatenate(
            self._match_hashes(asked, own, self._own), self._match_hashes(asked, own, self._forms)
        )
        unmatched = _find_unmatched(count, found)
        found = _concatenate(
            found, self._match_hashes(asked, form & unmatched[asked.entities], self._own)
        )
        unsure = _best_certainty(count, found) < MIN_CERTAINTY
        unsure &= self._spelt.starts[which + 1] > self._spelt.starts[which]
        found = _concatenate(found, self._match_similar(np.flatnonzero(unsure), which))
        for asking, answers in ((asked.kinds == HEAD, self._own), (own, self._parts)):
            unmatched = _find_unmatched(count, found)
            guessed = self._match_hashes(asked, asking & unmatched[asked.entities], answers)
            found = _concatenate(found, _drop_ambiguous(count, guessed))
        return _keep_surest(count, found, self._codes), unsure

    def _match_hashes(self, asked: NameTable, asking: Mask, answers: NameTable) -> EntityPassages:
        """Match names in `asking` to equal names of entities with passages."""
        ask = np.flatnonzero(asking)
        hashes = asked.hashes[ask]
        first = np.searchsorted(answers.hashes, hashes, "left")
        last = np.searchsorted(answers.hashes, hashes, "right")
        who, known = expand_ranges(first, last)
        query = ask[who]
        certainty = np.minimum(asked.weights[query], 1) * np.minimum(answers.weights[known], 1)
        return _transfer_passages(
            asked.entities[query].astype(np.int64),
            answers.entities[known],
            certainty,
            self._passages_of,
        )

    def _match_similar(self, queries: Ints, which: Ints) -> EntityPassages:
        """Match entities without certain passages to those with the most similar names."""
        tokens, entities = self._spelt, which[queries]
        size = tokens.starts[entities + 1] - tokens.starts[entities]
        _, at = expand_ranges(tokens.starts[entities], tokens.starts[entities + 1])
        starts = np.concatenate([[0], np.cumsum(size)])
        query, name, score = match_names(
            tokens.words, starts, tokens.codes[at], tokens.own_names[entities]
        )
        single = size[query] == 1
        unique = np.bincount(query, minlength=len(queries))[query] == 1
        score = np.where(single, score * SINGLE_WORD_FACTOR, score).astype(np.float32)
        keep = ~single | unique
        entities = tokens.name_entities[name[keep]]
        return _transfer_passages(queries[query[keep]], entities, score[keep], self._passages_of)


def _transfer_passages(
    entity: Ints, known: NDArray[np.integer], certainty: Floats, passages_of: Csr
) -> EntityPassages:
    """Copy the passages about `known` to `entity`, scaled by certainty."""
    pair, edge = passages_of.edges_of(known.astype(np.int64))
    about = (certainty[pair] * passages_of.weights[edge]).astype(np.float32)
    return EntityPassages(entity[pair], passages_of.columns[edge].astype(np.int64), about)


def _concatenate(one: EntityPassages, other: EntityPassages) -> EntityPassages:
    return EntityPassages(
        np.concatenate([one.entities, other.entities]),
        np.concatenate([one.chunks, other.chunks]),
        np.concatenate([one.about, other.about]),
    )


def _best_certainty(count: int, found: EntityPassages) -> Floats:
    certainty = np.zeros(count, np.float32)
    np.maximum.at(certainty, found.entities, found.about)
    return certainty


def _find_unmatched(count: int, found: EntityPassages) -> Mask:
    unmatched = np.ones(count, np.bool_)
    unmatched[found.entities] = False
    return unmatched


def _drop_ambiguous(count: int, found: EntityPassages) -> EntityPassages:
    width = int(found.chunks.max(initial=0)) + 1
    pairs = sorted_unique(found.entities * width + found.chunks) // width
    many = np.bincount(pairs, minlength=count) > MAX_AMBIGUOUS_PASSAGES
    keep = ~many[found.entities]
    return EntityPassages(found.entities[keep], found.chunks[keep], found.about[keep])


def _keep_surest(count: int, found: EntityPassages, codes: Ints) -> Csr:
    """Keep each pair once with its best weight, and the best `MAX_PASSAGES` per entity."""
    width = len(codes)
    pair = found.entities * width + found.chunks
    order = argsort_numbers(pair)
    pair = pair[order]
    first = np.flatnonzero(np.append(True, pair[1:] != pair[:-1])[: len(pair)])
    entities, chunks = pair[first] // max(width, 1), pair[first] % max(width, 1)
    about = found.about[order]
    about = np.maximum.reduceat(about, first) if len(first) else about
    keep = np.ones(len(first), np.bool_)
    many = np.flatnonzero((np.bincount(entities, minlength=count) > MAX_PASSAGES)[entities])
    ranked = many[np.lexsort((codes[chunks[many]], -about[many], entities[many]))]
    begin = np.searchsorted(entities[ranked], entities[ranked], "left")
    keep[ranked[np.arange(len(ranked)) - begin >= MAX_PASSAGES]] = False
    return build_csr(count, entities[keep], chunks[keep], about[keep])
