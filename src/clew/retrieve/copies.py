"""Near copies of a passage: told by their own text, titles and headings apart, and counted once.

Mirrors and versions of a page stand under titles of their own, so that vectors of title and text
differ. Vectors say which passages are worth comparing; runs of words decide. Pages of one template
(invoices, minutes) have as much in common as copies that another footer or spelling tells apart:
what is asked decides. Where each of two says a word that the other does not, and the question is
about the sentences that differ, neither is a copy. A line with a date does not count. What a
question asks for tells versions apart wherever they say it: in the text, a line with a date, a
title or the name of the document ("v12").
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import PurePosixPath
from typing import Any
from zlib import crc32

import numpy as np

from clew.context import Context, TraceStep
from clew.graph.csr import Floats, Ints, Mask, sorted_unique
from clew.index.cosines import compare_rows
from clew.index.view import View
from clew.retrieve.best_units import stems_of, weigh_stems
from clew.retrieve.labels import has_vectors
from clew.retrieve.pack import fetch_chunks
from clew.retrieve.piece_differences import AskedPieces, Pieces, is_difference_asked
from clew.retrieve.question import content_words
from clew.retrieve.rank import top_positions
from clew.text.dates import parse_whole_date
from clew.text.unicode import split_words
from clew.types import Chunk

# Least cosine, with titles, of passages whose own texts may be copies. Long ones below the second
# are copies only if they mention the same, but for so many entities: their titles and dates.
_NEAR, _NEAR_IF_LONG, _LONG, _OTHER_MENTIONS = 0.6, 0.9, 60, 3
# Copies mention the same; if not nearly the same entities were found in them, at least a third.
_SAME_MENTIONS, _FEW_MENTIONS = 1 / 3, 4
# Least share of the runs of words of the shorter of two copies that the longer one has, and least
# length of the shorter one beside it.
_SAME_TEXT, _SAME_LENGTH = 0.92, 0.8
_RUN = 3  # words of a run
# One run in so many is sampled; of at least so many, copies have at least this share in common.
_SAMPLED, _ENOUGH, _SAMPLE_SHARE = 8, 10, 0.6
_LOOKED_AT, _CROWD = 30, 15  # of so many first passages, copies of one that crowd others out
_MAX_CROWDS = 5  # of one ranking that are thinned out
_MORE_WORDS, _TITLE_WORDS = 1.1, 20  # how much longer copies elsewhere are, and their titles
_DATE_PIECES, _LABEL_WORDS = 2, 4  # first and last lines that may be a date, and words before it
_NAMED = 3  # documents that the trace names
_MAX_KEPT = 2048  # chunks whose own texts a view keeps
_HEADING = re.compile(r"^\s*#.*$", re.MULTILINE)
_DIGITS = re.compile(r"\d+")
_JOINED_NUMBER = re.compile(r"\d+(?:[-/.:]\d+)+")  # a date, a time, a version
_NUMBER = re.compile(r"\d+(?:[-/.:]\d+)*")
_PIECE = re.compile(r"\n+|(?<=[.!?])\s+")
_DATELINE = re.compile(r"\A((?:\S+ ){1,6}?)[-–—] +(?=\S)")  # "Oslen (Post) – " before the text


@dataclass(frozen=True)
class _OwnText:
    """What two passages are compared by."""

    words: frozenset[str]
    runs: frozenset[int]
    """A number for each run of words of a sentence; those of `words` tell which numbers."""
    sample: frozenset[int]
    """Some of the runs, the same in all texts that have them; enough to tell most pairs apart."""
    split: Sequence[Sequence[str]]
    """The words of each sentence or line."""

    @cached_property
    def pieces(self) -> Pieces:
        """Made where it is asked for: few passages have much the same text as another one."""
        return Pieces.read(
            {crc32(" ".join(one).encode()): _find_beginnings(one) for one in self.split}
        )


@dataclass(frozen=True, slots=True)
class _WholeText:
    """What copies of one passage still differ in."""

    telling: frozenset[str]
    """Words and numbers of the whole chunk, its title and its document's name."""
    whole: int
    """A number for all of this: of exact copies the same."""
    name: str
    """What its document is called."""


async def group_copies(ctx: Context, positions: Ints) -> tuple[Ints, Mask]:
    """Return for each chunk the place in `positions` of the one that it is a copy of, or its own.

    A passage that says another of the question's words is no copy: it may hold the answer; those
    without it are copies of it. Beside the places: which differ from it in nothing at all.
    """
    group = await _group_pairs(ctx, positions, find_pairs(ctx, positions))
    exact = np.zeros(len(group), np.bool_)
    copied = np.flatnonzero(group != np.arange(len(group)))
    if len(copied):
        some = np.union1d(copied, group[copied]).tolist()
        read = await _read_whole_texts(ctx, positions[some].tolist())
        whole = {at: read[int(positions[at])].whole for at in some}
        exact[copied] = [whole[at] == whole[int(group[at])] for at in copied.tolist()]
    return group, exact


async def describe_copies(ctx: Context, kept: Ints, copies: Ints) -> TraceStep:
    """Say in the trace of which documents copies are folded, which stay, and how many there are."""
    some = [*dict.fromkeys(kept.tolist())][:_NAMED], copies.tolist()[:_NAMED]
    read = await _read_whole_texts(ctx, [*some[0], *some[1]])
    names = [", ".join(read[at].name for at in ones if at in read) for ones in some]
    more = len(copies) - len(some[1])
    which = f"{names[1]}{f' and {more} more' if more else ''}, kept {names[0]}"
    count = len(copies)
    said = "1 near copy folded" if count == 1 else f"{count} near copies folded"
    return TraceStep("copies", which, said, 0.0)


async def _group_pairs(ctx: Context, positions: Ints, near: Mask) -> Ints:
    """Group copies; `near` are the pairs that are worth comparing."""
    count = len(positions)
    group = np.arange(count)
    involved = np.flatnonzero(near.any(axis=1)).tolist()
    if not involved:
        return group
    read = await _read_own_texts(ctx, positions[involved].tolist())
    texts = {at: read[int(positions[at])] for at in involved if int(positions[at]) in read}
    near = near & _may_be_copies(texts, count)
    if not near.any():
        return group
    weights = weigh_stems(ctx.view, ctx.question)
    weights = {stem.removesuffix("s"): weight for stem, weight in weights.items()}
    several = _find_alike(texts, near, weights)
    if not several:
        return group
    asked = _find_asked(ctx.question)
    whole = await _read_whole_texts(ctx, [int(positions[at]) for many in several for at in many])
    for members in several:
        said = {at: whole[int(positions[at])].telling & asked for at in members}
        full = [at for at in members if not any(said[at] < said[one] for one in members)]
        for at in members:
            # The first of those that say as much of what is asked for, or more.
            group[at] = next(one for one in full if said[at] <= said[one])
    return group


def _find_alike(
    texts: Mapping[int, _OwnText], near: Mask, asked: Mapping[str, float]
) -> list[list[int]]:
    """Return the texts that say the same as one before them, each with all that do."""
    alike: dict[int, list[int]] = {}
    read = cache(lambda at: AskedPieces.read(texts[at].pieces, asked))

    def say_the_same(at: int, one: int) -> bool:
        own, other = texts[at], texts[one]
        if not _have_same_text(own, other):
            return False
        if not (own.words - other.words and other.words - own.words):
            return True  # one of them only leaves out what the other says
        return not is_difference_asked(read(at), read(one))

    for at in texts:
        first = next((one for one in alike if near[at, one] and say_the_same(at, one)), at)
        alike.setdefault(first, []).append(at)
    return [members for members in alike.values() if len(members) > 1]


def find_pairs(ctx: Context, positions: Ints, crowd: int = 2) -> Mask:
    """Return which pairs are worth comparing: all of them where vectors do not tell.

    Where no chunk is near to enough others for a `crowd`, nothing else is looked at.
    """
    count, told = len(positions), can_compare_vectors(ctx)
    if told and count:
        floats, whole = (_NEAR, _NEAR_IF_LONG, _SAME_MENTIONS), (_LONG, _FEW_MENTIONS)
        found = ctx.view.find_alike(positions, (floats, (*whole, _OTHER_MENTIONS)), crowd)
        if found is not None:
            return found
    if told:
        cosines = compare_rows(ctx.view.vectors("chunk", positions))
        near: Mask = cosines >= _NEAR
    else:
        near = np.ones((count, count), np.bool_)
    np.fill_diagonal(near, val=False)
    others = np.count_nonzero(near, axis=1)
    if not count or int(others.max()) + 1 < crowd:
        return near
    some = np.flatnonzero(others)
    pairs = np.ix_(some, some)
    sure = np.ones((len(some), len(some)), np.bool_)
    if told:
        long = ctx.view.bm25.lengths[positions[some]] >= _LONG
        sure = (cosines[pairs] >= _NEAR_IF_LONG) | ~(long[:, None] & long)
    near[pairs] &= _mention_alike(ctx.view, positions[some], sure)
    return near


def _may_be_copies(texts: Mapping[int, _OwnText], count: int) -> Mask:
    """Return which pairs are of like size and have most of the sampled runs in common.

    All at once: pages of one kind are many and alike, and whole texts take long to compare.
    """
    sizes, sampled = np.zeros(count), np.zeros(count)
    column = {
        run: at for at, run in enumerate({run for own in texts.values() for run in own.sample})
    }
    has = np.zeros((count, len(column)), np.float32)
    for at, own in texts.items():
        sizes[at], sampled[at] = len(own.runs), len(own.sample)
        has[at, [column[run] for run in own.sample]] = 1
    least = np.minimum(sampled[:, None], sampled)
    unlike = (least >= _ENOUGH) & (compare_rows(has) < _SAMPLE_SHARE * least)
    shorter, longer = np.minimum(sizes[:, None], sizes), np.maximum(sizes[:, None], sizes)
    like: Mask = shorter >= _SAME_LENGTH * longer
    return like & ~unlike


def _mention_alike(view: View, positions: Ints, sure: Mask) -> Mask:
    """Return which pairs mention much the same, or too little to tell: texts need not be read.

    Those that are not `sure` to be near each other must mention nearly the same.
    """
    links, size = view.links("chunk_entity"), len(positions)
    which, edge = links.edges_of(positions)
    entity, which = np.divmod(sorted_unique(links.columns[edge] * np.int64(size) + which), size)
    count = np.bincount(which, minlength=size)
    # What only one of them mentions is not shared: most names.
    again = np.zeros(len(entity), np.bool_)
    np.equal(entity[1:], entity[:-1], out=again[1:])
    common = again.copy()
    common[:-1] |= again[1:]
    column = np.cumsum(~again[common]) - 1
    mentions = np.zeros((size, int(column[-1]) + 1 if len(column) else 0), np.float32)
    mentions[which[common], column] = 1
    fewer = np.minimum(count[:, None], count)
    shared = compare_rows(mentions)
    same = np.maximum(count[:, None], count) - shared <= _OTHER_MENTIONS
    alike: Mask = (shared >= _SAME_MENTIONS * fewer) | (fewer < _FEW_MENTIONS)
    alike &= sure | same
    return alike


async def _read_own_texts(ctx: Context, positions: Sequence[int]) -> dict[int, _OwnText]:
    """Return what chunks are compared by; a view keeps it: questions find the same chunks."""
    kept: dict[int, _OwnText] = ctx.view.memo.setdefault("own texts", {})
    if missing := _find_missing(kept, positions):
        fetched = await fetch_chunks(ctx, missing)
        kept.update({at: _read_own_text(one) for at, one in fetched.items()})
    return {at: kept[at] for at in positions if at in kept}


async def _read_whole_texts(ctx: Context, positions: Sequence[int]) -> dict[int, _WholeText]:
    """Return what copies may differ in; a view keeps it."""
    kept: dict[int, _WholeText] = ctx.view.memo.setdefault("whole texts of copies", {})
    if missing := _find_missing(kept, positions):
        fetched = await fetch_chunks(ctx, missing)
        names = await ctx.snapshot.names([chunk.document for chunk in fetched.values()])
        kept.update(
            {at: _read_whole_text(one, names.get(one.document, ())) for at, one in fetched.items()}
        )
    return {at: kept[at] for at in positions if at in kept}


def _find_missing(kept: dict[int, Any], positions: Sequence[int]) -> Sequence[int]:
    """Return the positions that are not kept; all of them where too many would be."""
    missing = [at for at in positions if at not in kept]
    if len(kept) + len(missing) <= _MAX_KEPT:
        return missing
    kept.clear()
    return positions


def _read_own_text(chunk: Chunk) -> _OwnText:
    """Return the words of a chunk and their runs, without titles and headings."""
    pieces = _split_own_pieces(chunk)
    runs = frozenset(run for piece in pieces for run in _number_runs(piece))
    sample = frozenset(run for run in runs if run % _SAMPLED == 0)
    words = frozenset(word for piece in pieces for word in piece)
    return _OwnText(words, runs, sample, pieces)


def _number_runs(words: Sequence[str]) -> Iterator[int]:
    """Yield a number for each run of words, all numbers in them alike."""
    masked = [word if word.isalpha() else _DIGITS.sub("0", word) for word in words]
    for at in range(max(1, len(words) - _RUN + 1)):
        yield crc32(" ".join(masked[at : at + _RUN]).encode())


def _read_whole_text(chunk: Chunk, names: Sequence[str]) -> _WholeText:
    """Return what a chunk says, with its title and the names of its document."""
    paths = [PurePosixPath(name) for name in names]
    stems = " ".join(path.stem for path in paths)
    telling = _split_telling(f"{chunk.title} {chunk.text} {stems}")
    whole = crc32(" ".join([chunk.title, *split_words(chunk.text)]).encode())
    return _WholeText(telling, whole, paths[0].name if paths else chunk.title)


def _split_telling(text: str) -> frozenset[str]:
    """Return the words of a text and their beginnings, and its numbers.

    Those with marks inside them are whole, and of "v12" the number counts, too.
    """
    joined = _JOINED_NUMBER.findall(text)
    words = split_words(_JOINED_NUMBER.sub(" ", text))
    numbers = [run for word in words if not word.isdigit() for run in _DIGITS.findall(word)]
    return frozenset((*joined, *words, *numbers, *_mark_beginnings(words)))


def _find_beginnings(words: Iterable[str]) -> frozenset[str]:
    """Return the beginnings of words, without the sign of a plural: "sum" and "sums" are one."""
    return frozenset(stem.removesuffix("s") for stem in stems_of(" ".join(words)))


def _mark_beginnings(words: Iterable[str]) -> frozenset[str]:
    """Return the beginnings of words, so that they are told from whole words."""
    return frozenset(f"{stem}…" for stem in _find_beginnings(words))


def _find_asked(question: str) -> frozenset[str]:
    """Return the words, their beginnings and the numbers of a question that tell copies apart."""
    words = content_words(question)
    asked = {*words, *_mark_beginnings(words), *_NUMBER.findall(question)}
    return _split_telling(question) & asked


def _split_own_pieces(chunk: Chunk) -> list[list[str]]:
    """Return the words of each sentence or line of a chunk below its title and headings.

    All of them where nothing else is said.
    """
    text = chunk.text.removeprefix(chunk.title) if chunk.title else chunk.text
    text = _DATELINE.sub(r"\1\n", _HEADING.sub("", text).strip())
    pieces = [one for one in _PIECE.split(text) if one.strip()]
    inner = range(_DATE_PIECES, len(pieces) - _DATE_PIECES)
    told = [one for at, one in enumerate(pieces) if at in inner or not _is_date_line(one)]
    words = [split_words(one) for one in told]
    return [one for one in words if one] or [split_words(chunk.text)]


def _is_date_line(piece: str) -> bool:
    """Whether a line says no more than when something was written: "Updated on 3 May 2021"."""
    if _DIGITS.search(piece) is None:  # every date has one
        return False
    words = piece.strip(" .()[]*_").split()
    starts = range(min(_LABEL_WORDS + 1, len(words)))
    return any(parse_whole_date(" ".join(words[at:])) is not None for at in starts)


def _have_same_text(one: _OwnText, other: _OwnText) -> bool:
    return len(one.runs & other.runs) >= _SAME_TEXT * min(len(one.runs), len(other.runs))


async def drop_copies(ctx: Context, scores: Floats, best: Ints | None = None) -> Floats:
    """Where copies of one passage take most of the first places, put all but the best last.

    Among `best`, if they are known, are the first places of these scores.
    """
    crowds: Mask | None = None
    for _ in range(_MAX_CROWDS):
        first = top_positions(scores, ctx.view.codes("chunk"), _LOOKED_AT, best)
        if crowds is not None:
            first = first[~crowds[first]]  # those put last are no crowd any more
        if len(first) < _CROWD:
            break
        near = find_pairs(ctx, first, _CROWD)
        if near.sum(axis=1).max() + 1 < _CROWD:
            break  # whatever their texts say
        group = await _group_pairs(ctx, first, near)
        alike = group[:, None] == group
        copied = int(np.argmax(alike.sum(axis=1)))
        if alike[copied].sum() < _CROWD:
            break
        kept = first[group[copied]]
        members = first[alike[copied]]
        copies = await _find_all_copies(ctx, int(kept), members)
        copies[members] = True
        copies[kept] = False
        last = scores.min() - 1 if crowds is None else scores.min()
        crowds = copies if crowds is None else crowds | copies
        scores, best = np.where(copies, last, scores).astype(np.float32), None
    if crowds is not None and crowds.any():
        ctx.trace.append(TraceStep("copies", "", f"{crowds.sum():,} near copies put last", 0.0))
    return scores


async def _find_all_copies(ctx: Context, position: int, members: Ints) -> Mask:
    """Mark all chunks with the words that `members` have in common, hardly more, and those asked.

    What differs between so many copies of one is not looked for in the others.
    """
    bm25 = ctx.view.bm25
    texts = (await _read_own_texts(ctx, members.tolist())).values()
    common = frozenset.intersection(*(own.words for own in texts))
    shared = np.zeros(len(bm25.lengths), np.int32)
    for word in common:
        shared[bm25.chunks_with(word)] += 1
    longest = _MORE_WORDS * bm25.lengths[position] + _TITLE_WORDS
    copies: Mask = (shared >= shared[members].min()) & (bm25.lengths <= longest)
    told = {one for one in _find_asked(ctx.question) if not one.endswith("…")}
    for word in {word for asked in told for word in split_words(asked)}:
        has = np.zeros(len(copies), np.bool_)
        has[bm25.chunks_with(word)] = True
        copies &= has == has[position]
    return copies


def can_compare_vectors(ctx: Context) -> bool:
    """Whether vectors tell copies: in a script that the embedder does not know all look alike."""
    return has_vectors(ctx.view, "chunk") and ctx.meaning() >= 1
