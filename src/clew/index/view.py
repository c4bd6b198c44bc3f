"""One generation of a knowledge base as arrays, for retrieval.

Elements are positions 0…n-1; `keys` maps a position to the store's key. Everything is
memory-mapped and shared by all questions of a generation.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from clew import kernels
from clew.errors import StoreError, VectorsDeferred
from clew.graph.csr import Csr, Floats, Ints, Mask, csr_to_arrays
from clew.graph.name_matching import NameTokenIndex, build_token_index
from clew.graph.page_owners import name_rarities
from clew.graph.pagerank import RankedGraph, measure_strengths, prepare_graph
from clew.graph.walk_edges import INCIDENCES, WalkColumns, WalkEdges, prepare_edges
from clew.index.cosines import Matrix, RowCosines, score_rows, score_rows_together, widen_rows
from clew.index.details import load_details
from clew.index.estimates import (
    Estimates,
    compare_nearest,
    estimate_cosines,
    estimate_together,
)
from clew.index.nearest import (
    MIN_ESTIMATED,
    RowIndex,
    count_candidates,
    is_indexed,
    select_best,
)
from clew.store.array_files import keep_arrays, load_kept
from clew.store.bm25 import Bm25Index, build_index, index_from_arrays
from clew.store.protocol import DETAIL_ROWS, Array, Arrays, Store
from clew.text.names import FORM, name_key
from clew.text.unicode import hash64
from clew.types import Kind

NameRows = tuple[NDArray[np.int32], Floats, NDArray[np.integer]]
"""Entities with a name, their weights, and what kind of name it is."""
_NO_MASK, _NOTHING = np.zeros(0, np.bool_), np.zeros(0, np.int64)
MIN_KEPT = 5000  # chunks; graphs over fewer are made in no time


class StoredMatrices(Mapping[Kind, Matrix]):
    """The vectors of one generation, each kind mapped and checked when it is first used."""

    _kinds: tuple[Kind, ...] = get_args(Kind)

    def __init__(
        self, store: Store, embedder: str, arrays: Arrays, deferred: Collection[str] = ()
    ) -> None:
        self._store, self._embedder, self._arrays = store, embedder, arrays
        self._deferred = deferred
        self._read: dict[Kind, Matrix] = {}

    def __getitem__(self, kind: Kind) -> Matrix:
        """Return the vectors of a kind; raise if a row that the arrays refer to is lost."""
        if kind not in self._kinds:
            raise KeyError(kind)
        if kind in self._deferred and len(self._arrays.get(f"{kind}_keys", ())):
            raise VectorsDeferred(kind)
        if kind not in self._read:
            table = self._store.vectors(self._embedder, kind)
            held = DETAIL_ROWS.get(kind, f"{kind}_rows")
            rows: Ints = self._arrays.get(held, np.zeros(0, np.int64))
            if lost := len(table.find_lost_rows(rows)):
                raise StoreError(f"{lost} {kind} vectors are lost; `clew reembed` computes them")
            # Not as a memmap: numpy is slower with it, which small selections feel.
            self._read[kind] = np.asarray(table.matrix())
        return self._read[kind]

    def __iter__(self) -> Iterator[Kind]:
        """Iterate over the kinds."""
        return iter(self._kinds)

    def __len__(self) -> int:
        """Number of kinds."""
        return len(self._kinds)


@dataclass(frozen=True)
class View:
    """Arrays and vectors of one generation."""

    arrays: Arrays
    matrices: Mapping[Kind, Matrix]
    generation: int = 0
    memo: dict[str, Any] = field(default_factory=dict, compare=False)
    """Cache for what steps derive from this generation."""
    indexes: Mapping[Kind, RowIndex] = field(default_factory=dict, compare=False)
    """Indexes over the vectors of many elements; without one all are compared."""

    def keys(self, kind: Kind) -> Ints:
        """The store's key of each position."""
        found = self.arrays.get(f"{kind}_keys")
        return _NOTHING if found is None else found

    def codes(self, kind: Kind) -> Ints:
        """A number of each element that depends on what it says: orders equals in every build."""
        found = self.arrays.get(f"{kind}_codes")
        return self.keys(kind) if found is None else found

    def count(self, kind: Kind) -> int:
        """Number of elements of a kind."""
        return len(self.keys(kind))

    def cosines(self, kind: Kind, vector: Floats, at: NDArray[np.integer] | None = None) -> Floats:
        """Cosine of every element (or those at `at`) with `vector`; -1 where there is no vector."""
        if kind == "description":
            return self._description_cosines(vector, at)
        rows = self._rows(kind)
        matrix = self.matrices.get(kind)
        if at is not None:
            rows = rows[at]
        if matrix is None or not len(matrix):
            return np.full(len(rows), -1, np.float32)
        return score_rows(matrix, rows, vector)

    def cosines_with(self, kind: Kind, vectors: Sequence[Floats]) -> Sequence[Floats]:
        """For each vector its cosines with every element, as `cosines`."""
        matrix, compiled = self.matrices.get(kind), kernels.COMPILED
        if kind == "description" or matrix is None or not len(matrix) or compiled is None:
            return [self.cosines(kind, vector) for vector in vectors]
        if not compiled.can_dot(matrix):
            return [self.cosines(kind, vector) for vector in vectors]
        return [*score_rows_together(compiled, matrix, self._rows(kind), np.stack(vectors))]

    def compare(self, kind: Kind, asked: Sequence[tuple[Floats, Ints]]) -> list[Floats]:
        """For each vector its cosines with the elements at some positions."""
        matrix, compiled = self.matrices.get(kind), kernels.COMPILED
        if compiled is not None and len(asked) > 1 and kind != "description" and matrix is not None:
            if len(matrix) and compiled.can_dot(matrix):
                rows = self._rows(kind)[np.concatenate([at for _, at in asked])]
                ends = np.cumsum([len(at) for _, at in asked])
                vectors = np.stack([vector for vector, _ in asked])
                together = compiled.score_groups(matrix, rows, ends.tolist(), vectors)
                if together is not None:
                    return np.split(together, ends[:-1])
        return [self.cosines(kind, vector, at) for vector, at in asked]

    def estimates(
        self, kind: Kind, vector: Floats, most: int, *, others: bool = True
    ) -> Estimates | None:
        """Cosine of very many elements, exact for about `most` of the nearest; None for fewer.

        Without `others` the rest is not estimated, which takes less time.
        """
        if not self.is_estimated(kind):
            return None
        rows = self._rows(kind)
        matrix = self.matrices.get(kind)  # vectors that are still to be made are asked for here
        if matrix is None or not len(matrix):
            return None
        compare = RowCosines(matrix, rows, vector)
        estimate = estimate_cosines if others else compare_nearest
        return estimate(self.indexes[kind], rows, vector, most, compare)

    def estimates_with(
        self, kind: Kind, vectors: Sequence[Floats], most: int
    ) -> Sequence[Estimates | None]:
        """For each vector its estimates of all elements."""
        rows, matrix = self._rows(kind), self.matrices.get(kind)
        if not self.is_estimated(kind) or matrix is None or not len(matrix):
            return [None for _ in vectors]
        compare = [RowCosines(matrix, rows, vector) for vector in vectors]
        return estimate_together(self.indexes[kind], rows, np.stack(vectors), most, compare)

    def is_estimated(self, kind: Kind) -> bool:
        """Whether there are so many elements of a kind that not all are compared exactly."""
        return len(self._rows(kind)) >= MIN_ESTIMATED and kind in self.indexes

    def nearest(self, kind: Kind, vector: Floats, k: int) -> tuple[Ints, Floats]:
        """The `k` elements with the highest cosines, best first, and these; ties go by key.

        Of many elements an index proposes candidates, so that one in a hundred may be missed.
        Elements without a vector are left out. Attributes are numbered as in `attributes`.
        """
        keys = self._tie_keys(kind)
        at = self._find_candidates(kind, vector, k)
        scores = self.cosines(kind, vector, at)
        best = select_best(scores, keys if at is None else keys[at], k)
        return (best if at is None else at[best]), scores[best]

    def _tie_keys(self, kind: Kind) -> Ints:
        """The key by which elements with equal cosines are ordered."""
        if kind == "attribute":
            return self.codes("entity")[self.attributes[0]]
        return self.codes("entity" if kind == "description" else kind)

    def _find_candidates(self, kind: Kind, vector: Floats, k: int) -> Ints | None:
        """Positions among which the nearest are, or None for all."""
        if kind != "description":
            return self._propose(kind, self._rows(kind), vector, k)
        named, described = self._rows("entity"), self._description_rows
        if described is None or not is_indexed(len(named), k):
            return self._propose("entity", named, vector, k)
        # Entities with a description are compared by it, the others by their names.
        by_name = self._propose("entity", np.where(described < 0, named, -1), vector, k)
        own = np.flatnonzero(described >= 0)
        at = self._propose("description", described[own], vector, k)
        return None if by_name is None else np.union1d(by_name, own if at is None else own[at])

    def _propose(self, kind: Kind, rows: Ints, vector: Floats, k: int) -> Ints | None:
        if not is_indexed(len(rows), k) or kind not in self.indexes:
            return None
        self.matrices.get(kind)  # vectors that are still to be made are asked for here
        return self.indexes[kind].nearest_positions(vector, rows, count_candidates(k))

    def _rows(self, kind: Kind) -> Ints:
        """The vector row of each element, -1 for none."""
        if kind == "attribute":
            return self.attributes[1]
        found = self.arrays.get(f"{kind}_rows")
        return _NOTHING if found is None else found

    def _description_cosines(self, vector: Floats, at: NDArray[np.integer] | None) -> Floats:
        """Cosine of every entity's name and description; of its name if it has no description."""
        scores = self.cosines("entity", vector, at)
        matrix, rows = self.matrices.get("description"), self._description_rows
        if rows is None or matrix is None or not len(matrix):
            return scores
        rows = rows if at is None else rows[at]
        described = np.flatnonzero(rows >= 0)
        scores[described] = score_rows(matrix, rows[described], vector)
        return scores

    @cached_property
    def _description_rows(self) -> Ints | None:
        """Vector row of each entity's description, -1 for none; None if no entity has one."""
        details = load_details(self.arrays, "entity")
        if not len(details.keys):
            return None
        rows = np.full(self.count("entity"), -1, np.int64)
        rows[np.searchsorted(self.keys("entity"), details.keys)] = details.rows
        return rows

    @cached_property
    def attributes(self) -> tuple[Ints, Ints]:
        """The entity of each attribute, and the attribute's vector row."""
        details = load_details(self.arrays, "entity")
        return np.searchsorted(self.keys("entity"), details.pair_keys), details.pair_values

    def find_by_keyword(self, words: Sequence[str]) -> Ints:
        """The facts with one of these keywords, ascending."""
        details = load_details(self.arrays, "fact")
        wanted = np.array([hash64(name_key(word)) for word in words], np.uint64).view(np.int64)
        keys = np.unique(details.pair_keys[np.isin(details.pair_values, wanted)])
        return np.searchsorted(self.keys("fact"), keys)

    def vectors(self, kind: Kind, positions: Ints) -> Floats:
        """The vectors of some elements; zeros for those without one."""
        rows = self.arrays[f"{kind}_rows"][positions]
        matrix = self.matrices[kind]
        if not len(matrix):  # for example a graph whose facts were not embedded
            width = max((other.shape[1] for other in self.matrices.values()), default=0)
            return np.zeros((len(rows), width), np.float32)
        found = widen_rows(matrix, np.maximum(rows, 0))
        found[rows < 0] = 0
        return found

    def find_alike(
        self, positions: Ints, bounds: tuple[Sequence[float], Sequence[int]], crowd: int
    ) -> Mask | None:
        """Which pairs of passages are near each other and mention much the same.

        `bounds` are those of `Likeness` in `kernel_calls`; None where this is not compiled.
        """
        matrix, compiled = self.matrices["chunk"], kernels.COMPILED
        rows, words = self.arrays["chunk_rows"][positions], self.bm25.lengths
        if compiled is None or matrix.dtype != np.float16 or not compiled.can_dot(matrix):
            return None
        if not len(matrix) or words.dtype != np.int32 or (rows < 0).any():
            return None
        links = self.links("chunk_entity")
        mentions = np.asarray(positions, np.int64), links.starts, links.columns
        return compiled.find_pairs((matrix, rows), mentions, words, bounds, crowd)

    def vector_marks(self, kind: Kind, positions: Ints) -> Ints:
        """The first bytes of the vectors of some elements that have one: others if it changes."""
        matrix = self.matrices[kind]
        width = min(matrix.shape[1], 8 // matrix.itemsize)
        marks = np.zeros((len(positions), 8 // matrix.itemsize), matrix.dtype)
        marks[:, :width] = matrix[self.arrays[f"{kind}_rows"][positions], :width]
        found: Ints = marks.view(np.int64).ravel()
        return found

    def links(self, name: str) -> Csr:
        """One incidence: `chunk_entity` maps a chunk to its entities, and so on."""
        return self._links[name]

    @cached_property
    def _links(self) -> dict[str, Csr]:
        empty = np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
        if "chunk_keys" not in self.arrays:
            return {name: Csr(*empty) for name in INCIDENCES}
        return {name: self._load_csr(name) for name in INCIDENCES}

    @cached_property
    def walk_edges(self) -> WalkEdges:
        """The edges between chunks, facts and entities that a walk follows."""
        literal = self.arrays.get("entity_literal", _NO_MASK)
        about = self.arrays.get("chunk_entity_about", np.zeros(0, np.float32))
        return prepare_edges(WalkColumns(self._links, literal, self.first_namesake, about))

    def _load_csr(self, name: str) -> Csr:
        return Csr(*(self.arrays[f"{name}_{part}"] for part in ("starts", "columns", "weights")))

    def derive_once(self, name: str, make: Callable[[], dict[str, Array]]) -> Arrays:
        """Arrays that `make` derives from this generation; those of many chunks are kept."""
        large = self.count("chunk") >= MIN_KEPT
        kept = load_kept(self.arrays, name) if large else None
        if kept is None:
            kept = made = make()
            if large:
                keep_arrays(self.arrays, name, made)
        return kept

    def ranked_graph(self, name: str, build: Callable[[], Csr]) -> RankedGraph:
        """A graph for PageRank, made once per generation by `build`; a large one is kept."""
        if name not in self.memo:
            parts = self.derive_once(name, lambda: csr_to_arrays(build()))
            links = Csr(*(parts[part] for part in Csr.__slots__))
            # Apart from the edges, which earlier versions read, too.
            prepared = self.derive_once(f"strengths of {name}", lambda: measure_strengths(links))
            self.memo[name] = prepare_graph(links, prepared)
        found: RankedGraph = self.memo[name]
        return found

    def keep_once(self, name: str, make: Callable[[], Floats]) -> Floats:
        """Numbers that `make` computes once for this view."""
        if name not in self.memo:
            self.memo[name] = make()
        found: Floats = self.memo[name]
        return found

    def measure_once(self, name: str, measure: Callable[[], float]) -> float:
        """A number that is measured once per generation by `measure`; that of many is kept."""
        if name not in self.memo:
            kept = self.derive_once(name, lambda: {"number": np.array([measure()])})
            self.memo[name] = float(kept["number"][0])
        found: float = self.memo[name]
        return found

    @property
    def relations(self) -> NDArray[np.int32]:
        """The relation of each fact as a small integer, -1 for none."""
        return self.arrays.get("fact_relation", np.zeros(0, np.int32))

    @cached_property
    def has_relations(self) -> bool:
        """Whether any fact has a relation: a model made it, or it was imported."""
        return bool(len(self.relations)) and int(self.relations.max()) >= 0

    @property
    def types(self) -> NDArray[np.int32]:
        """The type of each entity as a small integer, -1 for none."""
        return self.arrays.get("entity_type", np.zeros(0, np.int32))

    @property
    def small_codes(self) -> NDArray[np.int8]:
        """How the name of each entity is written; see `text/small_names.py`."""
        return self.arrays.get("entity_small", np.zeros(self.count("entity"), np.int8))

    @cached_property
    def words(self) -> NameTokenIndex:
        """Name tokens of entities that own a chunk; `word_entities` maps them to entities."""
        if "word_codes" not in self.arrays:
            return build_token_index(0, np.zeros(0, np.int64), np.zeros(0, np.int64))
        return NameTokenIndex(
            self.arrays["word_codes"], self._load_csr("word_names"), self._load_csr("word_tokens")
        )

    @cached_property
    def first_namesake(self) -> Ints:
        """For each entity the first one whose name has the same loose key."""
        return self.arrays.get("entity_same", np.zeros(0, np.int32)).astype(np.int64)

    @cached_property
    def rarity(self) -> Floats:
        """Rarity of an entity's name, from 0 (everywhere) to 1 (in at most three chunks)."""
        return self.derive_once("rarity of names", self._measure_rarity)["rarity"]

    def _measure_rarity(self) -> dict[str, Array]:
        counts, first = self.links("entity_chunk").degrees(), self.first_namesake
        counts = np.bincount(first, weights=counts, minlength=len(counts))[first]
        return {"rarity": name_rarities(counts, self.count("chunk"))}

    @cached_property
    def bm25(self) -> Bm25Index:
        """The BM25 index."""
        return index_from_arrays(self.arrays) or build_index(np.zeros(0, np.int64), {})

    def find_by_own_name(self, names: Sequence[str]) -> list[NDArray[np.int32]]:
        """For each name the entities whose own name has the same loose key."""
        wanted = np.array([hash64(name_key(name)) for name in names], np.uint64)
        return [entities for entities, _, _ in self.find_by_name_hash(wanted, forms=False)]

    def find_by_name_or_alias(self, name: str) -> NDArray[np.int32]:
        """The entities with this name, or else those with this alias."""
        own = self.find_by_own_name([name])[0]
        if len(own):
            return own
        found, weights, parts = self.find_by_name_hash(
            np.array([hash64(name_key(name))], np.uint64)
        )[0]
        return found[(weights >= 1) & ~parts]

    def find_by_name_hash(
        self, hashes: NDArray[np.uint64], *, forms: bool = True
    ) -> list[tuple[NDArray[np.int32], Floats, Mask]]:
        """For each hashed key its entities, their weights, and whether only a part matches."""
        found = []
        for owners, weights, kinds in self.look_up_names(hashes):
            if not len(owners):  # most phrases of a question
                found.append((owners, weights, _NO_MASK))
                continue
            # Own names come first.
            keep = slice(None) if forms else slice(int(np.count_nonzero(weights > 1)))
            found.append((owners[keep], np.minimum(weights[keep], 1), kinds[keep] != FORM))
        return found

    def look_up_names(self, hashes: NDArray[np.uint64]) -> list[NameRows]:
        """For each hashed key its entities, their weights and kinds of name, own names first."""
        known: NDArray[np.uint64] = self.arrays.get("name_hashes", np.zeros(0, np.uint64))
        if not len(known):
            none = np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0, np.int8)
            return [none for _ in hashes]
        columns = [self.arrays[f"name_{part}"] for part in ("entities", "weights", "kinds")]
        first = np.searchsorted(known, hashes, "left")
        last = np.searchsorted(known, hashes, "right")
        none = columns[0][:0], columns[1][:0], columns[2][:0]
        return [
            (columns[0][a:b], columns[1][a:b], columns[2][a:b]) if a < b else none
            for a, b in zip(first.tolist(), last.tolist(), strict=True)
        ]
