"""Reconstructs the paths of a walk from the record of each hop."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from clew.types import Path
from clew.view import View


@dataclass(frozen=True, slots=True)
class WalkHop:
    """One hop: the weight that reached each chunk, and the mention (-1: none) it came through."""

    weight: NDArray[np.float32]
    via: NDArray[np.int64]
    entity: NDArray[np.int64]
    fact: NDArray[np.int64]
    origin: NDArray[np.int64]
    """Per mention: what is mentioned, the fact that mentions it, the chunk the fact is in."""


def trace_paths(view: View, trail: Sequence[WalkHop], chunks: Sequence[int]) -> tuple[Path, ...]:
    """Return how the walk reached these chunks, strongest first; start chunks have no path."""
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], Path] = {}
    for chunk in chunks:
        for last in range(len(trail)):
            path = _trace_back(view, trail[: last + 1], chunk)
            if path is not None:
                key = (path.entities, path.facts)
                found[key] = max(path, found.get(key, path), key=lambda one: one.score)
    return tuple(sorted(found.values(), key=lambda path: -path.score))


def _trace_back(view: View, trail: Sequence[WalkHop], chunk: int) -> Path | None:
    score = float(trail[-1].weight[chunk])
    entities: list[int] = []
    facts: list[int] = []
    at = chunk
    for hop in reversed(trail):
        mention = int(hop.via[at])
        if mention < 0:
            return None
        if int(hop.fact[mention]) < 0:
            return None  # found in the text: no fact to show
        entities.append(int(hop.entity[mention]))
        facts.append(int(hop.fact[mention]))
        at = int(hop.origin[mention])
    entities.reverse()
    facts.reverse()
    begin = _find_start(view, at, facts[0], entities[0])
    if begin is None or len({begin, *entities}) <= len(entities):
        return None  # a walk that returns to an entity explains nothing
    if not all(map(partial(_fact_joins, view), facts[1:], entities, entities[1:])):
        return None
    return Path((begin, *entities), tuple(facts), score, "walk")


def _find_start(view: View, chunk: int, fact: int, end: int) -> int | None:
    """Return the start entity: what the first chunk is about, if the fact joins it to its end.

    A passage of a graph holds the lines of several heads: there the fact's own head is taken.
    """
    main = _main_entity(view, chunk)
    if main is not None and _fact_joins(view, fact, main, end):
        return main
    others = (one for one in view.links("fact_entity").row(fact).tolist() if one != end)
    return next(others, None) if view.relations[fact] >= 0 else None


def _fact_joins(view: View, fact: int, one: int, other: int) -> bool:
    """Tell whether a fact joins both; a sentence without a relation counts for its passage."""
    if view.relations[fact] < 0:
        return True
    return {one, other} <= set(view.links("fact_entity").row(fact).tolist())


def _main_entity(view: View, chunk: int) -> int | None:
    """Return the entity that a chunk is most about."""
    links = view.links("chunk_entity")
    part = slice(int(links.starts[chunk]), int(links.starts[chunk + 1]))
    about = view.arrays["chunk_entity_about"][part]
    if not len(about) or float(about.max()) <= 0:
        return None
    return int(links.columns[part][int(about.argmax())])
