"""What an entity's facts say of it: their relation types, or what stands in for them."""

import numpy as np
from numpy.typing import NDArray

from clew.graph.cluster.ties import Ties, counted, ties_of
from clew.graph.csr import Csr, csr, spread

_ROLES = 4  # subject, member, head, tail


def incident(
    members: Csr, entities: int, relation: NDArray[np.integer], types: NDArray[np.integer]
) -> Ties:
    """Ties of every entity; `members` leads from facts to entities, its weights are their roles.

    A fact with a relation counts as that relation for all its participants (Youtu-GraphRAG eq. 6).
    A sentence has none: there, an entity's "relations" are its own role paired with the type of
    each other participant, once for each. "Subject beside a date" is to sentences what "born in"
    is to triples: it tells people from places without looking at any word.
    """
    ties = ties_of(members, entities, relation)
    spoken = np.flatnonzero(relation < 0) if len(relation) else np.zeros(0, np.int64)
    if not len(spoken):
        return ties
    named = int(relation.max(initial=-1)) + 1
    extra = _beside(members, spoken, types)
    both = [np.repeat(np.arange(entities), ties.relations.degrees()), extra[0]]
    columns = [ties.relations.columns.astype(np.int64), extra[1] + named]
    weights = np.concatenate([ties.relations.weights, extra[2]])
    profile = counted(csr(entities, np.concatenate(both), np.concatenate(columns), weights))
    return Ties(profile, ties.neighbours)


def _beside(
    members: Csr, facts: NDArray[np.int64], types: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """(entity, role and type of what is beside it, how many of these) over some facts."""
    kinds = int(types.max(initial=-1)) + 2  # the last for entities without a type
    which, edge = members.edges_of(facts)
    entity = members.columns[edge].astype(np.int64)
    role = np.clip(members.weights[edge], 0, _ROLES - 1).astype(np.int64)
    kind = np.where(types[entity] >= 0, types[entity], kinds - 1).astype(np.int64)
    # How many of each type a fact has: one row a distinct (fact, type).
    keys, times = np.unique(which * kinds + kind, return_counts=True)
    first = np.searchsorted(keys, which * kinds)
    last = np.searchsorted(keys, (which + 1) * kinds)
    at, met = spread(first, last)
    there = keys[met] % kinds
    # Nothing stands beside itself.
    count = times[met] - (there == kind[at])
    some = count > 0
    column = role[at] * kinds + there
    return entity[at][some], column[some], count[some].astype(np.float32)
