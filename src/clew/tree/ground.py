"""Input of tree building: entity vectors and relations, passage vectors."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clew.errors import ConfigError
from clew.graph.cluster.incident import count_relations_with_fallback
from clew.graph.cluster.ties import EntityRelations, build_entity_links
from clew.graph.cluster.vectors import Floats, Ints, add_rows, stream_entity_vectors
from clew.graph.csr import Csr, build_csr
from clew.types import Kind
from clew.view import View

_ENTITY_BLOCK = 1024  # entities per block of fact reads


@dataclass(frozen=True)
class TreeInput:
    """The entities of one generation, without literals such as dates and numbers."""

    view: View
    relation_vectors: Floats | None = None
    """A vector for each relation label, where facts have none of their own."""

    @cached_property
    def entities(self) -> Ints:
        """Positions of the entities in the view."""
        if not self.view.count("entity"):
            return np.zeros(0, np.int64)
        return np.flatnonzero(~self.view.arrays["entity_literal"])

    @cached_property
    def vectors(self) -> Floats:
        """Mean of each entity's fact vectors (Youtu-GraphRAG eq. 4); its name's without facts.

        Vectors of facts that were not embedded are composed from names and relation.
        """
        facts, names = self._find_matrix("fact"), self._find_matrix("entity")
        if facts is None and names is None:
            raise ConfigError(
                "this tree needs vectors and the knowledge base has none; set [embed] and run "
                "`clew reembed`, or take `--by leiden`"
            )
        read = self._read_embedded if facts is not None else self._compose_vectors
        width = (facts if facts is not None else names).shape[1]  # type: ignore[union-attr]
        members = self.view.links("fact_entity")
        means = stream_entity_vectors(members, self.view.count("entity"), width, read)[
            self.entities
        ]
        missing = ~means.any(axis=1)
        if missing.any() and names is not None:
            # Entities without facts would all have the zero vector.
            means[missing] = self.view.vectors("entity", self.entities[missing])
        return means

    def vectors_of(self, rows: Ints) -> Floats:
        """Return the vectors of some entities, reading only their facts."""
        if "vectors" in self.__dict__:
            return self.vectors[rows]
        links = self.view.links("entity_fact")
        parts = [
            self._mean_vectors(links, self.entities[rows[first : first + _ENTITY_BLOCK]])
            for first in range(0, len(rows), _ENTITY_BLOCK)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)

    def _mean_vectors(self, links: Csr, entities: Ints) -> Floats:
        which, edge = links.edges_of(entities)
        facts, at = np.unique(links.columns[edge].astype(np.int64), return_inverse=True)
        read = (
            self._read_embedded if self._find_matrix("fact") is not None else self._compose_vectors
        )
        vectors, known = read(facts)
        pairs = np.unique(which[known[at]] * max(len(facts), 1) + at[known[at]])
        owner, at = pairs // max(len(facts), 1), pairs % max(len(facts), 1)
        means = np.zeros((len(entities), vectors.shape[1]))
        add_rows(means, owner, vectors, at)
        counts = np.bincount(owner, minlength=len(entities))
        means /= np.maximum(counts, 1)[:, None]
        missing = counts == 0
        if missing.any() and self._find_matrix("entity") is not None:
            means[missing] = self.view.vectors("entity", entities[missing])
        return means.astype(np.float32)

    def _find_matrix(self, kind: Kind) -> Floats | None:
        matrix = self.view.matrices.get(kind)
        return matrix if matrix is not None and matrix.size else None

    def _read_embedded(self, facts: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        return self.view.vectors("fact", facts), self.view.arrays["fact_rows"][facts] >= 0

    def _compose_vectors(self, facts: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """Compose fact vectors: half the mean of the participants' names, half the relation."""
        members = self.view.links("fact_entity")
        which, edge = members.edges_of(facts)
        names = self.view.vectors("entity", members.columns[edge].astype(np.int64))
        known = np.bincount(which, weights=names.any(axis=1), minlength=len(facts))
        vectors = np.zeros((len(facts), names.shape[1]), np.float32)
        add_rows(vectors, which, names, np.arange(len(which)))
        vectors /= np.maximum(known, 1).astype(np.float32)[:, None]
        relation = self.view.relations[facts]
        if self.relation_vectors is not None and len(self.relation_vectors):
            vectors += np.where((relation >= 0)[:, None], self.relation_vectors[relation], 0)
            vectors /= 2
        return vectors, known > 0

    @cached_property
    def entity_relations(self) -> EntityRelations:
        """Relation counts and neighbours of the entities."""
        found = count_relations_with_fallback(
            self.view.links("fact_entity"),
            self.view.count("entity"),
            self.view.relations,
            self.view.types,
        )
        return found.select(self.entities)

    @cached_property
    def links(self) -> tuple[Ints, Ints, Floats]:
        """Entity pairs weighted by shared facts, numbered as in `entities`."""
        number = np.full(self.view.count("entity") + 1, -1)
        number[self.entities] = np.arange(len(self.entities))
        incidence = self.view.links("fact_entity")
        fact = np.repeat(np.arange(len(incidence)), incidence.degrees())
        entity = number[incidence.columns]
        pairs = np.unique(fact[entity >= 0] * max(len(self.entities), 1) + entity[entity >= 0])
        width = max(len(self.entities), 1)
        return build_entity_links(build_csr(len(incidence), pairs // width, pairs % width))

    @cached_property
    def passage_vectors(self) -> Floats:
        """Vectors of all chunks."""
        matrix = self.view.matrices.get("chunk")
        if matrix is None or not matrix.size:
            raise ConfigError(
                "this tree needs vectors and the knowledge base has none; set [embed] and run "
                "`clew reembed`"
            )
        return self.view.vectors("chunk", np.arange(self.view.count("chunk")))


def group_consecutive(documents: list[str], size: int) -> list[Csr]:
    """Build levels bottom-up: `size` consecutive items form one, until one is left (E²GraphRAG).

    A document of at least `size` passages shares its runs with no other; shorter ones are
    concatenated, so that a corpus of one-passage documents has a tree too.
    """
    if not documents:
        return []
    number = {name: at for at, name in enumerate(dict.fromkeys(documents))}
    document = np.array([number[name] for name in documents])
    order = np.argsort(document, kind="stable")
    sizes = np.bincount(document)
    long = sizes >= size
    # A stretch is one long document, or all short ones between two long ones.
    stretch = np.cumsum(long | np.append(False, long[:-1]))[document[order]]
    begin = np.flatnonzero(np.diff(stretch, prepend=-1))
    place = np.arange(len(order)) - np.repeat(begin, np.diff(np.append(begin, len(order))))
    group = np.cumsum(place % size == 0) - 1
    levels = [build_csr(int(group[-1]) + 1, group, order)]
    while len(levels[-1]) > 1:
        below = len(levels[-1])
        levels.append(build_csr(-(-below // size), np.arange(below) // size, np.arange(below)))
    return levels
