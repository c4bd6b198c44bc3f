"""One name, several things: mentions of different classes that keep different company."""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr

Ints = NDArray[np.int64]

_SHARED = 0.1  # of the smaller company: from here on two uses of a name are one thing
_COMMON = 0.02  # an entity met in more of the chunks than this is company for everybody


def senses(
    entities: Ints, chunks: Ints, classes: Ints, company: Csr, common: NDArray[np.bool_]
) -> Ints:
    """For each mention the class of the sense it belongs to; 0 for a name's main sense.

    Columns say who is mentioned where and as what class (0 unknown); `company` leads from a chunk
    to all its entities. Names met in one class only have one sense.
    """
    found = np.zeros(len(entities), np.int64)
    known = np.flatnonzero(classes > 0)
    pairs = np.unique(np.stack([entities[known], classes[known]]), axis=1)
    names, met = np.unique(pairs[0], return_counts=True)
    for name in names[met > 1].tolist():
        mine = _rows(entities, name)
        found[mine] = _split(name, chunks[mine], classes[mine], company, common)
    return found


def _rows(entities: Ints, name: int) -> Ints:
    """Mentions are sorted by entity."""
    return np.arange(np.searchsorted(entities, name), np.searchsorted(entities, name, "right"))


def _split(name: int, chunks: Ints, classes: Ints, company: Csr, common: NDArray[np.bool_]) -> Ints:
    """The sense of each mention of one name."""
    kept: dict[int, set[int]] = defaultdict(set)
    places: dict[int, set[int]] = defaultdict(set)
    for chunk, kind in zip(chunks.tolist(), classes.tolist(), strict=True):
        kept[kind] |= {int(e) for e in company.row(chunk) if e != name and not common[e]}
        places[kind].add(chunk)
    kinds = sorted(kind for kind in kept if kind)
    home = {kind: kind for kind in kinds}
    for at, one in enumerate(kinds):
        for other in kinds[at + 1 :]:
            if _together(kept[one], kept[other]) or places[one] & places[other]:
                old, new = home[other], home[one]
                home = {kind: new if h == old else h for kind, h in home.items()}
    if len(set(home.values())) < 2:
        return np.zeros(len(chunks), np.int64)
    main = _main(classes, home)
    sense = {kind: 0 if h == main else h for kind, h in home.items()}
    return np.array(
        [
            sense[kind] if kind else sense[_closest(chunk, name, kept, home, main, company)]
            for chunk, kind in zip(chunks.tolist(), classes.tolist(), strict=True)
        ],
        np.int64,
    )


def _together(one: set[int], other: set[int]) -> bool:
    """Whether two uses keep the same company; without any company nothing tells them apart."""
    smaller = min(len(one), len(other))
    return not smaller or len(one & other) >= _SHARED * smaller


def _main(classes: Ints, home: Mapping[int, int]) -> int:
    """The sense with the most mentions; of equals the first class."""
    counts: dict[int, int] = defaultdict(int)
    for kind in classes.tolist():
        if kind:
            counts[home[kind]] += 1
    return min(counts, key=lambda kind: (-counts[kind], kind))


def _closest(
    chunk: int,
    name: int,
    kept: Mapping[int, set[int]],
    home: Mapping[int, int],
    main: int,
    company: Csr,
) -> int:
    """The class whose company a mention without a class shares most."""
    mine = {int(e) for e in company.row(chunk) if e != name}
    return max(sorted(home), key=lambda kind: (len(mine & kept[kind]), home[kind] == main, -kind))


def common_company(company: Csr, entities: int) -> NDArray[np.bool_]:
    """Entities met in so many chunks that they tell nothing."""
    met = np.bincount(company.columns, minlength=entities)
    found: NDArray[np.bool_] = met > max(20, _COMMON * len(company))
    return found
