"""What the compiled functions are given: where arrays are, and structures of them."""

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NUMBER, _POINTER = ctypes.c_int64, ctypes.c_void_p
WALK_ROWS = (
    *("chunk_fact", "fact_entity", "chunk_entity", "entity_chunk", "entity_fact", "fact_chunk"),
    "owners",
)
_PUSH_ARRAYS = (
    *("starts", "columns", "weights", "strengths", "slots", "nodes", "passed", "waiting"),
    *("first", "degree", "strength", "chosen", "mass"),
)

_HEAD_BYTES = object.__basicsize__  # of an array, before the place of its numbers
_read_place = ctypes.c_void_p.from_address


def _ask_place(array: NDArray[Any]) -> int:
    """Where numpy says that the numbers of an array are: a dictionary is made for that."""
    found: int = array.__array_interface__["data"][0]
    return found


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


place = _choose_way()
"""Where the numbers of an array are; they have to lie one after the other."""


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
        places = {name: None if one is None else place(one) for name, one in arrays.items()}
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
        return cls(*(_Rows(*map(place, one)) for one in rows), *map(place, entities))


class Triples(ctypes.Structure):
    """Columns that are filled in; see `triples` in kernels_walk.h."""

    _fields_ = (
        *((name, _POINTER) for name in ("first", "second", "third")),
        *((name, _NUMBER) for name in ("room", "count")),
    )


class EstimatesCall(ctypes.Structure):
    """What is compared when it is asked for; see `estimates` in kernels_choose.h."""

    _fields_ = (
        *((name, _POINTER) for name in ("matrix", "rows", "vector", "known", "values")),
        *((name, _NUMBER) for name in ("is_half", "total", "width", "elements")),
    )
