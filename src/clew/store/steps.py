"""How things that are numbered are numbered anew: by steps, from which on a number is added.

A document that comes or goes moves all that come later by the same number.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.store.protocol import Array

Ints = NDArray[np.int64]
_RENUMBERED_ROWS = 1 << 14  # at once, so that they stay in the processor's cache


@dataclass(frozen=True, slots=True)
class Steps:
    """New numbers of things that were numbered: from each of `at` on, `add` is added."""

    count: int
    at: Ints  # begins with 0
    add: Ints

    def table(self) -> Ints:
        """The new number of each old one; any number for those that are gone."""
        found: Ints = np.arange(self.count)
        found += np.repeat(self.add, np.diff(np.append(self.at, self.count)))
        return found

    def renumber(self, values: Array, out: Array | None = None) -> Array:
        """Replace old numbers by new ones; negative ones mean none and stay."""
        if out is None and values.size < self.count >> 3:
            return self._renumber_few(values)
        found = np.empty_like(values) if out is None else out
        table = self.table().astype(values.dtype)
        for at in range(0, len(values), _RENUMBERED_ROWS):
            some = values[at : at + _RENUMBERED_ROWS]
            new = table[some]
            if values.dtype.kind == "i" and some.min() < 0:
                new = np.where(some < 0, some, new)
            found[at : at + _RENUMBERED_ROWS] = new
        return found

    def then(self, later: "Steps | None") -> "Steps":
        """These and later ones as one."""
        if later is None:
            return self
        if not later.count:
            return make_steps(np.zeros(self.count, np.int64))
        # What was numbered with one step and then with another changes where either does.
        ends = np.append(self.at[1:], self.count)
        first = np.searchsorted(later.at, self.at + self.add, "right")
        last = np.searchsorted(later.at, ends + self.add)
        last = np.maximum(first, last)
        which = np.repeat(np.arange(len(first)), last - first)
        within = later.at[list_rows(first, last)] - self.add[which]
        at = np.union1d(self.at, within)
        add = self.add[np.searchsorted(self.at, at, "right") - 1]
        step = np.searchsorted(later.at, at + add, "right") - 1
        add = add + later.add[np.maximum(step, 0)]
        differs = np.append(True, np.diff(add) != 0)[: len(at)]
        return Steps(self.count, at[differs], add[differs])

    def _renumber_few(self, values: Array) -> Array:
        if values.size and int(values.max()) >= self.count:
            raise IndexError(f"{int(values.max())} of {self.count}")
        step = np.searchsorted(self.at, values, "right") - 1
        new: Array = values + self.add[step].astype(values.dtype)
        return np.where(values < 0, values, new) if values.dtype.kind == "i" else new


def make_steps(table: Ints) -> Steps:
    """The steps of a table of new numbers."""
    add = table - np.arange(len(table))
    at = np.flatnonzero(np.diff(add, prepend=add[:1] - 1))
    return Steps(len(table), at, add[at])


def list_rows(first: Ints, last: Ints) -> Ints:
    """All rows of several stretches."""
    sizes = last - first
    return np.repeat(last - np.cumsum(sizes), sizes) + np.arange(int(sizes.sum()))
