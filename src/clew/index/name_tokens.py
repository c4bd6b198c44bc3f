"""The words of names, and the index over them: made anew, or updated from what was there.

An update looks at the names that changed; all others are copied, with the same result bit for bit.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from clew.graph.csr import (
    Csr,
    Ints,
    argsort_numbers,
    expand_ranges,
    row_starts,
    sorted_unique,
)
from clew.graph.csr_update import (
    GONE,
    SpliceRows,
    find_places,
    moves_from_places,
    stays,
    update_csr,
)
from clew.graph.name_matching import NameTokenIndex
from clew.index.owner_blocks import index_tokens
from clew.index.resolution import sort_tokens
from clew.sorted_columns import bisect_column
from clew.store.protocol import Array, Arrays, Tables
from clew.store.row_edits import Splice
from clew.store.spliced_arrays import note_splice, splice_part
from clew.text.names import TOKEN


@dataclass(frozen=True, slots=True)
class NameTokens:
    """The codes of the words of each entity's name, by row; and how many words it has."""

    starts: Ints
    codes: Ints
    lengths: Ints

    def to_arrays(self) -> dict[str, Array]:
        """The arrays that a generation keeps for the next one."""
        return {f"token_{part}": getattr(self, part) for part in self.__slots__}


def find_tokens(
    tables: Tables, entities: Ints, changed: Ints | None, previous: Arrays
) -> NameTokens:
    """Return the words of all names.

    `changed` are the positions of entities whose names may differ from those in `previous`, and
    None if all may.
    """
    if changed is None or "token_lengths" not in previous:
        bearer, codes, place = sort_tokens(tables)
        lengths = np.zeros(len(entities), np.int64)
        lengths[bearer] = place + 1  # the last one stays
        return NameTokens(row_starts(bearer, len(entities)), codes, lengths)
    row, codes, place = _read_tokens(tables.forms, entities[changed])
    places = find_places(previous["entity_keys"], entities)
    held = _keep_others(places, changed, len(entities))
    sizes = np.bincount(row, minlength=len(changed))
    starts, codes = _replace_rows(
        Rows(previous["token_starts"], previous["token_codes"], "codes"),
        held,
        changed,
        sizes,
        codes,
        partial(splice_part, previous, "token"),
    )
    lengths = np.zeros(len(entities), np.int64)
    kept = np.flatnonzero(held != GONE)
    lengths[held[kept]] = previous["token_lengths"][kept]
    lengths[changed[row]] = place + 1
    return NameTokens(starts, codes, lengths)


def _read_tokens(forms: Array, keys: Ints) -> tuple[Ints, Ints, Ints]:
    """The words of some names (ascending keys), in order: number of the name, code, place."""
    edges = (bisect_column(forms[:, 0], keys, right=side) for side in (False, True))
    which, at = expand_ranges(*edges)
    real = forms[at, 3] == TOKEN
    which, rows = which[real], forms[at[real]]
    order = argsort_numbers(which * (int(rows[:, 2].max(initial=0)) + 1) + rows[:, 2])
    return which[order], rows[order, 1], rows[order, 2]


def _keep_others(places: Ints, changed: Ints, count: int) -> Ints:
    """The new places of rows, `GONE` for those that changed."""
    is_changed = np.zeros(count + 1, np.bool_)  # the last one is that of GONE
    is_changed[changed] = True
    return np.where(is_changed[places], GONE, places)


@dataclass(frozen=True, slots=True)
class Rows:
    """Values by row."""

    starts: Ints
    values: Array
    name: str
    """What the values are called among the arrays."""


def _replace_rows(
    held: Rows,
    places: Ints,
    added: Ints,
    sizes: Ints,
    values: Array,
    edit: SpliceRows,
) -> tuple[Ints, Array]:
    """Move rows to their places, drop those that are `GONE`, and insert rows of these sizes."""
    kept = np.flatnonzero(places != GONE)
    gone = np.flatnonzero(places == GONE)
    lost = expand_ranges(held.starts[gone], held.starts[gone + 1])[1]
    rows = np.append(kept, len(places))[np.searchsorted(places[kept], added)]
    at = np.repeat(held.starts[rows], sizes)
    found = edit(held.name, held.values, lost, at, values.astype(held.values.dtype))
    return edit("starts", held.starts, gone, rows, sizes), found


def index_names_by_token(
    tables: Tables,
    tokens: NameTokens,
    known: Ints,
    changed: Ints | None,
    keys: tuple[Ints, Arrays],
) -> NameTokenIndex:
    """Index the words of the entities `known`; `keys` are those of all entities, and `previous`."""
    entities, previous = keys
    needed = ("word_entities", "word_codes", "token_lengths")
    if changed is None or any(name not in previous for name in needed):
        return index_tokens(tokens.starts, tokens.codes, known, tables.memory)
    # Where each name that was in the index is in it now.
    held = _keep_others(find_places(previous["entity_keys"], entities), changed, len(entities))
    rank = np.full(len(entities) + 1, GONE, np.int64)  # the last one is that of GONE
    rank[known] = np.arange(len(known))
    moved = rank[held[previous["word_entities"]]]
    if not _ascends(moved[moved != GONE]):  # names of one code: their order is not known
        return index_tokens(tokens.starts, tokens.codes, known, tables.memory)
    is_new = np.ones(len(known), np.bool_)
    is_new[moved[moved != GONE]] = False
    new, kept = np.flatnonzero(is_new), np.flatnonzero(moved != GONE)
    at = np.append(kept, len(moved))[np.searchsorted(moved[kept], new)]
    gone = np.flatnonzero(moved == GONE)
    if len(gone) or len(new):
        note_splice(previous, "word_entities", Splice(known, gone, at, known[new]))
    return _update_index(previous, tokens, known, moved, new)


def _ascends(numbers: Ints) -> bool:
    return bool((numbers[1:] > numbers[:-1]).all())


def _update_index(
    previous: Arrays, tokens: NameTokens, known: Ints, moved: Ints, new: Ints
) -> NameTokenIndex:
    """The index after names moved and came; `new` are the places of the latter."""
    names, spelt = (
        Csr(*(previous[f"{name}_{part}"] for part in Csr.__slots__))
        for name in ("word_names", "word_tokens")
    )
    which, slots = expand_ranges(tokens.starts[known[new]], tokens.starts[known[new] + 1])
    fresh = tokens.codes[slots]
    gone = np.flatnonzero(moved == GONE)
    lost = spelt.columns[spelt.edges_of(gone)[1]]
    left = names.degrees() - np.bincount(lost, minlength=len(names))
    codes = sorted_unique(np.concatenate([previous["word_codes"][left > 0], fresh]))
    places = np.full(len(left), GONE, np.int64)
    places[left > 0] = np.searchsorted(codes, previous["word_codes"][left > 0])
    at = np.searchsorted(codes, fresh)
    update = update_csr(
        names,
        (moves_from_places(places, len(codes)), moves_from_places(moved, len(known))),
        (at, new[which]),
        partial(splice_part, previous, "word_names"),
    )
    columns = spelt.columns
    if not stays(places):
        columns = places.astype(np.int32)[columns]
    starts, columns = _replace_rows(
        Rows(spelt.starts, columns, "columns"),
        moved,
        new,
        np.bincount(which, minlength=len(new)),
        at,
        partial(splice_part, previous, "word_tokens"),
    )
    ones = np.ones(len(columns), np.float32)
    return NameTokenIndex(
        codes, Csr(update.starts, update.columns, ones), Csr(starts, columns, ones)
    )
