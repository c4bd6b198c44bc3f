"""Counts relation types and neighbours of entities, and their overlap with communities."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, Doubles, Floats, Ints, build_csr, expand_ranges

# A fact with more participants links them to its first one only: all pairs
# would be quadratic in its length.
_MAX_CLIQUE = 16
_MAX_DENSE_CELLS = 1 << 22  # cells up to which a community × relation table is stored densely
_ROLE_COUNT = 4  # subject, member, head, tail


@dataclass(frozen=True, slots=True)
class EntityRelations:
    """By entity: the count of each incident relation type, and the neighbouring entities."""

    relations: Csr
    neighbours: Csr

    def __len__(self) -> int:
        """Return the number of entities."""
        return len(self.relations)

    def select(self, rows: Ints) -> "EntityRelations":
        """Return the rows of some entities; columns keep their meaning."""
        return EntityRelations(self.relations.select(rows), self.neighbours.select(rows))


def count_relations(
    members: Csr, entities: int, relation: NDArray[np.integer] | None = None
) -> EntityRelations:
    """Count relations from facts: `members` maps facts to entities, `relation` -1 is none."""
    facts = members.row_numbers()
    pairs = np.unique(facts * max(entities, 1) + members.columns)
    fact, entity = pairs // max(entities, 1), pairs % max(entities, 1)
    kinds = np.full(len(members), -1) if relation is None else np.asarray(relation)
    known = kinds[fact] >= 0
    counts = build_csr(entities, entity[known], kinds[fact[known]]).sum_duplicates()
    one, other, _ = build_entity_links(members)
    near = build_csr(entities, np.concatenate([one, other]), np.concatenate([other, one]))
    near = near.sum_duplicates()
    return EntityRelations(counts, Csr(near.starts, near.columns, np.ones_like(near.weights)))


def build_entity_links(members: Csr) -> tuple[Ints, Ints, Floats]:
    """Return edges between entities, lower first, weighted by shared facts; no loops.

    All pairs of a fact's participants, or from the first to the rest when there are many.
    """
    sizes, begin, end = members.degrees(), members.starts[:-1], members.starts[1:]
    edges = np.arange(len(members.columns))
    fact = np.repeat(np.arange(len(members)), sizes)
    stop = np.where(sizes[fact] <= _MAX_CLIQUE, end[fact], edges + 1)
    which, at = expand_ranges(edges + 1, stop)
    far = np.flatnonzero((sizes[fact] > _MAX_CLIQUE) & (edges > begin[fact]))
    one = members.columns[np.concatenate([which, begin[fact[far]]])].astype(np.int64)
    other = members.columns[np.concatenate([at, far])].astype(np.int64)
    low, high = np.minimum(one, other), np.maximum(one, other)
    width = int(high.max()) + 1 if len(high) else 1
    keys, times = np.unique((low * width + high)[low != high], return_counts=True)
    return keys // width, keys % width, times.astype(np.float32)


@dataclass(frozen=True, slots=True)
class CommunityCounts:
    """Multiset of each community: sorted (community, column) keys and their counts."""

    keys: Ints
    counts: Doubles
    lengths: Doubles  # squared, per community
    width: int
    profile: str
    table: Doubles | None  # the same counts by key, when that is small

    def lookup(self, communities: Ints, columns: NDArray[np.integer]) -> Doubles:
        """Return the count of each column in the paired community."""
        # A column beyond the width is in no community; it must not be read as the next row's.
        known = columns < self.width
        wanted = communities * self.width + np.where(known, columns, 0)
        if self.table is not None:
            return np.where(known, self.table[wanted], 0.0)
        if not len(self.keys):
            return np.zeros(len(wanted))
        at = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(known & (self.keys[at] == wanted), self.counts[at], 0.0)


def count_by_community(ties: Csr, labels: Ints, communities: int, profile: str) -> CommunityCounts:
    """Aggregate the members' multisets as `total`, `mean` or `set`."""
    label = np.repeat(labels, ties.degrees())
    width = int(ties.columns.max()) + 1 if len(ties.columns) else 1
    keys, place = np.unique(label * width + ties.columns, return_inverse=True)
    counts = _sum_by_index(place, ties.weights, len(keys))
    community = keys // width
    if profile == "set":
        counts = np.ones(len(keys))
    elif profile == "mean":
        counts = counts / np.bincount(labels, minlength=communities)[community]
    lengths = _sum_by_index(community, counts**2, communities)
    table = None
    if communities * width <= min(_MAX_DENSE_CELLS, 64 * (len(keys) + 64)):
        table = np.zeros(communities * width)
        table[keys] = counts
    return CommunityCounts(keys, counts, lengths, width, profile, table)


def jaccard_overlap(ties: Csr, rows: Ints, held: CommunityCounts, communities: Ints) -> Doubles:
    """Return the Jaccard overlap of each row's multiset with a community's; 0 if both empty.

    For multisets the intersection is the minimum and the union the maximum, both measured by
    Euclidean norm (eq. 6); sets are measured by size.
    """
    which, at = ties.edges_of(rows)
    own = ties.weights[at].astype(np.float64)
    theirs = held.lookup(communities[which], ties.columns[at])
    shared = np.bincount(which, weights=np.minimum(own, theirs) ** 2, minlength=len(rows))
    more = np.maximum(own, theirs) ** 2 - theirs**2
    either = np.bincount(which, weights=more, minlength=len(rows)) + held.lengths[communities]
    share = np.divide(shared, either, out=np.zeros(len(rows)), where=either > 0)
    return share if held.profile == "set" else np.sqrt(share)


def _sum_by_index(at: Ints, weights: NDArray[np.floating], count: int) -> Doubles:
    """Sum by index in float64; `bincount` alone gives integers when there is nothing to add."""
    return np.bincount(at, weights=weights, minlength=count).astype(np.float64)


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
    rows = [ties.relations.row_numbers(), extra[0]]
    columns = [ties.relations.columns.astype(np.int64), extra[1] + relation_count]
    weights = np.concatenate([ties.relations.weights, extra[2]])
    profile = build_csr(entities, np.concatenate(rows), np.concatenate(columns), weights)
    return EntityRelations(profile.sum_duplicates(), ties.neighbours)


def _count_role_types(
    members: Csr, facts: Ints, types: NDArray[np.integer]
) -> tuple[Ints, Ints, Floats]:
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
