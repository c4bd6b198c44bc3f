"""Homonym detection: mentions of one name with different classes and different contexts."""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr

Ints = NDArray[np.int64]

_SAME_SENSE_OVERLAP = (
    0.1  # of the smaller context: from this overlap on two uses of a name are one sense
)
_COMMON_SHARE = 0.02  # an entity in a larger share of the chunks carries no context


def find_senses(
    entities: Ints, chunks: Ints, classes: Ints, company: Csr, common: NDArray[np.bool_]
) -> Ints:
    """Return for each mention the class of its sense; 0 for a name's main sense.

    Columns are the entity, chunk and class (0 unknown) of each mention; `company` maps a chunk to
    all its entities. Names with a single class have one sense.
    """
    found = np.zeros(len(entities), np.int64)
    known = np.flatnonzero(classes > 0)
    pairs = np.unique(np.stack([entities[known], classes[known]]), axis=1)
    names, met = np.unique(pairs[0], return_counts=True)
    for name in names[met > 1].tolist():
        mine = _mention_rows(entities, name)
        found[mine] = _split_name(name, chunks[mine], classes[mine], company, common)
    return found


def _mention_rows(entities: Ints, name: int) -> Ints:
    """Return the mentions of one name; mentions are sorted by entity."""
    return np.arange(np.searchsorted(entities, name), np.searchsorted(entities, name, "right"))


def _split_name(
    name: int, chunks: Ints, classes: Ints, members: Csr, common: NDArray[np.bool_]
) -> Ints:
    """Return the sense of each mention of one name."""
    contexts: dict[int, set[int]] = defaultdict(set)
    chunks_of: dict[int, set[int]] = defaultdict(set)
    for chunk, kind in zip(chunks.tolist(), classes.tolist(), strict=True):
        contexts[kind] |= {int(e) for e in members.row(chunk) if e != name and not common[e]}
        chunks_of[kind].add(chunk)
    kinds = sorted(kind for kind in contexts if kind)
    sense_of = {kind: kind for kind in kinds}
    for at, one in enumerate(kinds):
        for other in kinds[at + 1 :]:
            if _is_same_sense(contexts[one], contexts[other]) or chunks_of[one] & chunks_of[other]:
                old, new = sense_of[other], sense_of[one]
                sense_of = {kind: new if h == old else h for kind, h in sense_of.items()}
    if len(set(sense_of.values())) < 2:
        return np.zeros(len(chunks), np.int64)
    main = _find_main_sense(classes, sense_of)
    sense = {kind: 0 if h == main else h for kind, h in sense_of.items()}
    return np.array(
        [
            sense[kind]
            if kind
            else sense[_find_closest_class(chunk, name, contexts, sense_of, main, members)]
            for chunk, kind in zip(chunks.tolist(), classes.tolist(), strict=True)
        ],
        np.int64,
    )


def _is_same_sense(one: set[int], other: set[int]) -> bool:
    """Tell whether two contexts overlap enough; an empty context always does."""
    smaller = min(len(one), len(other))
    return not smaller or len(one & other) >= _SAME_SENSE_OVERLAP * smaller


def _find_main_sense(classes: Ints, sense_of: Mapping[int, int]) -> int:
    """Return the sense with the most mentions; of equals the first class."""
    counts: dict[int, int] = defaultdict(int)
    for kind in classes.tolist():
        if kind:
            counts[sense_of[kind]] += 1
    return min(counts, key=lambda kind: (-counts[kind], kind))


def _find_closest_class(
    chunk: int,
    name: int,
    contexts: Mapping[int, set[int]],
    senses: Mapping[int, int],
    main: int,
    members: Csr,
) -> int:
    """Return the class whose context overlaps most with a mention without a class."""
    context = {int(e) for e in members.row(chunk) if e != name}
    return max(sorted(senses), key=lambda k: (len(context & contexts[k]), senses[k] == main, -k))


def find_common_entities(company: Csr, entities: int) -> NDArray[np.bool_]:
    """Mark entities that occur in too many chunks to carry context."""
    met = np.bincount(company.columns, minlength=entities)
    found: NDArray[np.bool_] = met > max(20, _COMMON_SHARE * len(company))
    return found
