"""Scores relation paths by word-level evidence from an embedder.

Every content word of the question votes for relations (or for the kind of entity that has them).
A good path explains the words, needs nothing that no word mentions, is short, follows the
question's order, and ends at the kind of entity that is asked for (docs/lego.md).
"""

from dataclasses import dataclass

import numpy as np

from clew.adapt.keep import tuning_of
from clew.adapt.values import slots
from clew.context import Context
from clew.graph.traverse import Ints, Mask, Ways
from clew.retrieve.naming.question_shape import Shape
from clew.retrieve.paths.label_meaning import (
    EndMeaning,
    LabelMeaning,
    end_meanings,
    label_meaning,
    stem_share,
)
from clew.retrieve.paths.ways import Floats, kept_vectors

_SHARP = 0.06  # cosine difference that makes a relation e times likelier for a word
_DEAF, _LOUD = 0.3, 0.5  # cosines at which a word's vote is 0 and 1
_STEM_BASE, _STEM_GAIN = 0.35, 0.5
_SAME_KIND = 0.9  # least cosine at which two kinds of entities count as one
_ENOUGH = 0.6  # share of the highest similarity that counts as a full match
_WORST = -0.5
_MENTION = 0.4
_ANCHORS = {
    "person": "the name of a person",
    "time": "a year or a date",
    "place": "the name of a place",
}


FEATURES = (
    *("likeness", "unexplained", "unspoken", "hops", "order", "nearer", "kind"),
    *("return_shared", "return_plain", "return_twice", "last"),
)
# Fitted once on MetaQA's development questions, then rounded.
WEIGHTS: Floats = np.array([5.2, -3.8, -4.6, -2.9, 0.8, 2.2, 6.5, 4.4, -1.0, 2.6, -1.5], np.float32)


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Each word's votes: columns are relations, then kinds of entities."""

    weight: Floats
    need: Floats
    relations: int
    kind_of: dict[int, int]
    """Step code → column of the kind of entity at its end, where no label names it."""


async def path_scores(
    ctx: Context, ways: Ways, shape: Shape, codes: Ints, *, whole: bool = True
) -> Floats:
    """Score each row of codes (padded with -1); all codes are relations.

    The tuned adapter applies to whole paths: prefixes of paths are scored without it.
    """
    features = await path_features(ctx, ways, shape, codes)
    adapter = tuning_of(ctx.view).paths if whole else None
    if adapter is None or not len(codes):
        plain: Floats = features @ WEIGHTS
        return plain
    labels = np.unique(codes[codes >= 0] >> 1)
    [vector] = await kept_vectors(ctx, [shape.rest or ctx.question])
    table = adapter.table(vector, (await label_meaning(ctx, labels)).whole)
    row, column = np.nonzero(codes >= 0)
    step = table[slots(codes)[row, column], np.searchsorted(labels, codes[row, column] >> 1)]
    scores: Floats = features @ adapter.weights + np.bincount(row, step, minlength=len(codes))
    return scores.astype(np.float32)


async def path_features(ctx: Context, ways: Ways, shape: Shape, codes: Ints) -> Floats:
    """Compute the features of each row of codes, a column for each of `FEATURES`."""
    if not len(codes):
        return np.zeros((0, len(FEATURES)), np.float32)
    labels = np.unique(codes[codes >= 0] >> 1)
    meaning = await label_meaning(ctx, labels)
    steps = np.unique(codes[codes >= 0])
    ends = dict(zip(steps.tolist(), await end_meanings(ctx, ways, steps.tolist()), strict=True))
    words = await kept_vectors(ctx, shape.words)
    votes = _evidence(shape, words, meaning, ends)
    at = np.where(codes >= 0, np.searchsorted(labels, codes >> 1), -1)
    table = _Table(codes, at, (codes >= 0).sum(axis=1), len(labels))
    kinds = await _kinds(ctx, shape, steps, ends)
    [vector] = await kept_vectors(ctx, [shape.rest or ctx.question])
    last = kinds[np.searchsorted(steps, table.last(codes))]
    return _observed(table, shape, votes, (meaning, vector, last))


async def word_votes(ctx: Context, shape: Shape, labels: Ints) -> Floats:
    """Return how strongly each content word votes for each of these relations."""
    meaning = await label_meaning(ctx, labels)
    words = await kept_vectors(ctx, shape.words)
    return _evidence(shape, words, meaning, {}).weight


@dataclass(frozen=True, slots=True)
class _Table:
    """Paths as rows of step codes, and as rows of indices into the labels."""

    codes: Ints
    labels: Ints
    hops: Ints
    count: int

    def last(self, table: Ints) -> Ints:
        """Return the last entry of each row."""
        return table[np.arange(len(table)), self.hops - 1]

    def has(self) -> Floats:
        """Return paths × labels: 1 where a path contains a label."""
        found = np.zeros((len(self.codes), self.count), np.float32)
        rows, steps = np.nonzero(self.labels >= 0)
        found[rows, self.labels[rows, steps]] = 1
        return found


def _observed(
    table: _Table, shape: Shape, word_votes: _Evidence, vectors: tuple[LabelMeaning, Floats, Floats]
) -> Floats:
    meaning, question, kinds = vectors
    votes = word_votes.weight[:, : word_votes.relations]
    contains, mentioned = table.has(), votes.max(axis=0, initial=0.0)
    order, nearer = _in_order(table, shape, votes)
    back = _returns(table)
    twice = np.append((votes > _MENTION).sum(axis=0) >= 2, False)
    returns = back.any(axis=1)
    columns = (
        _likeness(table, meaning, question),
        _unexplained(table, word_votes, contains),
        contains @ (1 - mentioned),
        table.hops - 1,
        order,
        nearer,
        kinds,
        returns & shape.sharing,
        returns & (not shape.sharing),
        (back & twice[table.labels[:, :-1]]).any(axis=1),
        mentioned[table.last(table.labels)],
    )
    return np.column_stack(columns).astype(np.float32)


def _likeness(table: _Table, meaning: LabelMeaning, question: Floats) -> Floats:
    """Cosine of the question with the sum of a path's relations."""
    padded = np.vstack([meaning.whole, np.zeros_like(meaning.whole[:1])])
    vectors = padded[table.labels].sum(axis=1)
    near: Floats = (vectors @ question) / np.maximum(np.linalg.norm(vectors, axis=1), 1e-9)
    return near


def _in_order(table: _Table, shape: Shape, votes: Floats) -> tuple[Ints, Ints]:
    """1 where the last relation's word is farther from the name (nearer to the question word)."""
    if not len(votes):
        none = np.zeros(len(table.codes), np.int64)
        return none, none
    spoken = votes.argmax(axis=0)
    first, last = spoken[table.labels[:, 0]], spoken[table.last(table.labels)]
    apart = table.labels[:, 0] != table.last(table.labels)
    places = np.array(shape.places)
    away = np.abs(places - (shape.name if shape.name >= 0 else len(places)))
    asking = np.abs(places - max(shape.asking, 0))
    order: Ints = np.sign(away[last] - away[first]) * apart
    nearer: Ints = np.sign(asking[first] - asking[last]) * apart
    return order, nearer


def _returns(table: _Table) -> Mask:
    """Mark steps that are reversed by the next: paths × steps but the last."""
    here, there = table.codes[:, :-1], table.codes[:, 1:]
    back: Mask = (there >= 0) & (here ^ 1 == there)
    return back


def _unexplained(table: _Table, votes: _Evidence, contains: Floats) -> Floats:
    """Return the sum of votes for relations and kinds that a path does not contain."""
    mass = votes.need.sum(axis=0)
    covered = contains @ mass[: votes.relations]
    reached = np.zeros((len(contains), len(mass) - votes.relations), np.float32)
    for code, kind in votes.kind_of.items():
        reached[(table.codes == code).any(axis=1), kind] = 1
    covered = covered + reached @ mass[votes.relations :]
    left: Floats = mass.sum() - covered
    return left


def _evidence(
    shape: Shape, words: Floats, meaning: LabelMeaning, ends: dict[int, EndMeaning]
) -> _Evidence:
    """Distribute each word's vote over relations and kinds of entities by similarity."""
    kinds, kind_of = _distinct(ends)
    count = len(meaning.whole)
    if not len(shape.words):
        none = np.zeros((0, count + len(kinds)), np.float32)
        return _Evidence(none, none, count, kind_of)
    near = np.maximum(words @ meaning.whole.T, words @ meaning.telling.T)
    for row, word in enumerate(shape.words):
        for column, parts in enumerate(meaning.words):
            share = stem_share(word, parts)
            if share:
                near[row, column] = max(near[row, column], _STEM_BASE + _STEM_GAIN * share)
    if len(kinds):
        near = np.hstack([near, words @ kinds.T])
    top = near.max(axis=1, keepdims=True)
    likely = np.exp((near - top) / _SHARP)
    likely /= likely.sum(axis=1, keepdims=True)
    weight = (likely * np.clip((top - _DEAF) / (_LOUD - _DEAF), 0, 1)).astype(np.float32)
    need = weight.copy()
    # "the movie X": the word describes X, and asks for nothing.
    need[np.array(shape.places) == shape.name - 1, count:] = 0
    return _Evidence(weight, need, count, kind_of)


def _distinct(ends: dict[int, EndMeaning]) -> tuple[Floats, dict[int, int]]:
    """Return the kinds of entities no label names, similar ones merged."""
    kinds: list[Floats] = []
    kind_of: dict[int, int] = {}
    for code, end in ends.items():
        if not end.classed:
            continue
        same = (at for at, kind in enumerate(kinds) if float(kind @ end.kind) > _SAME_KIND)
        at = next(same, len(kinds))
        if at == len(kinds):
            kinds.append(end.kind)
        kind_of[code] = at
    return np.array(kinds, np.float32), kind_of


async def _kinds(ctx: Context, shape: Shape, steps: Ints, ends: dict[int, EndMeaning]) -> Floats:
    """Score for each step how well its end matches the kind of answer asked for, at most 1."""
    if shape.sought:
        [anchor] = await kept_vectors(ctx, [_ANCHORS[shape.sought]])
        named = np.array([ends[code].names for code in steps.tolist()])
        return _capped((named - named.mean(axis=0)) @ anchor)
    if not shape.nouns:
        return np.zeros(len(steps), np.float32)
    nouns = await kept_vectors(ctx, shape.nouns)
    kinds = np.array([ends[code].kind for code in steps.tolist()])
    kinds = kinds - kinds.mean(axis=0)
    alike: Floats = np.max([_capped(kinds @ noun) for noun in nouns], axis=0)
    return alike


def _capped(near: Floats) -> Floats:
    """Scale so that all nearly as near as the nearest score 1."""
    enough = max(_ENOUGH * float(near.max()), 1e-6)
    capped: Floats = np.maximum(np.minimum(near / enough, 1), _WORST).astype(np.float32)
    return capped
