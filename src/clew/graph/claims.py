"""Resolves competing claims of documents to be about the same name."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

# From MAIN_CLAIM on a document is certainly about the name; from SIDE_CLAIM on the name is another
# name of its subject; below, the name is only the most frequent one in it.
MAIN_CLAIM, SIDE_CLAIM, WEAK_SIDE_CLAIM = 0.85, 0.45, 0.5
# A side name claimed by more passages than this is dropped ("American").
MAX_SIDE_CLAIMS = 3
# The least rarity of a name whose frequency counts, and the weight of such a guess.
MIN_RARITY, GUESS_FACTOR = 0.3, 1.4


@dataclass(frozen=True, slots=True)
class EntityPassages:
    """Passages about entities as three columns; `about` is the certainty."""

    entities: Ints
    chunks: Ints
    about: Floats


def resolve_claims(
    claims: EntityPassages, same: Ints, words: Ints, rarity: Floats
) -> tuple[EntityPassages, NDArray[np.bool_]]:
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


def _count_claims(names: Ints, which: NDArray[np.bool_], count: int) -> Ints:
    """Return for each claim how many of `which` are on the same name."""
    found: Ints = np.bincount(names[which], minlength=count)[names]
    return found


def name_rarities(met: NDArray[np.number], chunks: int) -> Floats:
    """Return the rarity of names by chunk count: 1 up to three chunks, 0 for all chunks."""
    rare = np.log((chunks + 1) / (met + 1)) / np.log(max(chunks, 6) / 3)
    found: Floats = np.clip(rare, 0, 1).astype(np.float32)
    return found
