"""Which elements have details (a description, keywords, attributes), and the vector rows of these.

Details are known only once mentions are merged and names resolved, so they are embedded after the
write (`clew.ingest.details`). An element keeps its rows as long as it is merged from the same
mentions: a mention never changes, and the key of a removed chunk is never given to another.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Ints, Mask
from clew.store.protocol import DETAIL_PREFIX, SENSE_STRIDE, Arrays

PENDING = -1  # row of details that were not read since they changed
NO_VECTOR = -2  # row of details that have no text worth a vector
# What a kind of element has several of: pairs of its key and a number.
PAIRS = {"entity": "attribute", "fact": "keyword"}
_MIX = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xBF58476D1CE4E5B9], np.uint64)


@dataclass(frozen=True, slots=True)
class DetailTable:
    """The elements of a kind with details: keys (ascending), mention codes and vector rows.

    `pair_keys` and `pair_values` list each entity's attribute rows, or each fact's keyword hashes.
    """

    keys: Ints
    codes: Ints
    rows: Ints
    pair_keys: Ints
    pair_values: Ints

    def to_arrays(self, kind: str) -> dict[str, NDArray[Any]]:
        """The arrays for a generation's folder; none if no element has details."""
        if not len(self.keys):
            return {}
        element, pair = f"{DETAIL_PREFIX}{kind}", f"{DETAIL_PREFIX}{PAIRS[kind]}"
        return {
            f"{element}_keys": self.keys,
            f"{element}_codes": self.codes,
            f"{element}_rows": self.rows,
            f"{pair}_keys": self.pair_keys,
            f"{pair}_values": self.pair_values,
        }


def load_details(arrays: Arrays, kind: str) -> DetailTable:
    """Read the table of a kind from a generation's arrays."""
    none = np.zeros(0, np.int64)
    element, pair = f"{DETAIL_PREFIX}{kind}", f"{DETAIL_PREFIX}{PAIRS[kind]}"
    names = *(f"{element}_{part}" for part in ("keys", "codes", "rows")), f"{pair}_keys"
    return DetailTable(*(arrays.get(name, none) for name in (*names, f"{pair}_values")))


def derive_details(
    kind: str, keys: Ints, codes: Ints, previous: Arrays, unsteady: Ints
) -> dict[str, NDArray[Any]]:
    """Return the table of elements with details; rows are kept where the code is the same.

    Names in `unsteady` have several senses, whose details depend on more than their mentions.
    """
    old = load_details(previous, kind)
    order = np.argsort(keys, kind="stable")
    keys, codes = keys[order], codes[order]
    at, known = _find(old.keys, keys)
    known &= old.codes[at] == codes if len(old.keys) else False
    known &= ~np.isin(keys % SENSE_STRIDE, unsteady)
    rows = np.full(len(keys), PENDING, np.int64)
    rows[known] = old.rows[at[known]]
    kept = np.isin(old.pair_keys, keys[rows != PENDING])
    return DetailTable(keys, codes, rows, old.pair_keys[kept], old.pair_values[kept]).to_arrays(
        kind
    )


def sum_mention_codes(count: int, owners: Ints, elements: Ints, chunks: Ints) -> Ints:
    """Hash the mentions (element key, chunk key) of each of `count` owners, in any order."""
    mixed = elements.astype(np.uint64) * _MIX[0] + chunks.astype(np.uint64) * _MIX[1]
    mixed ^= mixed >> np.uint64(29)
    mixed *= _MIX[2]
    mixed ^= mixed >> np.uint64(32)
    total = np.zeros(count, np.uint64)
    np.add.at(total, owners, mixed)
    return total.view(np.int64)


def use_detailed_rows(arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the facts' vector rows, with those of keywords and description where there are any."""
    details = load_details(arrays, "fact")
    rows = np.array(arrays["fact_rows"])
    has_row = details.rows >= 0
    at, known = _find(arrays["fact_keys"], details.keys[has_row])
    rows[at[known]] = details.rows[has_row][known]
    return rows


def _find(keys: Ints, wanted: Ints) -> tuple[Ints, Mask]:
    """Index of each wanted key in the ascending keys, and whether it is there."""
    if not len(keys):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return at, keys[at] == wanted
