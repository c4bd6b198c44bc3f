"""What compiled functions are given: structures of numbers, and where arrays are."""

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUMBER, POINTER, FLOAT = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float
WALK_ROWS = (
    *("chunk_fact", "fact_entity", "chunk_entity", "entity_chunk", "entity_fact", "fact_chunk"),
    "owners",
)
_PUSH_ARRAYS = (
    *("starts", "columns", "weights", "strengths", "slots", "nodes", "passed", "waiting"),
    *("first", "degree", "strength", "chosen", "mass"),
)


class PushCall(ctypes.Structure):
    """What the functions of a push are given; see `push_state` in kernels.c."""

    _fields_ = (
        *((name, POINTER) for name in _PUSH_ARRAYS),
        *((name, NUMBER) for name in ("base", "count", "used", "budget", "drained")),
        *((name, ctypes.c_double) for name in ("damping", "level", "dangling", "least", "factor")),
    )

    @classmethod
    def prepare(cls, arrays: Mapping[str, NDArray[Any] | None], **numbers: float) -> "PushCall":
        """Make one from arrays, which have to stay, and numbers."""
        places = {name: None if one is None else place_of(one) for name, one in arrays.items()}
        return cls(**places, **numbers)


class _Rows(ctypes.Structure):
    _fields_ = tuple((name, POINTER) for name in ("starts", "columns", "weights"))


class WalkCall(ctypes.Structure):
    """What the functions of a walk are given; see `walk_graph` in kernels.c."""

    _fields_ = (
        *((name, _Rows) for name in WALK_ROWS),
        *((name, POINTER) for name in ("literal", "namesake", "about")),
    )

    @classmethod
    def prepare(
        cls, rows: Sequence[Sequence[NDArray[Any]]], entities: Sequence[NDArray[Any]]
    ) -> "WalkCall":
        """Make one from arrays, which have to stay."""
        return cls(*(_Rows(*map(place_of, one)) for one in rows), *map(place_of, entities))


class Triples(ctypes.Structure):
    """Columns of edges that are filled in; see `triples` in kernels_walk.h."""

    _fields_ = (
        *((name, POINTER) for name in ("first", "second", "third")),
        *((name, NUMBER) for name in ("room", "count")),
    )


_LED_COLUMNS = "through", "to", "entity", "fact", "origin", "facts", "passages"
_LED_NUMBERS = "behind", "carried"


class HopCall(ctypes.Structure):
    """What a hop of a walk goes by; see `hop` in kernels_hop.h."""

    _fields_ = (
        *((name, POINTER) for name in ("sources", "known", "row", "entity", "stating")),
        *((name, POINTER) for name in ("weights", "claims", "beside", "inward", "whole")),
        *((name, POINTER) for name in ("facts", "fits", "settled")),
        *((name, POINTER) for name in ("fact_scores", "passage_scores")),
        *((name, NUMBER) for name in ("count", "knowns", "outward", "stated", "common", "room")),
        *((name, FLOAT) for name in ("claim", "sharpness", "fit", "unsaid")),
    )


class Led(ctypes.Structure):
    """The edges that lead on; see `led` in kernels_hop.h."""

    _fields_ = (
        *((name, POINTER) for name in (*_LED_COLUMNS, *_LED_NUMBERS)),
        *((name, NUMBER) for name in ("count", "mentions", "asked", "fresh")),
    )

    @classmethod
    def prepare(cls, columns: NDArray[np.int64], numbers: NDArray[np.float32]) -> "Led":
        """Make one from tables with a row for each column."""
        places = [
            place_of(table) + at * table.strides[0]
            for table in (columns, numbers)
            for at in range(len(table))
        ]
        return cls(*places, 0, 0, 0, 0)

    @staticmethod
    def make_tables(room: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Tables for so many edges."""
        return (
            np.empty((len(_LED_COLUMNS), room), np.int64),
            np.empty((len(_LED_NUMBERS), room), np.float32),
        )


class Estimates(ctypes.Structure):
    """Scores of elements, known or not; see `estimates` in kernels_choose.h."""

    _fields_ = (
        *((name, POINTER) for name in ("matrix", "rows", "vector", "known", "values")),
        *((name, NUMBER) for name in ("is_half", "total", "width", "elements")),
    )


class Likeness(ctypes.Structure):
    """Passages that may be copies of each other; see `likeness` in kernels_copies.h."""

    _fields_ = (
        *((name, POINTER) for name in ("matrix", "rows", "positions", "starts", "entities")),
        ("words", POINTER),
        *((name, NUMBER) for name in ("width", "count")),
        *((name, FLOAT) for name in ("near", "near_if_long", "same")),
        *((name, NUMBER) for name in ("long_words", "few", "others")),
    )


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


place_of = _choose_way()
"""Where the numbers of an array are; they have to lie one after the other."""


@dataclass(frozen=True, slots=True)
class Settling:
    """Compares elements with a vector when they are asked for: each once."""

    settled: Callable[..., int]
    raised: Callable[..., int]
    call: Estimates
    held: tuple[NDArray[Any], ...]
    """The arrays that `call` says the places of."""

    @property
    def place(self) -> int:
        """Where `call` is."""
        return ctypes.addressof(self.call)

    def __call__(self, positions: NDArray[np.int64], /) -> NDArray[np.float32]:
        """The scores of the elements at some positions."""
        wanted, count = np.ascontiguousarray(positions, np.int64), len(positions)
        room, found = np.empty((2, count), np.int64), np.empty(count, np.float32)
        given = ctypes.byref(self.call), place_of(wanted), count
        if self.settled(*given, place_of(room), place_of(found)):
            raise IndexError(f"positions outside of {self.call.elements} elements, or lost rows")
        return found

    def raise_to_best(
        self,
        rows: tuple[NDArray[np.int64], NDArray[np.int32]],
        passages: NDArray[np.int64],
        fit: NDArray[np.float32],
    ) -> NDArray[np.int64]:
        """Raise the fit of passages to that of their best element; return what was compared.

        `rows` are the starts and the columns of the elements of all passages.
        """
        starts, columns = rows
        most = int((starts[passages + 1] - starts[passages]).sum())
        room, scores = np.empty((2, most), np.int64), np.empty(most, np.float32)
        places = [place_of(starts), place_of(columns), place_of(passages)]
        given = ctypes.byref(self.call), *places, len(passages), place_of(room), most
        count = self.raised(*given, place_of(scores), place_of(fit))
        if count < 0:
            raise IndexError(f"positions outside of {self.call.elements} elements, or lost rows")
        return room[0, :count]


WALKS: dict[str, tuple[Any, ...]] = {  # their arguments between the graph and what is found
    "find_mentions": (POINTER, NUMBER, POINTER, NUMBER, FLOAT),
    "find_subjects": (POINTER, NUMBER, POINTER, NUMBER, FLOAT, NUMBER),
    "find_owners": (POINTER, NUMBER),
    "find_co_mentions": (POINTER, NUMBER, NUMBER),
}
OTHERS: dict[str, tuple[tuple[Any, ...], Any]] = {  # arguments and result
    "score_groups": (
        (POINTER, NUMBER, NUMBER, NUMBER, POINTER, POINTER, NUMBER, POINTER, POINTER),
        NUMBER,
    ),
    "find_top": ((POINTER, POINTER, NUMBER, NUMBER, POINTER), None),
    "take_unknown": ((POINTER, POINTER, NUMBER, POINTER), NUMBER),
    "sum_words": ((POINTER, NUMBER, NUMBER, POINTER, POINTER), None),
    "take_distances": (
        (POINTER, NUMBER, POINTER, NUMBER, ctypes.c_uint16, POINTER),
        NUMBER,
    ),
    "find_within": ((POINTER, NUMBER, ctypes.c_uint16, NUMBER, POINTER), NUMBER),
    "look_up": ((POINTER, NUMBER, POINTER, POINTER), None),
    "choose_likely": (
        (POINTER, NUMBER, NUMBER, POINTER, POINTER, NUMBER, FLOAT, POINTER, NUMBER)
        + (POINTER,) * 5,
        NUMBER,
    ),
    "sum_totals": ((POINTER,) * 5 + (NUMBER, POINTER), None),
    "mix_evenly": ((POINTER, POINTER, POINTER, NUMBER, POINTER), None),
    "take_hop": ((*map(ctypes.POINTER, (WalkCall, HopCall, Led)),), NUMBER),
    "find_between": (
        (POINTER, NUMBER, ctypes.c_uint16, ctypes.c_uint16, NUMBER, POINTER),
        NUMBER,
    ),
    "renumber": ((POINTER, NUMBER, POINTER, NUMBER, POINTER), NUMBER),
    "find_pairs": ((POINTER, NUMBER, POINTER, POINTER, POINTER), None),
    "raise_to_best": ((*(POINTER,) * 4, NUMBER, POINTER, NUMBER, POINTER, POINTER), NUMBER),
    "settle": ((POINTER, POINTER, NUMBER, POINTER, POINTER), NUMBER),
    "keep_highest": ((*(POINTER,) * 4, NUMBER, FLOAT, POINTER, POINTER), None),
    "add_votes": ((*(POINTER,) * 4, NUMBER, POINTER), None),
    "sample_rows": (
        (POINTER, *(NUMBER,) * 3, POINTER, NUMBER, POINTER, NUMBER, ctypes.c_uint64, NUMBER)
        + (POINTER, POINTER),
        NUMBER,
    ),
    "count_each": ((POINTER, NUMBER, POINTER, NUMBER, NUMBER, POINTER), NUMBER),
    "bisect": ((POINTER, NUMBER, NUMBER, POINTER, NUMBER, NUMBER, POINTER, POINTER), None),
}
