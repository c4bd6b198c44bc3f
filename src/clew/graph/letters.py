"""Byte trigram index over names: finds similar names despite typing errors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_NGRAM_SIZE = 3
_SEPARATOR = b"\n"


@dataclass(frozen=True, slots=True)
class NgramIndex:
    """Byte trigrams of all names, sorted, with the name that contains each."""

    grams: NDArray[np.uint32]
    owners: NDArray[np.int32]
    sizes: NDArray[np.int32]
    """Number of trigrams of each name."""

    def find_similar(self, text: str, k: int) -> tuple[Ints, NDArray[np.float64]]:
        """Return the `k` names most similar to a text, best first, with their Dice coefficients."""
        wanted = np.unique(_extract_ngrams(_encode_names([text]))[0])
        if not len(self.sizes) or not len(wanted):
            return np.zeros(0, np.int64), np.zeros(0)
        first = np.searchsorted(self.grams, wanted, "left")
        last = np.searchsorted(self.grams, wanted, "right")
        owners = np.concatenate(
            [np.unique(self.owners[a:b]) for a, b in zip(first, last, strict=True)]
        )
        common = np.bincount(owners, minlength=len(self.sizes))
        share = 2 * common / (self.sizes + len(wanted))
        order = np.lexsort((np.arange(len(share)), -share))[:k]
        return order[share[order] > 0], share[order][share[order] > 0]


def build_ngram_index(names: Sequence[str]) -> NgramIndex:
    """Build the trigram index of some names."""
    raw = _encode_names(names)
    grams, ends = _extract_ngrams(raw)
    owner = (np.cumsum(raw == _SEPARATOR[0]) - 1).astype(np.int32)[ends]
    order = np.argsort(grams, kind="stable")
    sizes = np.bincount(owner, minlength=len(names)).astype(np.int32)
    return NgramIndex(grams[order], owner[order], sizes)


def _encode_names(names: Sequence[str]) -> NDArray[np.uint8]:
    """Concatenate case-folded names, each between two newlines, as UTF-8 bytes."""
    folded = "\n".join(" ".join(name.casefold().split()) for name in names)
    return np.frombuffer(f"\n{folded}\n".encode("utf-8", "replace"), np.uint8)


def _extract_ngrams(raw: NDArray[np.uint8]) -> tuple[NDArray[np.uint32], Ints]:
    """Return every trigram within one name (boundaries included), and where it begins."""
    wide = raw.astype(np.uint32)
    grams = (wide[:-2] << 16 | wide[1:-1] << 8 | wide[2:]).astype(np.uint32)
    inside = np.flatnonzero(raw[1:-1] != _SEPARATOR[0]).astype(np.int64)
    return grams[inside], inside
