"""Entity resolution over the store's tables: split homonyms, then merge the names of one entity."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from clew.graph.csr import (
    Csr,
    Ints,
    Mask,
    argsort_numbers,
    argsort_pairs,
    build_csr,
    find_positions,
    row_starts,
    sorted_unique,
)
from clew.graph.entity_resolution import (
    MODEL,
    SIMILARITY,
    STATED_SAME,
    USER,
    CandidatePairs,
    EntityGroups,
    LshIndex,
    MergeConstraints,
    TokenizedNames,
    concatenate_pairs,
    empty_lsh_index,
    extend_lsh_index,
    find_agreeing,
    find_common_entities,
    group_pairs,
    make_pairs,
    pair_by_alias,
    pair_by_spelling,
)
from clew.graph.parts import HERE, RunParts, split_by_key
from clew.index.details import sum_mention_codes
from clew.index.homonyms import SplitTables, build_company, split_homonyms
from clew.out_of_core import blocks_of_groups
from clew.store.protocol import SENSE_STRIDE, STATED_WEIGHT, Array, Tables
from clew.text.entity_types import alias_relation_codes
from clew.text.names import FORM, HONORIFICS, TOKEN, encode_token

_MIN_NEAR_COSINE = 0.85  # cosine from which a model may be asked about a pair
_MIN_SAME_COSINE = 0.9  # cosine from which words and context decide
_ROW_BYTES = 96  # taken by a mention or participant while it is resolved
_MAX_COUNTED_CLASSES = 64  # of more, mentions are sorted: counting takes a number for each
_MAX_COMPARED_NAMES = 250_000  # above, names are compared by their words only


@dataclass(frozen=True)
class ResolvedTables:
    """The resolved tables, and the reasons as arrays for the generation's folder.

    Mentions and participants in `tables` are as stored: those methods resolve what is needed.
    """

    tables: Tables
    arrays: dict[str, Array]
    mention_codes: Ints
    """A hash of the mentions that each entity is merged from."""
    _split: SplitTables
    _groups: EntityGroups

    def mentions(self, which: Ints | None = None) -> Array:
        """Return these mentions, or all, of resolved entities."""
        split = self._split
        found, who, where = split.tables.mentions, split.who, split.where
        if which is not None:
            found, who, where = found[which], who[which], where[which]
        found = found.astype(np.int64)
        into = self._groups.into[who]
        found[:, 0] = split.tables.entities[into, 0]
        return _combine_mentions(found, into, where) if len(self.arrays["merged"]) else found

    def participants(self, facts: Ints | None = None) -> Array:
        """Return the resolved participants of some facts (keys, ascending), or of all."""
        return self._merge_members(self._split.participants(facts))

    def participant_blocks(self) -> Iterator[Array]:
        """Return the resolved participants of all facts, block by block of facts."""
        stored = self.tables.participants
        for some in blocks_of_groups(self.tables.memory, stored[:, 0], _ROW_BYTES):
            yield self._merge_members(self._split.with_senses(stored[some]))

    def mention_blocks(self) -> Iterator[tuple[Ints, Array]]:
        """Return all mentions as stored, with the resolved entity's key, block by block."""
        split, keys = self._split, self._split.tables.entities[:, 0]
        for some in self.tables.memory.blocks(len(split.who), _ROW_BYTES):
            yield keys[self._groups.into[split.who[some]]], split.tables.mentions[some]

    def _merge_members(self, found: Array) -> Array:
        keys = self._split.tables.entities[:, 0]
        if not len(self.arrays["merged"]):
            return found
        members = self._groups.into[find_positions(keys, found[:, 1])]
        found = found.copy()
        found[:, 1] = keys[members]
        # A fact with two names of one entity holds it once per role.
        return found[_find_distinct_members(found, members, len(keys))]


def resolve(tables: Tables, run: RunParts = HERE) -> ResolvedTables:
    """Split names of several entities, then merge names of one entity."""
    split = split_homonyms(tables, run)
    near = _find_near_names(tables, run)
    groups, found = _group_names(split, near, run)
    arrays: dict[str, Array] = {
        "near_codes": near.codes,
        "near_pairs": near.pairs,
        "near_cosines": near.cosines,
        "sense_mentions": split.moved,
        **_record_merges(split.tables.entities[:, 0], groups, found),
    }
    codes = _hash_mentions(split, groups)
    return ResolvedTables(_merge_tables(split.tables, groups), arrays, codes, split, groups)


def _hash_mentions(split: SplitTables, groups: EntityGroups) -> Ints:
    """Return a code of the mentions of each entity that stays, in order."""
    keys = split.tables.entities[:, 0]
    if not split.tables.entities[:, 6].any():
        return np.zeros(len(sorted_unique(groups.into)), np.int64)  # nobody has anything to look up
    codes = np.zeros(len(keys), np.int64)
    for some in split.tables.memory.blocks(len(split.who), _ROW_BYTES):
        who, chunks = split.who[some], split.tables.mentions[some, 1]
        codes += sum_mention_codes(len(keys), groups.into[who], keys[who], chunks)
    stays: Ints = codes[keys[groups.into] == keys]
    return stays


def _record_merges(keys: Ints, groups: EntityGroups, found: CandidatePairs) -> dict[str, Array]:
    """Return arrays of merged names: target, pair, reason and score."""
    gone = np.flatnonzero(keys[groups.into] != keys)
    by = groups.pair_index
    return {
        "merged": np.stack([keys[gone], keys[groups.into[gone]]], axis=1),
        "merged_pairs": np.stack(
            [keys[found.left[by]], keys[found.right[by]], found.reason[by]], axis=1
        ).astype(np.int64),
        "merged_scores": found.score[by].astype(np.float32),
    }


def _find_near_names(tables: Tables, run: RunParts) -> LshIndex:
    """Find close name vectors; earlier results are reused, since vectors never change."""
    vectors = tables.entity_vectors
    if vectors is None or len(vectors) > _MAX_COMPARED_NAMES:
        return empty_lsh_index()
    old = tables.previous
    known = (
        LshIndex(old["near_codes"], old["near_pairs"], old["near_cosines"])
        if "near_codes" in old and len(old["near_codes"]) <= len(vectors)
        else empty_lsh_index()
    )
    return extend_lsh_index(known, vectors, _MIN_NEAR_COSINE, run)


def _group_names(
    split: SplitTables, near: LshIndex, run: RunParts
) -> tuple[EntityGroups, CandidatePairs]:
    """Collect all candidate pairs and group them."""
    tables = split.tables
    keys, things = tables.entities[:, 0], tables.entities[:, 3] == 0
    count = len(keys)
    # By name and sense, never by key: keys depend on insertion order.
    ranked = argsort_pairs(tables.entities[:, 5], keys // SENSE_STRIDE)
    order = np.empty(count, np.int64)
    order[ranked] = np.arange(count)
    found = concatenate_pairs(
        [
            *_pair_by_name(tables, things, ranked, order, run),
            _pair_by_statement(split, things),
            _pair_by_vectors(split, near, things, run),
            *_pair_by_decision(tables),
        ]
    )
    support = np.bincount(split.who, minlength=count)
    given = tables.entities[:, 7] > 0
    # User-given nodes represent what is merged into them.
    support = support + given * (int(support.max(initial=0)) + 1)
    limits = MergeConstraints(_find_classes(split), given, _find_cannot_links(tables))
    return group_pairs(found, order, support, limits), found


def _pair_by_name(
    tables: Tables, things: Mask, ranked: Ints, order: Ints, run: RunParts
) -> list[CandidatePairs]:
    """Pair other spellings and stated aliases with the first name by rank, by blocks of keys."""
    hashes = tables.entities[:, 2]
    real = ranked[things[ranked]]
    blocks = [real[block] for block in split_by_key(hashes[real], run.count)]
    spelt = run(pair_by_spelling, [(hashes[block],) for block in blocks])
    stated = tables.forms[(tables.forms[:, 2] == STATED_WEIGHT) & (tables.forms[:, 3] == FORM)]
    entity = np.searchsorted(tables.entities[:, 0], stated[:, 0])
    alias = pair_by_alias(np.where(things, hashes, 0)[ranked], order[entity], stated[:, 1])
    return [
        *(
            replace(found, left=block[found.left], right=block[found.right])
            for block, found in zip(blocks, spelt, strict=True)
        ),
        replace(alias, left=ranked[alias.left], right=ranked[alias.right]),
    ]


def _pair_by_statement(split: SplitTables, things: Mask) -> CandidatePairs:
    """Pair names that a document states to be the same."""
    tables = split.tables
    relations = list(alias_relation_codes())
    same = np.concatenate(
        [
            np.zeros(0, np.int64),
            *(
                tables.facts[some][np.isin(tables.facts[some, 2], relations), 0]
                for some in tables.memory.blocks(len(tables.facts))
            ),
        ]
    )
    members = split.participants(same)
    ends = [members[members[:, 2] == role] for role in (2, 3)]  # head, tail
    if not all(len(side) for side in ends):
        return make_pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), STATED_SAME)
    both, heads, tails = np.intersect1d(ends[0][:, 0], ends[1][:, 0], return_indices=True)
    left, right = (
        np.searchsorted(tables.entities[:, 0], side[at, 1])
        for side, at in ((ends[0], heads), (ends[1], tails))
    )
    real = things[left] & things[right] & (left != right)
    return make_pairs(left[real], right[real], STATED_SAME)


def _pair_by_vectors(
    split: SplitTables, near: LshIndex, things: Mask, run: RunParts
) -> CandidatePairs:
    """Pair names with close vectors when words and context agree."""
    tables = split.tables
    close = near.cosines >= _MIN_SAME_COSINE
    rows, keys = tables.entities[:, 1], tables.entities[:, 0]
    at = np.full(int(max(rows.max(initial=-1), near.pairs.max(initial=-1))) + 1, -1, np.int64)
    main = things & (rows >= 0) & (keys < SENSE_STRIDE)  # senses of one name share its vector
    at[rows[main]] = np.flatnonzero(main)
    pair = at[near.pairs[close]]
    valid = (pair >= 0).all(axis=1)
    pair, cosines = pair[valid], near.cosines[close][valid]
    if not len(pair):
        return make_pairs(pair[:, 0], pair[:, 1], SIMILARITY, cosines)
    blocks = split_by_key(tables.entities[pair[:, 0], 2], run.count)
    shared = (_tokenize_names(tables), *_build_context(split, pair))
    found = run(find_agreeing, [(pair[block],) for block in blocks], shared)
    keep = np.sort(np.concatenate([block[at] for block, at in zip(blocks, found, strict=True)]))
    keep = keep.astype(np.int64)
    return make_pairs(pair[keep, 0], pair[keep, 1], SIMILARITY, cosines[keep])


def _tokenize_names(tables: Tables) -> TokenizedNames:
    entity, codes, _ = sort_tokens(tables)
    return TokenizedNames(
        row_starts(entity, len(tables.entities)),
        codes,
        stopwords=_token_codes("the a an of de"),
        of_code=encode_token("of"),
        titles=frozenset(map(encode_token, HONORIFICS)),
        numerals=_token_codes("i v x l c d m"),
    )


def sort_tokens(tables: Tables) -> tuple[Ints, Ints, Ints]:
    """Return the tokens of all names, in order: the position of the entity, the code, the place."""
    memory, forms = tables.memory, tables.forms
    count = int(np.count_nonzero(forms[:, 3] == TOKEN))
    found = tuple(memory.empty(count, np.int64) for _ in range(3))
    done = 0
    for some in blocks_of_groups(memory, forms[:, 0], _ROW_BYTES):
        tokens = forms[some]
        tokens = tokens[tokens[:, 3] == TOKEN]
        entity = find_positions(tables.entities[:, 0], tokens[:, 0])
        order = argsort_numbers(entity * (int(tokens[:, 2].max(initial=0)) + 1) + tokens[:, 2])
        here = slice(done, done + len(order))
        for column, values in zip(found, (entity, tokens[:, 1], tokens[:, 2]), strict=True):
            column[here] = values[order]
        done = here.stop
    return found[0], found[1], found[2]


@cache
def _token_codes(words: str) -> frozenset[int]:
    return frozenset(map(encode_token, words.split()))


def _build_context(split: SplitTables, pairs: Ints) -> tuple[Csr, Csr]:
    """Return the chunks of paired entities, and the entities there that are not too common."""
    keys, chunk_keys = split.tables.entities[:, 0], split.tables.chunks[:, 0]
    who, where = split.who, split.where
    is_paired = np.zeros(len(keys), np.bool_)
    is_paired[pairs] = True
    mine = is_paired[who]
    common = find_common_entities(who, len(keys), len(chunk_keys))
    company = build_company(len(chunk_keys), who, where, mine, common)
    return build_csr(len(keys), who[mine], where[mine]), company


def _pair_by_decision(tables: Tables) -> list[CandidatePairs]:
    """Pair by stored decisions: columns are two keys, 1 for same, 1 if made by a model."""
    keys, decided = tables.entities[:, 0], tables.merge_decisions
    same = decided[decided[:, 2] == 1]
    left, right = (np.searchsorted(keys, same[:, side]) for side in (0, 1))
    known = np.isin(same[:, :2], keys).all(axis=1)
    return [
        make_pairs(left[known & (same[:, 3] == by)], right[known & (same[:, 3] == by)], reason)
        for by, reason in ((0, USER), (1, MODEL))
    ]


def _find_cannot_links(tables: Tables) -> set[tuple[int, int]]:
    """Return pairs that must not be merged."""
    keys, decided = tables.entities[:, 0], tables.merge_decisions
    rows = decided[decided[:, 2] == 0]
    rows = rows[np.isin(rows[:, :2], keys).all(axis=1)]
    left, right = (np.searchsorted(keys, rows[:, side]).tolist() for side in (0, 1))
    found = {(min(pair), max(pair)) for pair in zip(left, right, strict=True)}
    # Senses of one name were split on purpose.
    base = keys % SENSE_STRIDE
    for key in keys[keys >= SENSE_STRIDE]:
        same_name = np.flatnonzero(base == key % SENSE_STRIDE).tolist()
        found |= {(a, b) for a in same_name for b in same_name if a < b}
    return found


def _find_classes(split: SplitTables) -> Ints:
    """Return the most frequent class of each entity; of equals the first."""
    found, memory = np.zeros(len(split.tables.entities), np.int64), split.tables.memory
    if len(split.moved):  # mentions are in the order of names, not of senses
        return _count_classes(split.who, split.tables.mentions[:, 4], len(found))
    for some in blocks_of_groups(memory, split.who, _ROW_BYTES):
        who = split.who[some]
        first, last = int(who[0]), int(who[-1]) + 1
        classes = split.tables.mentions[some, 4]
        found[first:last] = _count_classes(who - first, classes, last - first)
    return found


def _count_classes(who: Ints, classes: Array, count: int) -> Ints:
    """The same for these mentions, of so many entities."""
    found = np.zeros(count, np.int64)
    known = np.flatnonzero(classes > 0)
    if not len(known):
        return found
    width = int(classes.max()) + 1
    codes = who[known] * width + classes[known]
    if width > _MAX_COUNTED_CLASSES:
        pair, times = np.unique(codes, return_counts=True)
        pair = pair[np.lexsort((-(pair % width), times))]  # the best last, which then stays
        found[pair // width] = pair % width
        return found
    times = np.bincount(codes, minlength=count * width).reshape(-1, width)
    best: Ints = times.argmax(axis=1)  # class 0 is never counted: it is the best only of none
    return best


def _merge_tables(tables: Tables, groups: EntityGroups) -> Tables:
    """Replace every entity by the representative of its group, among entities and forms."""
    keys = tables.entities[:, 0]
    into = keys[groups.into]
    gone = into != keys
    if not gone.any():
        return tables
    own = np.empty((int(gone.sum()), 4), np.int64)
    own[:, 0], own[:, 1] = into[gone], tables.entities[gone, 2]
    own[:, 2], own[:, 3] = STATED_WEIGHT, FORM
    forms = tables.memory.copy(tables.forms)
    bearers = find_positions(keys, forms[:, 0])
    stays = ~(gone[bearers] & (forms[:, 3] == TOKEN))
    forms[:, 0] = into[bearers]
    entities = tables.entities.copy()
    np.add.at(entities[:, 6], groups.into[gone], tables.entities[gone, 6])
    return replace(
        tables,
        entities=entities[~gone],
        forms=_merge_forms(np.concatenate([forms[stays], own]), tables.entities),
    )


def _find_distinct_members(participants: Array, members: Ints, entities: int) -> Ints:
    """Return the rows with distinct fact, member and role, ascending, each where it is first."""
    facts = np.cumsum(np.diff(participants[:, 0], prepend=participants[:1, 0]) != 0)
    roles = int(participants[:, 2].max(initial=0)) + 1
    codes = (facts * entities + members) * roles + participants[:, 2]
    found: Ints = np.sort(np.unique(codes, return_index=True)[1])
    return found


def _combine_mentions(mentions: Array, who: Ints, where: Ints) -> Array:
    """Keep one row per entity and chunk: span counts add up, the highest claim counts.

    `who` and `where` are the positions of the entity and of the chunk.
    """
    mentions = mentions[argsort_numbers(who * (int(where.max(initial=0)) + 1) + where)]
    starts = np.flatnonzero(_is_first_of_pair(mentions))
    found = mentions[starts].copy()
    found[:, 2] = np.add.reduceat(mentions[:, 2], starts)
    found[:, 3] = np.maximum.reduceat(mentions[:, 3], starts)
    return found


def _merge_forms(forms: Array, entities: Array) -> Array:
    """Keep each form once per entity, the most certain; a name is no form of itself."""
    bearers = find_positions(entities[:, 0], forms[:, 0])
    # By hash, weight and kind, then by entity: nearly all hashes differ, and positions are small.
    order = argsort_pairs(forms[:, 1], _rank_forms(forms))
    order = order[argsort_numbers(bearers[order])]
    forms = forms[order]
    own = entities[bearers[order], 2] == forms[:, 1]
    kept: Array = forms[(_is_first_of_pair(forms) & ~own) | (forms[:, 3] == TOKEN)]
    return kept


def _rank_forms(forms: Array) -> Ints:
    """Numbers from 0 on that ascend as the weight falls, then as the kind ascends."""
    kinds = int(forms[:, 3].max(initial=0)) + 1
    ranks: Ints = (int(forms[:, 2].max(initial=0)) - forms[:, 2]) * kinds + forms[:, 3]
    return ranks


def _is_first_of_pair(rows: Array) -> Mask:
    """Whether a row is the first with its two leading columns; rows are sorted by them."""
    first = np.ones(len(rows), np.bool_)
    first[1:] = (np.diff(rows[:, :2], axis=0) != 0).any(axis=1)
    return first
