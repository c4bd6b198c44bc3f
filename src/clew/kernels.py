"""Compiled loops over vectors, sign bits and graphs, used where there are any.

`hatch_build.py` compiles `kernels.c` when Clew is installed on a machine with a C compiler. Without
the library numpy does the same in several passes, with equal results but for the last digits of
sums. The library knows nothing of Python: one serves all versions.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.kernel_calls import (
    FLOAT,
    NUMBER,
    OTHERS,
    POINTER,
    WALKS,
    Estimates,
    HopCall,
    Led,
    Likeness,
    PushCall,
    Settling,
    Triples,
    WalkCall,
    place_of,
)

Floats = NDArray[np.float32]
LIBRARY = Path(__file__).with_name("libkernels.so")
_DOT_PRODUCTS: dict[np.dtype[Any], str] = {
    np.dtype(np.float16): "clew_dot_halves",
    np.dtype(np.float32): "clew_dot_floats",
}
_NO_SUCH_ROW, _NO_MEMORY = 2, -2


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
class LedEdges:
    """What one hop finds."""

    edges: ComparedEdges
    """Those that lead from one chunk to another."""
    mentions: tuple[NDArray[np.int64], ...]
    """The entity, fact and chunk of each mention."""
    facts: NDArray[np.int64]
    """Facts that were asked for, perhaps several times."""
    chunks: NDArray[np.int64]
    """Chunks whose fit was not known before."""


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
    hopped: Callable[..., int]
    between: Callable[..., int]
    renumbered: Callable[..., int]
    paired: Callable[..., None]
    raised: Callable[..., int]
    settled: Callable[..., int]
    highest: Callable[..., None]
    voted: Callable[..., None]
    sampled: Callable[..., int]
    counted: Callable[..., int]
    bisected: Callable[..., None]

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
        given = place_of(blocks), number, words, rows, place_of(asked), len(asked)
        self.count(*given, place_of(out), apart)

    def sample_rows(
        self,
        words: tuple[NDArray[np.uint64], NDArray[np.uint64]],
        rows: NDArray[np.int64],
        factor: int,
        shift: int,
    ) -> NDArray[np.int64]:
        """Positions of the rows whose first word, times a factor, has no bit left of `shift`.

        `words` are blocks × words × rows, and words × rows of those that follow.
        """
        (blocks, tail), found = words, np.empty(len(rows), np.int64)
        rows, (number, width, size) = np.ascontiguousarray(rows, np.int64), blocks.shape
        total = number * size + tail.shape[1]
        held = place_of(blocks), number, width, size, place_of(tail), total, place_of(rows)
        marks = np.empty(total, np.uint8)
        count = self.sampled(*held, len(rows), factor, shift, place_of(marks), place_of(found))
        if count < 0:
            raise IndexError(f"rows outside of {total}")
        return found[:count]

    def count_each(
        self, distances: NDArray[np.uint16], positions: NDArray[np.int64] | None, kinds: int
    ) -> NDArray[np.int64]:
        """How many of each below `kinds` there are of the distances at positions, or of all."""
        counts, total = np.zeros(kinds, np.int64), len(distances)
        count = total if positions is None else len(positions)
        where = None if positions is None else place_of(positions)
        if self.counted(place_of(distances), total, where, count, kinds, place_of(counts)):
            raise IndexError(f"positions outside of {total} distances, or distances above {kinds}")
        return counts

    def bisect(
        self,
        column: NDArray[np.integer],
        wanted: NDArray[np.int64],
        within: tuple[NDArray[np.int64], NDArray[np.int64]],
        *,
        right: bool,
    ) -> NDArray[np.int64]:
        """Where numbers are in an ascending column, or would be, each between two places of it."""
        first, last = (np.array(edge, np.int64) for edge in within)
        if len(first) and not 0 <= first.min() <= last.max() <= len(column):
            raise IndexError(f"places outside of {len(column)}")
        held = place_of(column), column.strides[0], column.itemsize, place_of(wanted)
        self.bisected(*held, len(wanted), right, place_of(first), place_of(last))
        return first

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
        given = place_of(matrix), matrix.shape[1], place_of(rows), len(rows), place_of(vectors)
        self.dot[matrix.dtype](*given, len(vectors), place_of(found))
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
        begin = place_of(found)
        out = Triples(begin, begin + 8 * room, begin + 16 * room, room, 0)
        arrays = [np.ascontiguousarray(one, np.int64) for one in given if one is not None]
        places = [part for one in arrays for part in (place_of(one), len(one))]
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
        starts = (NUMBER * (len(ends) + 1))(0, *ends)
        found = np.empty(len(rows), np.float32)
        if (
            starts[len(ends)] != len(rows)
            or len(vectors) != len(ends)
            or vectors.shape[1] != matrix.shape[1]
        ):
            raise IndexError("the sizes of vectors differ")
        shape = matrix.dtype == np.float16, *matrix.shape
        groups = place_of(rows), starts, len(ends)
        state = self.scores(place_of(matrix), *shape, *groups, place_of(vectors), place_of(found))
        if state == _NO_SUCH_ROW:
            raise IndexError(f"rows outside of a matrix of {matrix.shape}")
        return None if state else found

    def find_top(self, scores: Floats, keys: NDArray[np.int64], k: int) -> NDArray[np.int64]:
        """Positions of the `k` highest of more than so many scores, best first; ties go by key."""
        found = np.empty(k, np.int64)
        self.top(place_of(scores), place_of(keys), len(scores), k, place_of(found))
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
        count = self.unknown(place_of(known), place_of(positions), len(positions), place_of(found))
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
        self.sums(place_of(words), *words.shape, place_of(halves), place_of(found))
        return found

    def take_distances(
        self, held: NDArray[np.uint16], rows: NDArray[np.int64], none: int
    ) -> NDArray[np.uint16]:
        """The distances of some rows; `none` for rows below 0."""
        rows, found = np.ascontiguousarray(rows, np.int64), np.empty(len(rows), np.uint16)
        if len(rows) and not len(held) and rows.max() >= 0:
            raise IndexError("there are no distances")
        if self.taken(place_of(held), len(held), place_of(rows), len(rows), none, place_of(found)):
            raise IndexError(f"rows outside of {len(held)} distances")
        return found

    def renumber(self, places: NDArray[np.int32], numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """The new numbers of elements, by their old ones."""
        places, numbers = np.ascontiguousarray(places), np.ascontiguousarray(numbers)
        found = np.empty(len(numbers), np.int32)
        given = place_of(places), len(places), place_of(numbers), len(numbers)
        if self.renumbered(*given, place_of(found)):
            raise IndexError(f"numbers outside of {len(places)}")
        return found

    def find_within(
        self, distances: NDArray[np.uint16], limit: int, room: int
    ) -> NDArray[np.int64]:
        """Positions of distances up to a limit, ascending; there should be `room` for them."""
        while True:
            found = np.empty(room, np.int64)
            count = self.within(place_of(distances), len(distances), limit, room, place_of(found))
            if count <= room:
                return found[:count]
            room = count

    def find_between(
        self, distances: NDArray[np.uint16], bounds: tuple[int, int], most: int
    ) -> NDArray[np.int64]:
        """The first positions of distances within bounds, of which the lower is above 0."""
        found = np.empty(most, np.int64)
        count = self.between(place_of(distances), len(distances), *bounds, most, place_of(found))
        return found[:count]

    def look_up(self, distances: NDArray[np.uint16], table: Floats) -> Floats:
        """The entry of a table for each distance; it has to have one for all there may be."""
        found = np.empty(len(distances), np.float32)
        self.looked_up(place_of(distances), len(distances), place_of(table), place_of(found))
        return found

    def choose_likely(
        self,
        passages: tuple[NDArray[np.int64], int],
        codes: NDArray[np.int64],
        words: Sequence[Floats],
        scale: float,
        fits: Floats,
        most: int,
    ) -> tuple[NDArray[np.int64], Floats]:
        """Of passages, without one, the best by words and fit, and what words add to them.

        `codes`, which order equals, `words` and `fits` have a number for every passage there is.
        """
        at, origin = passages
        at, codes = np.ascontiguousarray(at, np.int64), np.ascontiguousarray(codes, np.int64)
        keys = np.empty(len(at), np.int64)
        kept, chosen = np.empty(len(at), np.int64), np.empty(min(most, len(at)), np.int64)
        said, sums = np.empty(len(at), np.float32), np.empty(len(at), np.float32)
        fits = np.ascontiguousarray(fits, np.float32)
        scores = (POINTER * len(words))(*map(place_of, words))
        asked = place_of(at), len(at), origin, place_of(codes)
        given = scores, len(words), scale, place_of(fits), most
        rooms = place_of(kept), place_of(keys), place_of(said), place_of(sums), place_of(chosen)
        count = self.likely(*asked, *given, *rooms)
        return kept[chosen[:count]], said[chosen[:count]]

    def sum_totals(
        self, reached: Floats, best: Floats, plain: tuple[Floats, Floats], shares: Sequence[float]
    ) -> Floats:
        """What reached each element, or the best if higher, and shares of it and of two others."""
        found, given = np.empty(len(reached), np.float32), (reached, best, *plain)
        if any(_is_other(one, found) for one in given):
            raise ValueError("scores of other elements, or of another kind")
        factors = (FLOAT * 3)(*shares)
        self.totals(*map(place_of, given), factors, len(reached), place_of(found))
        return found

    def mix_evenly(self, one: Floats, other: Floats, ranges: Sequence[float]) -> Floats:
        """Mean of two scores, of which one begins at `ranges[0]`; the other two are their spans."""
        found = np.empty(len(one), np.float32)
        if _is_other(one, found) or _is_other(other, found):
            raise ValueError("scores of other elements, or of another kind")
        self.mixed(place_of(one), place_of(other), (FLOAT * 3)(*ranges), len(one), place_of(found))
        return found

    def take_hop(self, graph: WalkCall, call: HopCall) -> LedEdges | int:
        """Take one hop; or the room that it takes, if there is less in `call`: nothing is done."""
        columns, numbers = Led.make_tables(call.room)
        out = Led.prepare(columns, numbers)
        room = self.hopped(graph, call, out)
        if room > 0:
            return room
        if room == _NO_MEMORY:
            raise MemoryError(f"no room for {call.room} edges")
        if room < 0:
            raise IndexError("a hop goes by facts outside of those there are, or lost rows")
        edges, mentions = slice(out.count), slice(out.mentions)
        return LedEdges(
            ComparedEdges(*columns[:2, edges], *numbers[:, edges]),
            (columns[2, mentions], columns[3, mentions], columns[4, mentions]),
            columns[5, : out.asked],
            columns[6, : out.fresh],
        )

    def find_pairs(
        self,
        vectors: tuple[NDArray[np.floating], NDArray[np.int64]],
        mentions: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]],
        words: NDArray[np.int32],
        bounds: tuple[Sequence[float], Sequence[int]],
        crowd: int,
    ) -> NDArray[np.bool_]:
        """Which pairs of passages may be copies of each other; see kernels_copies.h.

        `vectors` are a matrix and their rows; `mentions` their positions and, for all passages,
        the starts of rows and the entities; `words` are how many each passage has.
        """
        matrix, rows = vectors
        count, width = len(rows), matrix.shape[1]
        if count and (rows.min() < 0 or rows.max() >= len(matrix)):
            raise IndexError(f"rows outside of a matrix of {matrix.shape}")
        held = [np.ascontiguousarray(one) for one in (matrix, rows, *mentions, words)]
        given = Likeness(*map(place_of, held), width, count, *bounds[0], *bounds[1])
        marks, room = np.empty((count, count), np.bool_), np.empty(width + count, np.float32)
        counts = np.empty(count, np.int64)
        self.paired(ctypes.byref(given), crowd, *map(place_of, (room, counts, marks)))
        return marks

    def prepare_settling(
        self,
        vectors: tuple[NDArray[np.floating], NDArray[np.int64], Floats],
        known: NDArray[np.bool_],
        values: Floats,
    ) -> Settling:
        """Compares elements which are not known, and returns the scores of all.

        `vectors` are a matrix, the row of each element, and what it is compared with.
        """
        matrix, rows, vector = vectors[0], *map(np.ascontiguousarray, vectors[1:])
        if not len(rows) == len(known) == len(values) or matrix.shape[1] != len(vector):
            raise ValueError("the sizes of vectors or scores differ")
        held = matrix, rows, vector, known, values
        sizes = matrix.dtype == np.float16, *matrix.shape, len(rows)
        return Settling(self.settled, self.raised, Estimates(*map(place_of, held), *sizes), held)

    def keep_highest(
        self,
        edges: ComparedEdges,
        shares: Floats,
        decay: float,
        out: tuple[Floats, NDArray[np.int32]],
    ) -> None:
        """Fill in the highest weight that reaches each chunk, of equals the last, and by what."""
        given = edges.through, edges.to, edges.carried, np.ascontiguousarray(shares, np.float32)
        places = [place_of(one) for one in given]
        self.highest(*places, len(shares), decay, place_of(out[0]), place_of(out[1]))

    def add_votes(
        self,
        rows: tuple[NDArray[np.int64], NDArray[np.int32]],
        given: tuple[NDArray[np.int64], NDArray[np.float64]],
        sums: NDArray[np.float64],
    ) -> None:
        """Add votes of elements to those in their rows; `rows` are starts and columns."""
        held = [np.ascontiguousarray(one) for one in (*rows, *given)]
        self.voted(*map(place_of, held), len(given[0]), place_of(sums))

    def can_dot(self, matrix: NDArray[np.floating]) -> bool:
        """Whether the rows of a matrix lie one after the other, in numbers of a known kind."""
        return matrix.flags.c_contiguous and matrix.dtype in self.dot


def _is_other(array: NDArray[Any], like: NDArray[Any]) -> bool:
    """Whether an array differs in kind or size, or does not lie in one piece."""
    return array.dtype != like.dtype or len(array) != len(like) or not array.flags.c_contiguous


def load_kernels(library: Path) -> Kernels | None:
    """Load the library; None where it was not compiled, for another machine, or from older code."""
    try:
        functions = ctypes.CDLL(str(library))
        pushes = [getattr(functions, f"clew_push_{name}") for name in ("seeds", "chosen", "levels")]
        walks = {name: getattr(functions, f"clew_{name}") for name in WALKS}
        others = [getattr(functions, f"clew_{name}") for name in OTHERS]
        count = functions.clew_count_signs
    except (OSError, AttributeError):
        return None
    for push, given in zip(pushes, ((POINTER, POINTER, NUMBER), (NUMBER,), ()), strict=True):
        push.argtypes, push.restype = (ctypes.POINTER(PushCall), *given), None
    pushes[2].restype = NUMBER
    for name, walk in walks.items():
        walk.argtypes = (ctypes.POINTER(WalkCall), *WALKS[name], ctypes.POINTER(Triples))
        walk.restype = None
    for other, (given, result) in zip(others, OTHERS.values(), strict=True):
        other.argtypes, other.restype = given, result
    count.argtypes = (POINTER, *(NUMBER,) * 3, POINTER, NUMBER, POINTER, NUMBER)
    count.restype = None
    found = {kind: getattr(functions, name) for kind, name in _DOT_PRODUCTS.items()}
    for dot in found.values():
        dot.argtypes = (POINTER, NUMBER, POINTER, NUMBER, POINTER, NUMBER, POINTER)
        dot.restype = None
    return Kernels(count, found, pushes[0], pushes[1], pushes[2], walks, *others)


COMPILED = load_kernels(LIBRARY)
"""None: numpy does it."""
