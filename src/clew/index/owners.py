"""The passages about each entity, and the index over the words of names that have some.

Made anew, or updated: what an entity owns depends on the claims to its own name, and what is about
it on the entities that share one of its names; entities without a certain passage are matched by
similarity, which depends on all names. So a write looks at names that have a passage that came or
went, at those that share a name with them, and at those that are matched by similarity.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import (
    Csr,
    Ints,
    build_csr,
    expand_ranges,
    group_equals,
    sorted_unique,
)
from clew.graph.csr_update import GONE, Moves, update_csr
from clew.graph.page_owners import (
    SIDE_CLAIM,
    EntityPassages,
    EntityTokens,
    NameTable,
    PassageFinder,
    name_rarities,
    resolve_claims,
)
from clew.index.incidences import find_key_moves
from clew.index.name_table import NameUpdate, make_table
from clew.index.name_tokens import NameTokens, find_tokens, index_names_by_token
from clew.index.owner_blocks import find_owners, fits_at_once
from clew.splice import splice
from clew.store.protocol import Arrays, Tables
from clew.store.spliced_arrays import splice_part

_MIN_OWNERSHIP = 0.3  # names owned less surely than this are not found by fuzzy matching
MAX_SHARE = 0.5  # of entities that are looked at again; of more, all are
_KEPT = tuple(f"{name}_{part}" for name in ("claim", "owned", "owners") for part in Csr.__slots__)

Named = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class _Owned:
    """Claims to be what a passage is about, what is left of them, and names found by words."""

    claims: Csr
    passages: Csr
    known: Ints
    """One entity for each name that is owned surely enough, by the codes of entities."""


def index_owners(tables: Tables, arrays: Named, names: NameUpdate) -> Named:
    """Map entities to the chunks about them, and index the name tokens of those entities."""
    entities, previous = arrays["entity_keys"], tables.previous
    tokens = find_tokens(tables, entities, names.changed, previous)
    update = None
    if names.changed is not None and all(name in previous for name in (*_KEPT, "owners_asked")):
        update = _Update(tables, arrays, names, tokens)
    owned = _find_owned(arrays, tokens) if update is None else update.find_owned()
    words = index_names_by_token(tables, tokens, owned.known, names.changed, (entities, previous))
    position_of = np.full(len(entities), -1, np.int64)
    position_of[owned.known] = np.arange(len(owned.known))
    own_names = position_of[arrays["entity_same"]]
    spelt = EntityTokens(tokens.starts, tokens.codes, words, owned.known, own_names)
    found = None if update is None else update.find_owners(owned, spelt)
    if found is None:
        owners, asked = find_owners(
            _name_table(arrays), owned.passages, spelt, arrays["chunk_codes"], tables.memory
        )
        found = {"owners_asked": asked, **_to_arrays("owners", owners)}
    return {
        **found,
        **tokens.to_arrays(),
        **_to_arrays("claim", owned.claims),
        **_to_arrays("owned", owned.passages),
        "word_codes": words.codes,
        "word_entities": owned.known,
        **_to_arrays("word_names", words.names),
        **_to_arrays("word_tokens", words.tokens),
    }


def _to_arrays(name: str, links: Csr) -> Named:
    return {f"{name}_{part}": getattr(links, part) for part in Csr.__slots__}


def _load_csr(arrays: Arrays, name: str) -> Csr:
    return Csr(*(arrays[f"{name}_{part}"] for part in Csr.__slots__))


def _name_table(arrays: Arrays) -> NameTable:
    return NameTable(*(arrays[f"name_{part}"] for part in NameTable.__slots__))


# -- what entities own


def _find_owned(arrays: Named, tokens: NameTokens) -> _Owned:
    """What all entities own."""
    same, count = arrays["entity_same"].astype(np.int64), len(arrays["entity_keys"])
    about = arrays["chunk_entity_about"]
    at = np.flatnonzero(about > 0)
    chunks = np.searchsorted(arrays["chunk_entity_starts"], at, "right") - 1
    claims = build_csr(count, arrays["chunk_entity_columns"][at], chunks, about[at])
    degrees = np.diff(arrays["entity_chunk_starts"])
    counts = np.bincount(same, degrees, minlength=count).astype(np.int64)[same]
    left = _weigh_claims(claims, same, tokens.lengths, counts, len(arrays["chunk_keys"]))
    passages = build_csr(count, left.entities, left.chunks, left.about)
    known = sorted_unique(same[left.entities[left.about >= _MIN_OWNERSHIP]])
    return _Owned(claims, passages, _order_by_code(arrays, known))


def _order_by_code(arrays: Named, known: Ints) -> Ints:
    """Equally similar names go by these."""
    found: Ints = known[np.argsort(arrays["entity_codes"][known])]
    return found


def _weigh_claims(
    claims: Csr, same: Ints, lengths: Ints, counts: Ints, chunks: int
) -> EntityPassages:
    """What is left of claims to whole names; `counts` are the numbers of chunks with each name."""
    # Thousandths again, as they are in the table.
    sure: NDArray[Any] = np.rint(claims.weights.astype(np.float64) * 1000) / 1000
    given = EntityPassages(claims.row_numbers(), claims.columns.astype(np.int64), sure)
    return resolve_claims(given, same, lengths, name_rarities(counts, chunks))[0]


# -- updating


class _Update:
    """Updates what the previous generation had, for entities with names as they are now."""

    def __init__(
        self, tables: Tables, arrays: Named, names: NameUpdate, tokens: NameTokens
    ) -> None:
        self._tables, self._arrays, self._names, self._tokens = tables, arrays, names, tokens
        self._previous, self._named = tables.previous, _name_table(arrays)
        keys = {kind: arrays[f"{kind}_keys"] for kind in ("entity", "chunk")}
        self._entities, self._chunks = (find_key_moves(self._previous, keys, kind) for kind in keys)
        self._weighed = np.zeros(0, np.int64)

    def find_owned(self) -> _Owned:
        """What entities own: names with a passage that came or went are weighed again."""
        arrays = self._arrays
        new = self._find_new_mentions()
        real = np.flatnonzero(new.about > 0)
        claims = self._replace(
            "claim",
            self._entities,
            EntityPassages(new.entities[real], new.chunks[real], new.about[real]),
        )
        some = self._weighed = self._find_rivals(self._find_touched(new.entities, claims))
        name = group_equals(self._tables.entities[some, 2])[2]
        starts = arrays["entity_chunk_starts"]
        counts = np.bincount(name, starts[some + 1] - starts[some]).astype(np.int64)[name]
        lengths, chunks = self._tokens.lengths[some], len(arrays["chunk_keys"])
        left = _weigh_claims(claims.select(some), name, lengths, counts, chunks)
        mine = build_csr(len(some), left.entities, left.chunks, left.about)
        passages = self._replace_rows("owned", some, mine)
        sure = some[left.entities[left.about >= _MIN_OWNERSHIP]]
        fresh = sorted_unique(arrays["entity_same"][sure])
        return _Owned(claims, passages, self._update_known(some, fresh))

    def find_owners(self, owned: _Owned, spelt: EntityTokens) -> Named | None:
        """The passages about entities; None if so much changed that all may be looked at."""
        tables, previous = self._tables, self._previous
        keys, before = self._arrays["entity_keys"], previous["owners_asked"]
        changed = self._find_changed(owned.passages)
        hashes = make_table(tables, keys, changed).hashes
        sharing = self._named.take(self._find_names(hashes, self._names.old_hashes)).entities
        unsure = self._entities.place(np.flatnonzero(before))
        some = sorted_unique(np.concatenate([changed, sharing, unsure[unsure != GONE]]))
        if len(some) > MAX_SHARE * len(keys) or not fits_at_once(len(some), tables.memory):
            return None
        asked = make_table(tables, keys, some)
        answers = self._named.take(self._find_names(asked.hashes))
        finder = PassageFinder(owned.passages, answers, spelt, self._arrays["chunk_codes"])
        found, unsure_now = finder.find(asked.renumber(some), some)
        none = np.zeros(len(self._entities.added), np.bool_)
        mask = splice(before, self._entities.gone, self._entities.at, none)
        mask[some] = unsure_now
        owners = self._replace_rows("owners", some, found)
        return {"owners_asked": mask, **_to_arrays("owners", owners)}

    def _find_new_mentions(self) -> EntityPassages:
        """The mentions in new chunks."""
        new, links = self._chunks.added, _load_csr(self._arrays, "chunk_entity")
        which, at = links.edges_of(new)
        about = self._arrays["chunk_entity_about"][at]
        return EntityPassages(links.columns[at].astype(np.int64), new[which], about)

    def _find_touched(self, mentioned: Ints, claims: Csr) -> Ints:
        """Entities of which a mention or a name came or went, or whose rarity counts."""
        links = _load_csr(self._previous, "chunk_entity")
        lost = links.columns[links.edges_of(self._chunks.gone)[1]]
        left = self._entities.place(lost)
        changed = self._names.changed if self._names.changed is not None else lost[:0]
        # How rare a name is depends on the number of all chunks; it matters for guesses only.
        guesses = np.flatnonzero(claims.weights < SIDE_CLAIM)
        if len(self._arrays["chunk_keys"]) == len(self._previous["chunk_keys"]):
            guesses = guesses[:0]
        guessed = np.searchsorted(claims.starts, guesses, "right") - 1
        return sorted_unique(np.concatenate([mentioned, left[left != GONE], changed, guessed]))

    def _find_rivals(self, touched: Ints) -> Ints:
        """All entities with the own name that one of these has, or that was changed."""
        hashes = self._tables.entities[touched, 2].astype(np.uint64)
        rows = self._find_names(hashes, self._names.old_hashes)
        return sorted_unique(self._named.entities[rows[self._named.weights[rows] > 1]])

    def _find_names(self, *hashes: NDArray[np.uint64]) -> Ints:
        """The rows of the table of names with these hashes, ascending."""
        wanted, held = np.unique(np.concatenate(hashes)), self._named.hashes
        return expand_ranges(np.searchsorted(held, wanted), np.searchsorted(held, wanted, "right"))[
            1
        ]

    def _find_changed(self, passages: Csr) -> Ints:
        """Entities that own or owned a passage and were weighed again, or whose names changed."""
        some, before = self._weighed, _load_csr(self._previous, "owned")
        owns = passages.degrees_of(some) > 0
        at, known = self._entities.find_old(some)
        owns[known] |= before.degrees_of(at[known]) > 0
        changed = self._names.changed if self._names.changed is not None else some
        return sorted_unique(np.concatenate([some[owns], changed]))

    def _update_known(self, weighed: Ints, fresh: Ints) -> Ints:
        """The names that are owned surely enough; `fresh` are those among the weighed ones."""
        codes = self._arrays["entity_codes"]
        held = self._drop(weighed).place(self._previous["word_entities"])
        held = held[held != GONE]
        fresh = _order_by_code(self._arrays, fresh)
        known = np.insert(held, np.searchsorted(codes[held], codes[fresh]), fresh)
        ordered = codes[known]
        if (ordered[1:] > ordered[:-1]).all():
            return known
        return _order_by_code(self._arrays, np.sort(known))  # as equals are sorted otherwise

    def _drop(self, some: Ints) -> Moves:
        """How entities moved, if these had not been there."""
        at, known = self._entities.find_old(some)
        return self._entities.drop(at[known])

    def _replace_rows(self, name: str, some: Ints, rows: Csr) -> Csr:
        """Replace the rows of some entities, but for those that are as they were."""
        held = _load_csr(self._previous, name)
        at, known = self._entities.find_old(some)
        known[known] = rows.degrees()[known] == held.degrees_of(at[known])
        same = np.flatnonzero(known)
        which, mine = rows.edges_of(same)
        theirs = held.edges_of(at[same])[1]
        differs = self._chunks.place(held.columns[theirs]) != rows.columns[mine]
        differs |= held.weights[theirs] != rows.weights[mine]
        known[same[which[differs]]] = False
        other = np.flatnonzero(~known)
        which, edges = rows.edges_of(other)
        added = EntityPassages(
            some[other[which]], rows.columns[edges].astype(np.int64), rows.weights[edges]
        )
        return self._replace(name, self._drop(some[other]), added)

    def _replace(self, name: str, rows: Moves, added: EntityPassages) -> Csr:
        """Move rows to their places, and add passages to those that were not there."""
        held, edit = _load_csr(self._previous, name), partial(splice_part, self._previous, name)
        update = update_csr(held, (rows, self._chunks), (added.entities, added.chunks), edit)
        weights = update.carry(held.weights, added.about, "weights", edit)
        return Csr(update.starts, update.columns, weights)
