"""Entity resolution over the store's tables: split homonyms, then merge the names of one entity."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from clew.graph.csr import (
    Csr,
    Ints,
    Mask,
    build_csr,
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
    find_ambiguous_names,
    find_common_entities,
    find_senses,
    group_pairs,
    make_pairs,
    pair_by_alias,
    pair_by_spelling,
)
from clew.graph.parts import HERE, RunParts, split_by_key
from clew.index.details import sum_mention_codes
from clew.store.protocol import SENSE_STRIDE, STATED_WEIGHT, Array, Tables
from clew.store.resolved_entities import majority_sense
from clew.text.entity_types import alias_relation_codes
from clew.text.names import FORM, HONORIFICS, TOKEN, encode_token


def split_homonyms(tables: Tables, run: RunParts = HERE) -> tuple[Tables, Ints]:
    """Give every further sense of a name its own key: the name's key plus class * SENSE_STRIDE.

    Also returns which mentions moved, as (name, chunk, sense) keys.
    """
    keys, mentions = tables.entities[:, 0], tables.mentions
    chunk_keys = tables.chunks[:, 0]
    who = find_positions(keys, mentions[:, 0])
    where = find_positions(chunk_keys, mentions[:, 1])
    # Only the company of names that may have several senses is looked at.
    company = _build_company(
        len(chunk_keys), who, where, isin_sorted(who, find_ambiguous_names(who, mentions[:, 4]))
    )
    common = find_common_entities(who, len(keys), len(chunk_keys))
    columns = (who, where, mentions[:, 4])
    sense = find_senses(columns, company, common, tables.entities[:, 2], run)
    sense = _apply_pins(tables, sense)
    if not sense.any():
        return tables, np.zeros((0, 3), np.int64)
    moved = sense > 0
    virtual = mentions[:, 0] + sense * SENSE_STRIDE
    mapped = np.concatenate([virtual[:, None], mentions[:, 1:]], axis=1)
    rows = np.stack([mentions[moved, 0], mentions[moved, 1], virtual[moved]], axis=1)
    fresh, first = np.unique(rows[:, 2], return_index=True)
    base = np.searchsorted(keys, rows[first, 0])
    entities = tables.entities[base].copy()
    entities[:, 0] = fresh
    forms = _copy_forms(tables, fresh, rows[first, 0])
    left = np.isin(keys, sorted_unique(mapped[:, 0]))  # a sense may take all of a name's mentions
    return (
        replace(
            tables,
            entities=np.concatenate([tables.entities[left], entities]),
            mentions=mapped[np.lexsort((mapped[:, 1], mapped[:, 0]))],
            participants=_assign_senses_in_facts(tables, rows),
            forms=np.concatenate([tables.forms[np.isin(tables.forms[:, 0], keys[left])], forms]),
        ),
        rows,
    )


def _apply_pins(tables: Tables, sense: Ints) -> Ints:
    """Apply the senses that a user pinned (entity, chunk, sense) over the detected ones."""
    if not len(tables.sense_pins):
        return sense
    chunks = np.concatenate([tables.mentions[:, 1], tables.sense_pins[:, 1]])
    width = int(chunks.max()) + 1
    codes = tables.mentions[:, 0] * width + tables.mentions[:, 1]
    pins = tables.sense_pins[:, 0] * width + tables.sense_pins[:, 1]
    order = np.argsort(codes)
    at = np.minimum(np.searchsorted(codes[order], pins), max(len(codes) - 1, 0))
    real = codes[order][at] == pins if len(codes) else np.zeros(len(pins), np.bool_)
    found = sense.copy()
    found[order[at[real]]] = tables.sense_pins[real, 2]
    return found


def _copy_forms(tables: Tables, senses: Ints, bases: Ints) -> Array:
    """Copy the forms of a name to its senses."""
    parts = []
    for key, base in zip(senses.tolist(), bases.tolist(), strict=True):
        mine = tables.forms[tables.forms[:, 0] == base].copy()
        mine[:, 0] = key
        parts.append(mine)
    return np.concatenate(parts) if parts else np.zeros((0, 4), np.int64)


def _assign_senses_in_facts(tables: Tables, rows: Ints) -> Array:
    """Assign each fact the sense that most of its chunks have."""
    supports = tables.supports
    sense = {(entity, chunk): key for entity, chunk, key in rows.tolist()}
    moved = {entity for entity, _, _ in rows.tolist()}
    found = tables.participants.copy()
    for at in np.flatnonzero(np.isin(found[:, 1], list(moved))).tolist():
        fact, entity = int(found[at, 0]), int(found[at, 1])
        where = supports[slice(*np.searchsorted(supports[:, 0], [fact, fact + 1])), 1].tolist()
        found[at, 1] = majority_sense(sense.get((entity, chunk), entity) for chunk in where)
    return found


_MIN_NEAR_COSINE = 0.85  # cosine from which a model may be asked about a pair
_MIN_SAME_COSINE = 0.9  # cosine from which words and context decide
_MAX_COMPARED_NAMES = 250_000  # above, names are compared by their words only


@dataclass(frozen=True)
class ResolvedTables:
    """The resolved tables, and the reasons as arrays for the generation's folder."""

    tables: Tables
    arrays: dict[str, Array]
    mention_codes: Ints
    """A hash of the mentions that each entity is merged from."""


def resolve(tables: Tables, run: RunParts = HERE) -> ResolvedTables:
    """Split names of several entities, then merge names of one entity."""
    split, moved = split_homonyms(tables, run)
    near = _find_near_names(tables, run)
    groups, found = _group_names(split, near, run)
    arrays: dict[str, Array] = {
        "near_codes": near.codes,
        "near_pairs": near.pairs,
        "near_cosines": near.cosines,
        "sense_mentions": moved,
        **_record_merges(split.entities[:, 0], groups, found),
    }
    codes = _hash_mentions(split, groups)
    return ResolvedTables(_merge_tables(split, groups), arrays, codes)


def _hash_mentions(tables: Tables, groups: EntityGroups) -> Ints:
    """Return a code of the mentions of each entity that stays, in order."""
    keys = tables.entities[:, 0]
    if not tables.entities[:, 6].any():
        return np.zeros(len(sorted_unique(groups.into)), np.int64)  # nobody has anything to look up
    owners = groups.into[find_positions(keys, tables.mentions[:, 0])]
    codes = sum_mention_codes(len(keys), owners, tables.mentions[:, 0], tables.mentions[:, 1])
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
    tables: Tables, near: LshIndex, run: RunParts
) -> tuple[EntityGroups, CandidatePairs]:
    """Collect all candidate pairs and group them."""
    keys, things = tables.entities[:, 0], tables.entities[:, 3] == 0
    count = len(keys)
    # By name and sense, never by key: keys depend on insertion order.
    ranked = np.lexsort((keys // SENSE_STRIDE, tables.entities[:, 5]))
    order = np.empty(count, np.int64)
    order[ranked] = np.arange(count)
    found = concatenate_pairs(
        [
            *_pair_by_name(tables, things, ranked, order, run),
            _pair_by_statement(tables, things),
            _pair_by_vectors(tables, near, things, run),
            *_pair_by_decision(tables),
        ]
    )
    support = np.bincount(find_positions(keys, tables.mentions[:, 0]), minlength=count)
    given = tables.entities[:, 7] > 0
    # User-given nodes represent what is merged into them.
    support = support + given * (int(support.max(initial=0)) + 1)
    limits = MergeConstraints(_find_classes(tables), given, _find_cannot_links(tables))
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


def _pair_by_statement(tables: Tables, things: Mask) -> CandidatePairs:
    """Pair names that a document states to be the same."""
    same = tables.facts[np.isin(tables.facts[:, 2], list(alias_relation_codes())), 0]
    members = tables.participants[np.isin(tables.participants[:, 0], same)]
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


def _pair_by_vectors(tables: Tables, near: LshIndex, things: Mask, run: RunParts) -> CandidatePairs:
    """Pair names with close vectors when words and context agree."""
    close = near.cosines >= _MIN_SAME_COSINE
    rows, keys = tables.entities[:, 1], tables.entities[:, 0]
    at = np.full(int(max(rows.max(initial=-1), near.pairs.max(initial=-1))) + 1, -1, np.int64)
    main = things & (rows >= 0) & (keys < SENSE_STRIDE)  # senses of one name share its vector
    at[rows[main]] = np.flatnonzero(main)
    pair = at[near.pairs[close]]
    valid = (pair >= 0).all(axis=1)
    pair, cosines = pair[valid], near.cosines[close][valid]
    blocks = split_by_key(tables.entities[pair[:, 0], 2], run.count)
    shared = (_tokenize_names(tables), *_build_context(tables, pair))
    found = run(find_agreeing, [(pair[block],) for block in blocks], shared)
    keep = np.sort(np.concatenate([block[at] for block, at in zip(blocks, found, strict=True)]))
    keep = keep.astype(np.int64)
    return make_pairs(pair[keep, 0], pair[keep, 1], SIMILARITY, cosines[keep])


def _tokenize_names(tables: Tables) -> TokenizedNames:
    tokens = tables.forms[tables.forms[:, 3] == TOKEN]
    entity = find_positions(tables.entities[:, 0], tokens[:, 0])
    order = np.lexsort((tokens[:, 2], entity))
    return TokenizedNames(
        row_starts(entity, len(tables.entities)),
        tokens[order, 1],
        stopwords=_token_codes("the a an of de"),
        of_code=encode_token("of"),
        titles=frozenset(map(encode_token, HONORIFICS)),
        numerals=_token_codes("i v x l c d m"),
    )


@cache
def _token_codes(words: str) -> frozenset[int]:
    return frozenset(map(encode_token, words.split()))


def _build_context(tables: Tables, pairs: Ints) -> tuple[Csr, Csr]:
    """Return the chunks of paired entities, and the entities there that are not too common."""
    keys, chunk_keys = tables.entities[:, 0], tables.chunks[:, 0]
    who = find_positions(keys, tables.mentions[:, 0])
    where = find_positions(chunk_keys, tables.mentions[:, 1])
    is_paired = np.zeros(len(keys), np.bool_)
    is_paired[pairs] = True
    mine = is_paired[who]
    common = find_common_entities(who, len(keys), len(chunk_keys))
    company = _build_company(len(chunk_keys), who, where, mine, common)
    return build_csr(len(keys), who[mine], where[mine]), company


def _build_company(
    chunks: int, who: Ints, where: Ints, mine: Mask, common: Mask | None = None
) -> Csr:
    """Return the entities, except `common` ones, of each chunk with one of the mentions `mine`."""
    is_near = np.zeros(chunks, np.bool_)
    is_near[where[mine]] = True
    kept = is_near[where] if common is None else is_near[where] & ~common[who]
    return build_csr(chunks, where[kept], who[kept])


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


def _find_classes(tables: Tables) -> Ints:
    """Return the most frequent class of each entity; of equals the first."""
    keys = tables.entities[:, 0]
    found = np.zeros(len(keys), np.int64)
    known = tables.mentions[tables.mentions[:, 4] > 0]
    if not len(known):
        return found
    # One number for entity and class: sorting numbers is many times faster than sorting rows.
    width = int(known[:, 4].max()) + 1
    codes = find_positions(keys, known[:, 0]) * width + known[:, 4]
    pair, times = np.unique(codes, return_counts=True)
    pair = pair[np.lexsort((-(pair % width), times))]  # the best last, which then stays
    found[pair // width] = pair % width
    return found


def _merge_tables(tables: Tables, groups: EntityGroups) -> Tables:
    """Replace every entity by the representative of its group, in all tables."""
    keys = tables.entities[:, 0]
    into = keys[groups.into]
    gone = into != keys
    if not gone.any():
        return tables
    mentions = tables.mentions.copy()
    mentions[:, 0] = into[find_positions(keys, mentions[:, 0])]
    participants = tables.participants.copy()
    members = groups.into[find_positions(keys, participants[:, 1])]
    participants[:, 1] = keys[members]
    own = np.empty((int(gone.sum()), 4), np.int64)
    own[:, 0], own[:, 1] = into[gone], tables.entities[gone, 2]
    own[:, 2], own[:, 3] = STATED_WEIGHT, FORM
    forms = tables.forms.copy()
    bearers = find_positions(keys, forms[:, 0])
    stays = ~(gone[bearers] & (forms[:, 3] == TOKEN))
    forms[:, 0] = into[bearers]
    entities = tables.entities.copy()
    np.add.at(entities[:, 6], groups.into[gone], tables.entities[gone, 6])
    return replace(
        tables,
        entities=entities[~gone],
        mentions=_combine_mentions(mentions),
        # A fact with two names of one entity holds it once per role.
        participants=participants[_find_distinct_members(participants, members, len(keys))],
        forms=_merge_forms(np.concatenate([forms[stays], own]), tables.entities),
    )


def _find_distinct_members(participants: Array, members: Ints, entities: int) -> Ints:
    """Return the rows with distinct fact, member and role, ascending, each where it is first."""
    facts = np.cumsum(np.diff(participants[:, 0], prepend=participants[:1, 0]) != 0)
    roles = int(participants[:, 2].max(initial=0)) + 1
    codes = (facts * entities + members) * roles + participants[:, 2]
    found: Ints = np.sort(np.unique(codes, return_index=True)[1])
    return found


def _combine_mentions(mentions: Array) -> Array:
    """Keep one row per entity and chunk: span counts add up, the highest claim counts."""
    mentions = mentions[np.lexsort((mentions[:, 1], mentions[:, 0]))]
    starts = np.flatnonzero(_is_first_of_pair(mentions))
    found = mentions[starts].copy()
    found[:, 2] = np.add.reduceat(mentions[:, 2], starts)
    found[:, 3] = np.maximum.reduceat(mentions[:, 3], starts)
    return found


def _merge_forms(forms: Array, entities: Array) -> Array:
    """Keep each form once per entity, the most certain; a name is no form of itself."""
    forms = forms[np.lexsort((forms[:, 3], -forms[:, 2], forms[:, 1], forms[:, 0]))]
    own = entities[find_positions(entities[:, 0], forms[:, 0]), 2] == forms[:, 1]
    kept: Array = forms[(_is_first_of_pair(forms) & ~own) | (forms[:, 3] == TOKEN)]
    return kept


def _is_first_of_pair(rows: Array) -> Mask:
    """Whether a row is the first with its two leading columns; rows are sorted by them."""
    first = np.ones(len(rows), np.bool_)
    first[1:] = (np.diff(rows[:, :2], axis=0) != 0).any(axis=1)
    return first
