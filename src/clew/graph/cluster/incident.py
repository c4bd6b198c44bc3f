"""Relation counts of entities, with role and type pairs for facts without a relation."""

import numpy as np
from numpy.typing import NDArray

from clew.graph.cluster.ties import EntityRelations, count_relations, sum_duplicates
from clew.graph.csr import Csr, build_csr, expand_ranges

_ROLE_COUNT = 4  # subject, member, head, tail


def count_relations_with_fallback(
    members: Csr, entities: int, relation: NDArray[np.integer], types: NDArray[np.integer]
) -> EntityRelations:
    """Count relations by entity; `members` maps facts to entities, its weights are the roles.

    A fact with a relation counts as that relation for all its participants (Youtu-GraphRAG eq. 6).
    A sentence has none: there, an entity's "relations" are its own role paired with the type of
    each other participant, once for each. "Subject next to a date" is to sentences what "born in"
    is to triples: it separates people from places without reading any word.
    """
    ties = count_relations(members, entities, relation)
    untyped = np.flatnonzero(relation < 0) if len(relation) else np.zeros(0, np.int64)
    if not len(untyped):
        return ties
    relation_count = int(relation.max(initial=-1)) + 1
    extra = _count_role_types(members, untyped, types)
    rows = [np.repeat(np.arange(entities), ties.relations.degrees()), extra[0]]
    columns = [ties.relations.columns.astype(np.int64), extra[1] + relation_count]
    weights = np.concatenate([ties.relations.weights, extra[2]])
    profile = sum_duplicates(
        build_csr(entities, np.concatenate(rows), np.concatenate(columns), weights)
    )
    return EntityRelations(profile, ties.neighbours)


def _count_role_types(
    members: Csr, facts: NDArray[np.int64], types: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Return (entity, code of own role and other's type, count) over some facts."""
    kinds = int(types.max(initial=-1)) + 2  # the last for entities without a type
    which, edge = members.edges_of(facts)
    entity = members.columns[edge].astype(np.int64)
    role = np.clip(members.weights[edge], 0, _ROLE_COUNT - 1).astype(np.int64)
    kind = np.where(types[entity] >= 0, types[entity], kinds - 1).astype(np.int64)
    # Participants of each type per fact: one row per distinct (fact, type).
    keys, times = np.unique(which * kinds + kind, return_counts=True)
    first = np.searchsorted(keys, which * kinds)
    last = np.searchsorted(keys, (which + 1) * kinds)
    at, entry = expand_ranges(first, last)
    other_type = keys[entry] % kinds
    # A participant does not count itself.
    count = times[entry] - (other_type == kind[at])
    positive = count > 0
    column = role[at] * kinds + other_type
    return entity[at][positive], column[positive], count[positive].astype(np.float32)
