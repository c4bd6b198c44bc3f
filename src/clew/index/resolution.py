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
    expand_ranges,
    find_positions,
    isin_sorted,
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
from clew.index.name_statistics import (
    NameStatistics,
    count_classes,
    find_statistics,
    select_stated,
    sort_names,
)
from clew.out_of_core import blocks_of_groups
from clew.sorted_columns import bisect_column
from clew.store.protocol import SENSE_STRIDE, STATED_WEIGHT, Array, Tables
from clew.text.names import FORM, HONORIFICS, TOKEN, encode_token

_MIN_NEAR_COSINE = 0.85  # cosine from which a model may be asked about a pair
_MIN_SAME_COSINE = 0.9  # cosine from which words and context decide
_ROW_BYTES = 96  # taken by a mention or participant while it is resolved
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
        split, some = self._split, slice(None) if which is None else which
        found = split.tables.mentions[some].astype(np.int64)
        who = split.who if which is None else split.find_entities(which)
        into = self._groups.into[who]
        found[:, 0] = split.tables.entities[into, 0]
        if not len(self.arrays["merged"]):
            return found
        return _combine_mentions(found, into, split.find_chunks(some))

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
    names = find_statistics(tables)
    split = split_homonyms(tables, run, names)
    near = _find_near_names(tables, run)
    groups, found = _group_names(split, names, near, run)
    arrays: dict[str, Array] = {
        "near_codes": near.codes,
        "near_pairs": near.pairs,
        "near_cosines": near.cosines,
        "sense_mentions": split.moved,
        **names.to_arrays(),
        **_record_merges(split.tables.entities[:, 0], groups, found),
    }
    codes = _hash_mentions(split, groups)
    return ResolvedTables(_merge_tables(split.tables, groups), arrays, codes, split, groups)


def _hash_mentions(split: SplitTables, groups: EntityGroups) -> Ints:
    """Return a code of the mentions of each entity that stays, in order."""
    keys = split.tables.entities[:, 0]
    if not split.tables.entities[:, 6].any():  # nobody has anything to look up
        return np.zeros(len(keys) - len(groups.find_merged()), np.int64)
    codes = np.zeros(len(keys), np.int64)
    for some in split.tables.memory.blocks(len(split.who), _ROW_BYTES):
        who, chunks = split.who[some], split.tables.mentions[some, 1]
        codes += sum_mention_codes(len(keys), groups.into[who], keys[who], chunks)
    stays: Ints = codes[keys[groups.into] == keys]
    return stays


def _record_merges(keys: Ints, groups: EntityGroups, found: CandidatePairs) -> dict[str, Array]:
    """Return arrays of merged names: target, pair, reason and score."""
    gone, by = groups.find_merged(), groups.pair_index
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
    split: SplitTables, names: NameStatistics, near: LshIndex, run: RunParts
) -> tuple[EntityGroups, CandidatePairs]:
    """Collect all candidate pairs and group them."""
    tables = split.tables
    if len(split.moved):  # names of several entities: there are other elements than names
        hashes, keys = sort_names(tables.entities)
        names = replace(names, hashes=hashes, keys=keys, stated=select_stated(tables.forms))
    found = concatenate_pairs(
        [
            *_pair_by_spelling(tables, names, run),
            _pair_by_alias(tables, names),
            _pair_by_statement(split, names.same_facts),
            _pair_by_vectors(split, near, run),
            *_pair_by_decision(tables),
        ]
    )
    # Only entities of a pair are looked at.
    some = sorted_unique(np.concatenate([found.left, found.right]))
    ranked = _rank_names(tables, np.arange(len(some)), some)
    order = np.empty(len(some), np.int64)
    order[ranked] = np.arange(len(some))
    support, classes = _count_mentions(split, names, some)
    given = tables.entities[some, 7] % 2 > 0
    # User-given nodes represent what is merged into them.
    support = support + given * (int(support.max(initial=0)) + 1)
    apart = _find_cannot_links(tables, some) if len(some) else set()
    limits = MergeConstraints(classes, given, apart)
    pairs = replace(
        found, left=np.searchsorted(some, found.left), right=np.searchsorted(some, found.right)
    )
    groups = group_pairs(pairs, order, support, limits)
    into = np.arange(len(tables.entities))
    into[some] = some[groups.into]
    return EntityGroups(into, groups.pair_index), found


def _count_mentions(split: SplitTables, names: NameStatistics, some: Ints) -> tuple[Ints, Ints]:
    """How often some entities are mentioned, and their most frequent class; of equals the first."""
    if not len(split.moved):
        return names.mentions[some].astype(np.int64), names.classes[some].astype(np.int64)
    count = len(split.tables.entities)
    classes = count_classes(split.who, split.tables.mentions[:, 4], count)
    return np.bincount(split.who, minlength=count)[some], classes[some]


def _rank_names(tables: Tables, numbers: Ints, some: Ints) -> Ints:
    """The numbers of some entities, ordered by name and sense.

    Never by key: keys depend on insertion order.
    """
    rows = tables.entities[some]
    return numbers[argsort_pairs(rows[:, 5], rows[:, 0] // SENSE_STRIDE)]


def _find_things(tables: Tables, some: Ints) -> Mask:
    """Which of these entities are no values."""
    found: Mask = tables.entities[some, 3] == 0
    return found


def _pair_by_spelling(tables: Tables, names: NameStatistics, run: RunParts) -> list[CandidatePairs]:
    """Pair other spellings with the first name by rank, by blocks of hashes."""
    equal = names.hashes[1:] == names.hashes[:-1]
    tied = np.flatnonzero(np.append(False, equal) | np.append(equal, False))
    some = np.sort(find_positions(tables.entities[:, 0], names.keys[tied]))
    some = some[_find_things(tables, some)]
    ranked = _rank_names(tables, some, some)
    hashes = tables.entities[ranked, 2]
    blocks = [ranked[block] for block in split_by_key(hashes, run.count)]
    spelt = run(pair_by_spelling, [(tables.entities[block, 2],) for block in blocks])
    return [
        replace(found, left=block[found.left], right=block[found.right])
        for block, found in zip(blocks, spelt, strict=True)
    ]


def _pair_by_alias(tables: Tables, names: NameStatistics) -> CandidatePairs:
    """Pair stated aliases with the first name by rank."""
    claimants = find_positions(tables.entities[:, 0], names.stated[:, 0])
    claimed = names.stated[:, 1]
    wanted = sorted_unique(claimed)
    _, at = expand_ranges(
        np.searchsorted(names.hashes, wanted), np.searchsorted(names.hashes, wanted, "right")
    )
    owners = find_positions(tables.entities[:, 0], names.keys[at])
    some = sorted_unique(np.concatenate([claimants, owners]))
    ranked = _rank_names(tables, some, some)
    place = np.empty(len(some), np.int64)
    place[np.searchsorted(some, ranked)] = np.arange(len(some))
    hashes = np.where(_find_things(tables, ranked), tables.entities[ranked, 2], 0)
    found = pair_by_alias(hashes, place[np.searchsorted(some, claimants)], claimed)
    return replace(found, left=ranked[found.left], right=ranked[found.right])


def _pair_by_statement(split: SplitTables, same: Ints) -> CandidatePairs:
    """Pair names that a document states to be the same, in facts with these keys."""
    tables = split.tables
    members = split.participants(same)
    ends = [members[members[:, 2] == role] for role in (2, 3)]  # head, tail
    if not all(len(side) for side in ends):
        return make_pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), STATED_SAME)
    both, heads, tails = np.intersect1d(ends[0][:, 0], ends[1][:, 0], return_indices=True)
    left, right = (
        find_positions(tables.entities[:, 0], side[at, 1])
        for side, at in ((ends[0], heads), (ends[1], tails))
    )
    real = _find_things(tables, left) & _find_things(tables, right) & (left != right)
    return make_pairs(left[real], right[real], STATED_SAME)


def _pair_by_vectors(split: SplitTables, near: LshIndex, run: RunParts) -> CandidatePairs:
    """Pair names with close vectors when words and context agree."""
    tables = split.tables
    close = near.cosines >= _MIN_SAME_COSINE
    if not close.any():
        return make_pairs(near.pairs[:0, 0], near.pairs[:0, 0], SIMILARITY)
    rows, keys, things = tables.entities[:, 1], tables.entities[:, 0], tables.entities[:, 3] == 0
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
    decided = tables.merge_decisions
    same, left, right = _find_decided(tables, decided[decided[:, 2] == 1])
    return [
        make_pairs(left[same[:, 3] == by], right[same[:, 3] == by], reason)
        for by, reason in ((0, USER), (1, MODEL))
    ]


def _find_decided(tables: Tables, rows: Array) -> tuple[Array, Ints, Ints]:
    """Those of the decisions of which both names are there, and their positions."""
    keys = tables.entities[:, 0]
    if not len(rows) or not len(keys):
        return rows[:0], np.zeros(0, np.int64), np.zeros(0, np.int64)
    at = np.minimum(bisect_column(keys, rows[:, :2].ravel()), len(keys) - 1).reshape(-1, 2)
    known = (keys[at] == rows[:, :2]).all(axis=1)
    return rows[known], at[known, 0], at[known, 1]


def _find_cannot_links(tables: Tables, some: Ints) -> set[tuple[int, int]]:
    """Return pairs that must not be merged, as numbers among these positions of entities."""
    decided = tables.merge_decisions
    _, left, right = _find_decided(tables, decided[decided[:, 2] == 0])
    both = isin_sorted(left, some) & isin_sorted(right, some)
    ends = (np.searchsorted(some, side[both]).tolist() for side in (left, right))
    found = {(min(pair), max(pair)) for pair in zip(*ends, strict=True)}
    # Senses of one name were split on purpose.
    keys = tables.entities[some, 0]
    base = keys % SENSE_STRIDE
    for key in keys[keys >= SENSE_STRIDE]:
        same_name = np.flatnonzero(base == key % SENSE_STRIDE).tolist()
        found |= {(a, b) for a in same_name for b in same_name if a < b}
    return found


def _merge_tables(tables: Tables, groups: EntityGroups) -> Tables:
    """Replace every entity by the representative of its group, among entities and forms."""
    merged = groups.find_merged()
    if not len(merged):
        return tables
    keys = tables.entities[:, 0]
    into = keys[groups.into]
    gone = np.zeros(len(keys), np.bool_)
    gone[merged] = True
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
