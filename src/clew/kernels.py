"""Compiled loops over vectors, sign bits and graphs, used where there are any.

`hatch_build.py` compiles `kernels.c` when Clew is installed on a machine with a C compiler. Without
the library numpy does the same in several passes, with equal results but for the last digits of
sums. The library knows nothing of Python: one serves all versions.
"""

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
LIBRARY = Path(__file__).with_name("libkernels.so")
_DOT_PRODUCTS: dict[np.dtype[Any], str] = {
    np.dtype(np.float16): "clew_dot_halves",
    np.dtype(np.float32): "clew_dot_floats",
}
_NUMBER, _POINTER = ctypes.c_int64, ctypes.c_void_p
WALK_ROWS = (
    *("chunk_fact", "fact_entity", "chunk_entity", "entity_chunk", "entity_fact", "fact_chunk"),
    "owners",
)
_FLOAT = ctypes.c_float
_WALKS: dict[str, tuple[Any, ...]] = {  # their arguments between the graph and what is found
    "find_mentions": (_POINTER, _NUMBER, _POINTER, _NUMBER, _FLOAT),
    "find_subjects": (_POINTER, _NUMBER, _POINTER, _NUMBER, _FLOAT, _NUMBER),
    "find_owners": (_POINTER, _NUMBER),
    "find_co_mentions": (_POINTER, _NUMBER, _NUMBER),
}
_OTHERS: dict[str, tuple[tuple[Any, ...], Any]] = {  # arguments and result
    "score_groups": (
        (_POINTER, _NUMBER, _NUMBER, _NUMBER, _POINTER, _POINTER, _NUMBER, _POINTER, _POINTER),
        _NUMBER,
    ),
    "find_top": ((_POINTER, _POINTER, _NUMBER, _NUMBER, _POINTER), None),
    "take_unknown": ((_POINTER, _POINTER, _NUMBER, _POINTER), _NUMBER),
    "sum_words": ((_POINTER, _NUMBER, _NUMBER, _POINTER, _POINTER), None),
    "take_distances": (
        (_POINTER, _NUMBER, _POINTER, _NUMBER, ctypes.c_uint16, _POINTER),
        _NUMBER,
    ),
    "find_within": ((_POINTER, _NUMBER, ctypes.c_uint16, _NUMBER, _POINTER), _NUMBER),
    "look_up": ((_POINTER, _NUMBER, _POINTER, _POINTER), None),
    "choose_likely": (
        (_POINTER, _NUMBER, _NUMBER, _POINTER, _NUMBER, _FLOAT, _POINTER, _NUMBER)
        + (_POINTER,) * 4,
        _NUMBER,
    ),
    "sum_totals": ((_POINTER,) * 5 + (_NUMBER, _POINTER), None),
    "mix_evenly": ((_POINTER, _POINTER, _POINTER, _NUMBER, _POINTER), None),
    "compare_edges": (
        (_POINTER, _NUMBER, *(_POINTER,) * 4, _NUMBER, *(_POINTER,) * 6),
        _NUMBER,
    ),
    "find_between": (
        (_POINTER, _NUMBER, ctypes.c_uint16, ctypes.c_uint16, _NUMBER, _POINTER),
        _NUMBER,
    ),
    "settle": ((_POINTER, _POINTER, _NUMBER, _POINTER, _POINTER), _NUMBER),
    "keep_highest": ((*(_POINTER,) * 4, _NUMBER, _FLOAT, _POINTER, _POINTER), None),
    "add_votes": ((*(_POINTER,) * 4, _NUMBER, _POINTER), None),
}
_NO_SUCH_ROW = 2
_PUSH_ARRAYS = (
    *("starts", "columns", "weights", "strengths", "slots", "nodes", "passed", "waiting"),
    *("first", "degree", "strength", "chosen", "mass"),
)


class PushCall(ctypes.Structure):
    """What the functions of a push are given; see `push_state` in kernels.c."""

    _fields_ = (
        *((name, _POINTER) for name in _PUSH_ARRAYS),
        *((name, _NUMBER) for name in ("base", "count", "used", "budget", "drained")),
        *((name, ctypes.c_double) for name in ("damping", "level", "dangling", "least", "factor")),
    )

    @classmethod
    def prepare(cls, arrays: Mapping[str, NDArray[Any] | None], **numbers: float) -> "PushCall":
        """Make one from arrays, which have to stay, and numbers."""
        places = {name: None if one is None else _place(one) for name, one in arrays.items()}
        return cls(**places, **numbers)


class _Rows(ctypes.Structure):
    _fields_ = tuple((name, _POINTER) for name in ("starts", "columns", "weights"))


class WalkCall(ctypes.Structure):
    """What the functions of a walk are given; see `walk_graph` in kernels.c."""

    _fields_ = (
        *((name, _Rows) for name in WALK_ROWS),
        *((name, _POINTER) for name in ("literal", "namesake", "about")),
    )

    @classmethod
    def prepare(
        cls, rows: Sequence[Sequence[NDArray[Any]]], entities: Sequence[NDArray[Any]]
    ) -> "WalkCall":
        """Make one from arrays, which have to stay."""
        return cls(*(_Rows(*map(_place, one)) for one in rows), *map(_place, entities))


class _Triples(ctypes.Structure):
    _fields_ = (
        *((name, _POINTER) for name in ("first", "second", "third")),
        *((name, _NUMBER) for name in ("room", "count")),
    )


class _Estimates(ctypes.Structure):
    _fields_ = (
        *((name, _POINTER) for name in ("matrix", "rows", "vector", "known", "values")),
        *((name, _NUMBER) for name in ("is_half", "total", "width", "elements")),
    )


@dataclass(frozen=True, slots=True)
class ComparedEdges:
    """Edges of a walk: the mention each goes through, its chunk, and what it is worth."""

    through: NDArray[np.int64]
    to: NDArray[np.int64]
    behind: Floats
    """How far its value is below that of the best edge out of the same chunk."""
    carried: Floats
    """The weight of the chunk that it comes from."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """The functions of the library, by what they are given."""

    count: Callable[..., None]
    dot: dict[np.dtype[Any], Callable[..., None]]
    push_seeds: Callable[..., None]
    push_chosen: Callable[..., None]
    push_levels: Callable[..., int]
    walks: dict[str, Callable[..., None]]
    scores: Callable[..., int]
    top: Callable[..., None]
    unknown: Callable[..., int]
    sums: Callable[..., None]
    taken: Callable[..., int]
    within: Callable[..., int]
    looked_up: Callable[..., None]
    likely: Callable[..., int]
    totals: Callable[..., None]
    mixed: Callable[..., None]
    edges: Callable[..., int]
    between: Callable[..., int]
    settled: Callable[..., int]
    highest: Callable[..., None]
    voted: Callable[..., None]

    def count_differing_bits(
        self, blocks: NDArray[np.uint64], asked: NDArray[np.uint64], out: NDArray[np.uint16]
    ) -> None:
        """Fill in how many bits of each row differ; `blocks` are blocks × words × rows.

        `asked` are vectors × words, `out` is vectors × rows: of two, a row is read once for both.
        """
        number, words, rows = blocks.shape
        if out.shape != (len(asked), number * rows) or asked.shape[1] != words:
            raise ValueError("the sizes of sign bits differ")
        asked, apart = np.ascontiguousarray(asked), out.strides[0] // out.itemsize
        given = _place(blocks), number, words, rows, _place(asked), len(asked)
        self.count(*given, _place(out), apart)

    def dot_rows(
        self, matrix: NDArray[np.floating], rows: NDArray[np.int64], vectors: Floats
    ) -> Floats:
        """Dot products of some rows of a matrix with some vectors: vectors × rows."""
        found = np.empty((len(vectors), len(rows)), np.float32)
        if not found.size:
            return found
        # The library checks nothing.
        if rows.min() < 0 or rows.max() >= len(matrix) or vectors.shape[1] != matrix.shape[1]:
            raise IndexError(f"rows outside of a matrix of {matrix.shape}")
        rows = np.ascontiguousarray(rows, np.int64)
        vectors = np.ascontiguousarray(vectors, np.float32)
        given = _place(matrix), matrix.shape[1], _place(rows), len(rows), _place(vectors)
        self.dot[matrix.dtype](*given, len(vectors), _place(found))
        return found

    def find_edges(
        self,
        what: str,
        graph: WalkCall,
        given: tuple[NDArray[np.int64], NDArray[np.int64] | None],
        numbers: Sequence[float],
        room: int,
    ) -> tuple[NDArray[np.int64], int]:
        """Three columns with up to `room` edges, and how many there are.

        `given` are rows, and for some functions the names that are left out.
        """
        found = np.empty((3, room), np.int64)
        begin = _place(found)
        out = _Triples(begin, begin + 8 * room, begin + 16 * room, room, 0)
        arrays = [np.ascontiguousarray(one, np.int64) for one in given if one is not None]
        places = [part for one in arrays for part in (_place(one), len(one))]
        self.walks[what](graph, *places, *numbers, out)
        return found, out.count

    def score_groups(
        self,
        matrix: NDArray[np.floating],
        rows: NDArray[np.int64],
        ends: Sequence[int],
        vectors: Floats,
    ) -> Floats | None:
        """Cosines of groups of rows, each with its own vector, to five digits.

        `ends` says where each group ends. None if a row is below 0.
        """
        rows = np.ascontiguousarray(rows, np.int64)
        vectors = np.ascontiguousarray(vectors, np.float32)
        starts = (_NUMBER * (len(ends) + 1))(0, *ends)
        found = np.empty(len(rows), np.float32)
        if (
            starts[len(ends)] != len(rows)
            or len(vectors) != len(ends)
            or vectors.shape[1] != matrix.shape[1]
        ):
            raise IndexError("the sizes of vectors differ")
        shape = matrix.dtype == np.float16, *matrix.shape
        groups = _place(rows), starts, len(ends)
        state = self.scores(_place(matrix), *shape, *groups, _place(vectors), _place(found))
        if state == _NO_SUCH_ROW:
            raise IndexError(f"rows outside of a matrix of {matrix.shape}")
        return None if state else found

    def find_top(self, scores: Floats, keys: NDArray[np.int64], k: int) -> NDArray[np.int64]:
        """Positions of the `k` highest of more than so many scores, best first; ties go by key."""
        found = np.empty(k, np.int64)
        self.top(_place(scores), _place(keys), len(scores), k, _place(found))
        return found

    def can_rank(self, scores: NDArray[Any], keys: NDArray[Any]) -> bool:
        """Whether scores and keys are of the kinds that are compared here."""
        return (
            scores.dtype == np.float32
            and keys.dtype == np.int64
            and scores.flags.c_contiguous
            and keys.flags.c_contiguous
            and len(scores) == len(keys)
        )

    def take_unknown(
        self, known: NDArray[np.bool_], positions: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The positions that are not known, each once; they are marked as known."""
        found = np.empty(len(positions), np.int64)
        count = self.unknown(_place(known), _place(positions), len(positions), _place(found))
        return found[:count]

    def sum_words(
        self, words: NDArray[np.uint32], weights: NDArray[np.uint64]
    ) -> NDArray[np.uint64]:
        """Sum of the words of each row, times their weights, modulo 2^64."""
        if not words.flags.c_contiguous or words.shape[1] != len(weights):
            raise ValueError("words have to lie one after the other, with a weight for each place")
        found = np.empty(len(words), np.uint64)
        halves = np.stack([weights & np.uint64(0xFFFFFFFF), weights >> np.uint64(32)])
        halves = halves.astype(np.uint32)
        self.sums(_place(words), *words.shape, _place(halves), _place(found))
        return found

    def take_distances(
        self, held: NDArray[np.uint16], rows: NDArray[np.int64], none: int
    ) -> NDArray[np.uint16]:
        """The distances of some rows; `none` for rows below 0."""
        rows, found = np.ascontiguousarray(rows, np.int64), np.empty(len(rows), np.uint16)
        if len(rows) and not len(held) and rows.max() >= 0:
            raise IndexError("there are no distances")
        if self.taken(_place(held), len(held), _place(rows), len(rows), none, _place(found)):
            raise IndexError(f"rows outside of {len(held)} distances")
        return found

    def find_within(
        self, distances: NDArray[np.uint16], limit: int, room: int
    ) -> NDArray[np.int64]:
        """Positions of distances up to a limit, ascending; there should be `room` for them."""
        while True:
            found = np.empty(room, np.int64)
            count = self.within(_place(distances), len(distances), limit, room, _place(found))
            if count <= room:
                return found[:count]
            room = count

    def find_between(
        self, distances: NDArray[np.uint16], bounds: tuple[int, int], most: int
    ) -> NDArray[np.int64]:
        """The first positions of distances within bounds, of which the lower is above 0."""
        found = np.empty(most, np.int64)
        count = self.between(_place(distances), len(distances), *bounds, most, _place(found))
        return found[:count]

    def look_up(self, distances: NDArray[np.uint16], table: Floats) -> Floats:
        """The entry of a table for each distance; it has to have one for all there may be."""
        found = np.empty(len(distances), np.float32)
        self.looked_up(_place(distances), len(distances), _place(table), _place(found))
        return found

    def choose_likely(
        self,
        passages: tuple[NDArray[np.int64], int],
        words: Sequence[Floats],
        scale: float,
        fits: Floats,
        most: int,
    ) -> tuple[NDArray[np.int64], Floats]:
        """Of passages, without one, the best by words and fit, and what words add to them.

        `words` and `fits` have a number for every passage there is.
        """
        at, origin = passages
        at = np.ascontiguousarray(at, np.int64)
        kept, chosen = np.empty(len(at), np.int64), np.empty(min(most, len(at)), np.int64)
        said, sums = np.empty(len(at), np.float32), np.empty(len(at), np.float32)
        fits = np.ascontiguousarray(fits, np.float32)
        scores = (_POINTER * len(words))(*map(_place, words))
        given = _place(at), len(at), origin, scores, len(words), scale, _place(fits), most
        count = self.likely(*given, _place(kept), _place(said), _place(sums), _place(chosen))
        return kept[chosen[:count]], said[chosen[:count]]

    def sum_totals(
        self, reached: Floats, best: Floats, plain: tuple[Floats, Floats], shares: Sequence[float]
    ) -> Floats:
        """What reached each element, or the best if higher, and shares of it and of two others."""
        found, given = np.empty(len(reached), np.float32), (reached, best, *plain)
        if any(_is_other(one, found) for one in given):
            raise ValueError("scores of other elements, or of another kind")
        factors = (_FLOAT * 3)(*shares)
        self.totals(*map(_place, given), factors, len(reached), _place(found))
        return found

    def mix_evenly(self, one: Floats, other: Floats, ranges: Sequence[float]) -> Floats:
        """Mean of two scores, of which one begins at `ranges[0]`; the other two are their spans."""
        found = np.empty(len(one), np.float32)
        if _is_other(one, found) or _is_other(other, found):
            raise ValueError("scores of other elements, or of another kind")
        self.mixed(_place(one), _place(other), (_FLOAT * 3)(*ranges), len(one), _place(found))
        return found

    def compare_edges(
        self,
        sources: tuple[NDArray[np.int64], NDArray[np.int64]],
        edges: tuple[NDArray[np.int64], NDArray[np.int64], Floats],
        weights: Floats,
    ) -> ComparedEdges:
        """Compare the edges out of each chunk, without those that lead back to it.

        `sources` are the chunks, and for each mention which of these it is in; `edges` are
        mentions, chunks and values; `weights` has a number for every chunk.
        """
        chunks, row, mention, target = (
            np.ascontiguousarray(one, np.int64) for one in (*sources, *edges[:2])
        )
        value = np.ascontiguousarray(edges[2], np.float32)
        if not len(mention) == len(target) == len(value):
            raise ValueError("the columns of edges differ in length")
        highest, count = np.empty(len(chunks), np.float32), len(value)
        columns = np.empty((2, count), np.int64), np.empty((2, count), np.float32)
        edge = _place(row), _place(mention), _place(target), _place(value), count
        given, out = (_place(chunks), len(chunks), *edge), (*columns[0], *columns[1])
        kept = self.edges(*given, _place(weights), _place(highest), *map(_place, out))
        return ComparedEdges(*(one[:kept] for one in out))

    def prepare_settling(
        self,
        vectors: tuple[NDArray[np.floating], NDArray[np.int64], Floats],
        known: NDArray[np.bool_],
        values: Floats,
    ) -> Callable[[NDArray[np.int64]], Floats]:
        """A function that compares elements which are not known, and returns the scores of all.

        `vectors` are a matrix, the row of each element, and what it is compared with.
        """
        matrix, rows, vector = vectors[0], *map(np.ascontiguousarray, vectors[1:])
        if not len(rows) == len(known) == len(values) or matrix.shape[1] != len(vector):
            raise ValueError("the sizes of vectors or scores differ")
        held = matrix, rows, vector, known, values
        sizes = matrix.dtype == np.float16, *matrix.shape, len(rows)
        given = ctypes.byref(_Estimates(*map(_place, held), *sizes))

        def settle(positions: NDArray[np.int64]) -> Floats:
            wanted, count = np.ascontiguousarray(positions, np.int64), len(positions)
            room, found = np.empty((2, count), np.int64), np.empty(count, np.float32)
            if self.settled(given, _place(wanted), count, _place(room), _place(found)):
                raise IndexError(f"positions outside of {len(held[1])} elements, or lost rows")
            return found

        return settle

    def keep_highest(
        self,
        edges: ComparedEdges,
        shares: Floats,
        decay: float,
        out: tuple[Floats, NDArray[np.int32]],
    ) -> None:
        """Fill in the highest weight that reaches each chunk, of equals the last, and by what."""
        given = edges.through, edges.to, edges.carried, np.ascontiguousarray(shares, np.float32)
        places = [_place(one) for one in given]
        self.highest(*places, len(shares), decay, _place(out[0]), _place(out[1]))

    def add_votes(
        self,
        rows: tuple[NDArray[np.int64], NDArray[np.int32]],
        given: tuple[NDArray[np.int64], NDArray[np.float64]],
        sums: NDArray[np.float64],
    ) -> None:
        """Add votes of elements to those in their rows; `rows` are starts and columns."""
        held = [np.ascontiguousarray(one) for one in (*rows, *given)]
        self.voted(*map(_place, held), len(given[0]), _place(sums))

    def can_dot(self, matrix: NDArray[np.floating]) -> bool:
        """Whether the rows of a matrix lie one after the other, in numbers of a known kind."""
        return matrix.flags.c_contiguous and matrix.dtype in self.dot


def _is_other(array: NDArray[Any], like: NDArray[Any]) -> bool:
    """Whether an array differs in kind or size, or does not lie in one piece."""
    return array.dtype != like.dtype or len(array) != len(like) or not array.flags.c_contiguous


_HEAD_BYTES = object.__basicsize__  # of an array, before the place of its numbers
_read_place = ctypes.c_void_p.from_address


def _ask_place(array: NDArray[Any]) -> int:
    """Where numpy says that the numbers of an array are: a dictionary is made for that."""
    place: int = array.__array_interface__["data"][0]
    return place


def _look_at_place(array: NDArray[Any]) -> int | None:
    """Where the numbers of an array are, read from the array itself: ten times as quick."""
    return _read_place(id(array) + _HEAD_BYTES).value


def _choose_way() -> Callable[[NDArray[Any]], Any]:
    """The quick way if arrays are as expected in this interpreter, which is tried."""
    if sys.implementation.name != "cpython":
        return _ask_place
    tried = np.arange(8), np.arange(8)[3:], np.zeros((2, 3), np.float32)[1]
    return _look_at_place if all(map(_is_found, tried)) else _ask_place


def _is_found(array: NDArray[Any]) -> bool:
    return _look_at_place(array) == _ask_place(array)


_place = _choose_way()
"""Where the numbers of an array are; they have to lie one after the other."""


def load_kernels(library: Path) -> Kernels | None:
    """Load the library; None where it was not compiled, for another machine, or from older code."""
    try:
        functions = ctypes.CDLL(str(library))
        pushes = [getattr(functions, f"clew_push_{name}") for name in ("seeds", "chosen", "levels")]
        walks = {name: getattr(functions, f"clew_{name}") for name in _WALKS}
        others = [getattr(functions, f"clew_{name}") for name in _OTHERS]
        count = functions.clew_count_signs
    except (OSError, AttributeError):
        return None
    for push, given in zip(pushes, ((_POINTER, _POINTER, _NUMBER), (_NUMBER,), ()), strict=True):
        push.argtypes, push.restype = (ctypes.POINTER(PushCall), *given), None
    pushes[2].restype = _NUMBER
    for name, walk in walks.items():
        walk.argtypes = (ctypes.POINTER(WalkCall), *_WALKS[name], ctypes.POINTER(_Triples))
        walk.restype = None
    for other, (given, result) in zip(others, _OTHERS.values(), strict=True):
        other.argtypes, other.restype = given, result
    count.argtypes = (_POINTER, *(_NUMBER,) * 3, _POINTER, _NUMBER, _POINTER, _NUMBER)
    count.restype = None
    found = {kind: getattr(functions, name) for kind, name in _DOT_PRODUCTS.items()}
    for dot in found.values():
        dot.argtypes = (_POINTER, _NUMBER, _POINTER, _NUMBER, _POINTER, _NUMBER, _POINTER)
        dot.restype = None
    return Kernels(count, found, pushes[0], pushes[1], pushes[2], walks, *others)


COMPILED = load_kernels(LIBRARY)
"""None: numpy does it."""
