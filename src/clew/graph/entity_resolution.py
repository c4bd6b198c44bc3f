"""Entity resolution: which names are one entity, and which name is several.

Candidate pairs come from spelling, aliases and close vectors (locality-sensitive hashing); they are
grouped greedily, best first, under constraints. Homonyms are mentions of one name with different
classes and contexts. Nothing depends on the order of insertion.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, Floats, Ints, Mask, expand_ranges, group_equals, sorted_unique
from clew.graph.parts import HERE, RunParts, split_by_key, split_range

# Why two names are one entity, the most certain reason first.
USER, SPELLING, STATED_SAME, ALIAS, SIMILARITY, MODEL = range(6)
MERGE_REASONS = (
    "merged by the user",
    "the same name in another spelling",
    "a document says they are the same",
    "a stated alias",
    "similar names and vectors, and shared neighbours",
    "the model judged them the same",
)
# Bit offsets in a token's code (see clew.text.names.encode_token).
_LENGTH_SHIFT, _FIRST_LETTER_SHIFT = 19, 53
# Of pairs with cosine .95 these find 98 %, of those with .9 nearly 80 %.
_TABLES, _BITS = 24, 18
_SEED = 20240607
_MAX_BUCKET = 2000  # comparisons per vector and bucket; only huge buckets reach it
_MAX_IDENTICAL = 8  # names with the same vector
_PAIR_BLOCK = 20_000  # pairs per block
_SAME_SENSE_OVERLAP = 0.1  # share of the smaller context at which two uses are one sense
_MAX_CLASS_BITS = 62  # classes below are counted as bits of a number
_COMMON_SHARE = 0.02  # an entity in a larger share of the chunks carries no context


@dataclass(frozen=True, slots=True)
class CandidatePairs:
    """Columns: two entities, the reason they may be one, and the certainty (0 to 1)."""

    left: Ints
    right: Ints
    reason: Ints
    score: Floats

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.left)


def make_pairs(
    left: NDArray[np.integer], right: NDArray[np.integer], reason: int, score: float | Floats = 1.0
) -> CandidatePairs:
    """Build pairs that share one reason."""
    scores = np.broadcast_to(np.asarray(score, np.float32), (len(left),))
    return CandidatePairs(
        left.astype(np.int64), right.astype(np.int64), np.full(len(left), reason, np.int64), scores
    )


def concatenate_pairs(many: list[CandidatePairs]) -> CandidatePairs:
    """Concatenate pairs."""
    return CandidatePairs(
        np.concatenate([p.left for p in many]),
        np.concatenate([p.right for p in many]),
        np.concatenate([p.reason for p in many]),
        np.concatenate([p.score for p in many]),
    )


@dataclass(frozen=True, slots=True)
class EntityGroups:
    """For each entity the one it is merged into (itself when not), and the pairs used."""

    into: Ints
    pair_index: Ints
    """Indices of the pairs that merged groups."""

    def find_merged(self) -> Ints:
        """The entities that are merged into others."""
        return np.flatnonzero(self.into != np.arange(len(self.into)))


@dataclass(frozen=True, slots=True)
class MergeConstraints:
    """Constraints on merging: classes, user-given nodes, and cannot-link pairs."""

    classes: Ints
    given: Mask
    cannot_link: set[tuple[int, int]]


def group_pairs(
    found: CandidatePairs, order_of: Ints, support: Ints, bars: MergeConstraints
) -> EntityGroups:
    """Merge pairs greedily, the most certain first, unless a constraint forbids it.

    A pair that a user merged is merged whatever the constraints say.
    `order_of` ranks entities by content, not by insertion, so that ties break the same way in any
    order of adding; the member with the most support represents its group.
    """
    count = len(support)
    members: dict[int, list[int]] = {}
    head = np.arange(count)
    # One bit a class: what a user merged may be a person and a place, and stays close to both.
    kinds = np.where(bars.classes > 0, np.int64(1) << bars.classes, 0)
    given = bars.given.copy()
    by: list[int] = []
    low = np.minimum(order_of[found.left], order_of[found.right])
    high = np.maximum(order_of[found.left], order_of[found.right])
    for at in np.lexsort((high, low, -found.score, found.reason)).tolist():
        a, b = int(head[found.left[at]]), int(head[found.right[at]])
        by_hand = found.reason[at] == USER
        classes_differ = kinds[a] and kinds[b] and not kinds[a] & kinds[b]
        if a == b or (not by_hand and (classes_differ or (given[a] and given[b]))):
            continue
        mine, theirs = members.get(a, [a]), members.get(b, [b])
        if bars.cannot_link and not by_hand and _is_cannot_link(mine, theirs, bars.cannot_link):
            continue
        keep, move = (a, b) if (-support[a], order_of[a]) <= (-support[b], order_of[b]) else (b, a)
        by.append(at)
        head[members.pop(move, [move])] = keep
        members[keep] = [*mine, *theirs]
        kinds[keep], given[keep] = kinds[a] | kinds[b], given[a] or given[b]
    return EntityGroups(head, np.array(by, np.int64))


def _is_cannot_link(mine: list[int], theirs: list[int], apart: set[tuple[int, int]]) -> bool:
    return any((min(x, y), max(x, y)) in apart for x in mine for y in theirs)


def pair_by_spelling(hashes: Ints) -> CandidatePairs:
    """Pair names with the same loose key, each with the first of them."""
    _, first, group = group_equals(hashes)
    other = np.flatnonzero(first[group] != np.arange(len(hashes)))
    return make_pairs(first[group][other], other, SPELLING)


def pair_by_alias(hashes: Ints, claimants: Ints, claimed: Ints) -> CandidatePairs:
    """Pair a stated alias with the entity of that name, when only one name claims it."""
    names, owner, _ = group_equals(hashes)
    at = np.minimum(np.searchsorted(names, claimed), max(len(names) - 1, 0))
    real = (names[at] == claimed) if len(names) else np.zeros(len(claimed), np.bool_)
    claimants, claimed, at = claimants[real], claimed[real], at[real]
    # Two spellings of one claimant are one claim; an alias with two different claimants is dropped.
    claims = np.unique(np.stack([claimed, hashes[claimants]]), axis=1)
    alias, many = np.unique(claims[0], return_counts=True)
    alone = many[np.searchsorted(alias, claimed)] == 1 if len(alias) else np.zeros(0, np.bool_)
    alone &= hashes[claimants] != claimed
    return make_pairs(claimants[alone], owner[at[alone]], ALIAS)


@dataclass(frozen=True, slots=True)
class TokenizedNames:
    """The tokens of names as codes, in order, and the codes with a special role."""

    starts: Ints
    codes: Ints
    stopwords: frozenset[int]
    """Words that may be missing, like articles."""
    of_code: int
    titles: frozenset[int]
    """Honorifics that may precede or follow a name, like "count"."""
    numerals: frozenset[int]
    """Single letters that are Roman numerals, not initials."""

    def tokens(self, at: int) -> list[int]:
        """Return one name's tokens."""
        found: list[int] = self.codes[self.starts[at] : self.starts[at + 1]].tolist()
        return found


def find_agreeing(near: Ints, words: TokenizedNames, chunks_of: Csr, company: Csr) -> list[int]:
    """Which pairs of names agree in their words, and share context but no chunk."""
    return [
        at
        for at, (one, other) in enumerate(near.tolist())
        if has_same_words(words, one, other) and _shares_context(one, other, chunks_of, company)
    ]


def has_same_words(words: TokenizedNames, one: int, other: int) -> bool:
    """Tell whether two names have the same words, up to title position, "of" and initials."""
    mine, theirs = words.tokens(one), words.tokens(other)
    a, b = ([w for w in name if w not in words.stopwords] for name in (mine, theirs))
    if not a or not b:
        return False
    without_titles = [[w for w in name if w not in words.titles] for name in (a, b)]
    if sorted(a) == sorted(b) and without_titles[0] == without_titles[1]:
        return True
    if (words.of_code in mine) != (words.of_code in theirs) and _is_rotation(a, b):
        return True
    return len(a) == len(b) and _is_abbreviation(a, b, words.numerals)


def _is_rotation(a: list[int], b: list[int]) -> bool:
    """Tell whether one is a rotation of the other: "University of Oslo", "Oslo University"."""
    return a != b and len(a) == len(b) and any(a[at:] + a[:at] == b for at in range(1, len(a)))


def _is_abbreviation(a: list[int], b: list[int], numerals: frozenset[int]) -> bool:
    """Tell whether words are pairwise equal or initials, the last one in full."""
    if a[-1] != b[-1] or a == b:
        return False
    for one, other in zip(a, b, strict=True):
        short = min(one, other, key=_token_length)
        if one != other and (
            _token_length(short) != 1
            or short in numerals
            or _first_letter(one) != _first_letter(other)
        ):
            return False
    return True


def _token_length(code: int) -> int:
    return code >> _LENGTH_SHIFT & 63


def _first_letter(code: int) -> int:
    return code >> _FIRST_LETTER_SHIFT & 511


def _shares_context(one: int, other: int, chunks_of: Csr, members: Csr) -> bool:
    left, right = chunks_of.row(one), chunks_of.row(other)
    if np.intersect1d(left, right).size:
        return False  # a chunk with both names means two entities
    left_context = np.unique(np.concatenate([members.row(int(c)) for c in left] or [left]))
    right_context = np.unique(np.concatenate([members.row(int(c)) for c in right] or [right]))
    return bool(np.intersect1d(left_context, right_context).size)


@dataclass(frozen=True, slots=True)
class LshIndex:
    """Bucket codes of every vector so far, and the close pairs among them."""

    codes: NDArray[np.int32]  # vectors x tables
    pairs: Ints  # pairs x 2, the smaller row first
    cosines: Floats


def empty_lsh_index() -> LshIndex:
    """Return an index without vectors."""
    return LshIndex(
        np.zeros((0, _TABLES), np.int32), np.zeros((0, 2), np.int64), np.zeros(0, np.float32)
    )


def extend_lsh_index(
    known: LshIndex, vectors: Floats, least: float, run: RunParts = HERE
) -> LshIndex:
    """Add the vectors after the last one that `known` holds."""
    first = len(known.codes)
    if first >= len(vectors):
        return known
    fresh = _hash_vectors(np.asarray(vectors[first:]))
    fresh[_find_uninformative(vectors)[first:]] = -1
    codes = np.concatenate([known.codes, fresh])
    tables = [(np.ascontiguousarray(codes[:, table]), first) for table in range(_TABLES)]
    both = sorted_unique(np.concatenate(run(_find_bucket_pairs, tables)))
    found = np.stack([both // len(codes), both % len(codes)], axis=1)
    ranges = split_range(len(found), run.count)
    cosine = np.concatenate(run(_measure_pairs, [(found[some],) for some in ranges], (vectors,)))
    close = cosine >= least
    return LshIndex(
        codes,
        np.concatenate([known.pairs, found[close]]),
        np.concatenate([known.cosines, cosine[close]]),
    )


def _measure_pairs(pairs: Ints, vectors: Floats) -> Floats:
    """The cosine of each pair of rows."""
    blocks = (pairs[at : at + _PAIR_BLOCK] for at in range(0, max(len(pairs), 1), _PAIR_BLOCK))
    found: Floats = np.concatenate(
        [
            np.einsum("ij,ij->i", *(np.asarray(vectors[ends], np.float32) for ends in some.T))
            for some in blocks
        ]
    ).astype(np.float32)
    return found


def _find_uninformative(vectors: Floats) -> Mask:
    """Mark vectors that many names share exactly: an embedder's output for unknown words."""
    start = np.ascontiguousarray(vectors[:, :8])
    prefixes = start.view(np.dtype((np.void, start.shape[1] * start.itemsize))).ravel()
    _, group, times = np.unique(prefixes, return_inverse=True, return_counts=True)
    found: Mask = times[group] >= _MAX_IDENTICAL
    return found


def _hash_vectors(vectors: Floats) -> NDArray[np.int32]:
    planes = np.random.default_rng(_SEED).standard_normal(
        (vectors.shape[1], _TABLES * _BITS), np.float32
    )
    powers = (1 << np.arange(_BITS)).astype(np.float32)  # exact: the sums stay below 2^24
    parts = []
    for at in range(0, len(vectors), 8192):
        sides = (vectors[at : at + 8192] @ planes > 0).astype(np.float32)
        parts.append((sides.reshape(-1, _TABLES, _BITS) @ powers).astype(np.int32))
    return np.concatenate(parts)


def _find_bucket_pairs(column: NDArray[np.int32], first: int) -> Ints:
    """Pairs that share a bucket of one table, at least one of them at `first` or later."""
    count = len(column)
    affected = np.isin(column, np.unique(column[first:])) if first else np.ones(count, np.bool_)
    members = np.flatnonzero(affected & (column >= 0))
    members = members[np.argsort(column[members], kind="stable")]
    edges = np.flatnonzero(np.diff(column[members])) + 1
    starts = np.concatenate([[0], edges])
    ends = np.concatenate([edges, [len(members)]])
    # Each member is compared with those after it in its bucket, up to a bound.
    member = np.arange(len(members))
    last = np.repeat(ends, ends - starts)
    left, right = expand_ranges(member + 1, np.minimum(last, member + 1 + _MAX_BUCKET))
    one, other = members[left], members[right]
    low, high = np.minimum(one, other), np.maximum(one, other)
    keep = high >= first
    return sorted_unique(low[keep] * count + high[keep])


def find_senses(
    mentions: tuple[Ints, Ints, Ints],
    company: Csr,
    common: Mask,
    hashes: Ints,
    run: RunParts = HERE,
) -> Ints:
    """Return for each mention the class of its sense; 0 for a name's main sense.

    Columns are the entity, chunk and class (0 unknown) of each mention, sorted by entity; `company`
    maps a chunk with an ambiguous name to all its entities. Names with a single class have one
    sense; the others are looked at by blocks of the `hashes` of names.
    """
    entities, chunks, classes = mentions
    found = np.zeros(len(entities), np.int64)
    several = find_ambiguous_names(entities, classes)
    if not len(several):
        return found
    parts = []
    places = []
    for block in split_by_key(hashes[several], run.count):
        some = several[block]
        begins, ends = (np.searchsorted(entities, some, side) for side in ("left", "right"))
        at = expand_ranges(begins, ends)[1]
        places.append(at)
        parts.append((some.tolist(), (ends - begins).tolist(), chunks[at], classes[at]))
    for at, senses in zip(places, run(_split_names, parts, (company, common)), strict=True):
        found[at] = senses
    return found


def _split_names(
    names: list[int], counts: list[int], chunks: Ints, classes: Ints, company: Csr, common: Mask
) -> Ints:
    """The senses of the mentions of several names, one after another."""
    found = np.zeros(len(chunks), np.int64)
    first = 0
    for name, count in zip(names, counts, strict=True):
        mine = slice(first, first + count)
        found[mine] = _split_name(name, chunks[mine], classes[mine], company, common)
        first += count
    return found


def find_ambiguous_names(entities: Ints, classes: Ints) -> Ints:
    """Return the names that are mentioned with several classes; both ascend by name."""
    if len(entities) and int(classes.max()) < _MAX_CLASS_BITS and int(classes.min()) >= 0:
        first = np.flatnonzero(np.append(True, entities[1:] != entities[:-1]))
        bits = np.bitwise_or.reduceat(np.int64(1) << classes, first) & ~np.int64(1)
        found: Ints = entities[first[(bits & (bits - 1)) != 0]]  # more than one bit
        return found
    known = classes > 0
    width = int(classes.max(initial=0)) + 1
    name = sorted_unique(entities[known] * width + classes[known]) // width
    return sorted_unique(name[1:][name[1:] == name[:-1]])


def _split_name(name: int, chunks: Ints, classes: Ints, members: Csr, common: Mask) -> Ints:
    contexts: dict[int, set[int]] = defaultdict(set)
    chunks_of: dict[int, set[int]] = defaultdict(set)
    for chunk, kind in zip(chunks.tolist(), classes.tolist(), strict=True):
        contexts[kind] |= {int(e) for e in members.row(chunk) if e != name and not common[e]}
        chunks_of[kind].add(chunk)
    kinds = sorted(kind for kind in contexts if kind)
    sense_of = {kind: kind for kind in kinds}
    for at, one in enumerate(kinds):
        for other in kinds[at + 1 :]:
            if _is_same_sense(contexts[one], contexts[other]) or chunks_of[one] & chunks_of[other]:
                old, new = sense_of[other], sense_of[one]
                sense_of = {kind: new if h == old else h for kind, h in sense_of.items()}
    if len(set(sense_of.values())) < 2:
        return np.zeros(len(chunks), np.int64)
    main = _find_main_sense(classes, sense_of)
    sense = {kind: 0 if h == main else h for kind, h in sense_of.items()}
    return np.array(
        [
            sense[kind]
            if kind
            else sense[_find_closest_class(chunk, name, contexts, sense_of, main, members)]
            for chunk, kind in zip(chunks.tolist(), classes.tolist(), strict=True)
        ],
        np.int64,
    )


def _is_same_sense(one: set[int], other: set[int]) -> bool:
    """Tell whether two contexts overlap enough; an empty context always does."""
    smaller = min(len(one), len(other))
    return not smaller or len(one & other) >= _SAME_SENSE_OVERLAP * smaller


def _find_main_sense(classes: Ints, sense_of: Mapping[int, int]) -> int:
    """Return the sense with the most mentions; of equals the first class."""
    counts: dict[int, int] = defaultdict(int)
    for kind in classes.tolist():
        if kind:
            counts[sense_of[kind]] += 1
    return min(counts, key=lambda kind: (-counts[kind], kind))


def _find_closest_class(
    chunk: int,
    name: int,
    contexts: Mapping[int, set[int]],
    senses: Mapping[int, int],
    main: int,
    members: Csr,
) -> int:
    """Return the class whose context overlaps most with a mention without a class."""
    context = {int(e) for e in members.row(chunk) if e != name}
    return max(sorted(senses), key=lambda k: (len(context & contexts[k]), senses[k] == main, -k))


def find_common_entities(mentioned: Ints, entities: int, chunks: int) -> Mask:
    """Mark entities that are mentioned in too many chunks to carry context."""
    met = np.bincount(mentioned, minlength=entities)
    found: Mask = met > max(20, _COMMON_SHARE * chunks)
    return found
