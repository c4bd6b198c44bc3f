"""Votes of a question's words for the relations, and the kinds of entities, that they mean.

Words are compared with labels by cosine, as they are and as something asked for, by stem, and,
where several words in a row fit a label better than each alone, as a phrase.
"""

from dataclasses import dataclass

import numpy as np

from clew.context import Context
from clew.graph.csr import Floats, Ints
from clew.retrieve.labels import embed_cached
from clew.retrieve.question import NAME_MARK, QuestionShape
from clew.retrieve.relation_vectors import (
    EndVectors,
    RelationVectors,
    embed_asked,
    embed_relations,
    stem_share,
)

_VOTE_TEMPERATURE = 0.06  # cosine difference that makes a relation e times likelier for a word
_MIN_VOTE, _FULL_VOTE = 0.35, 0.55  # similarities at which a vote is 0 and 1
_STEM_BASE, _STEM_GAIN = 0.35, 0.5
_SAME_KIND_COSINE = 0.9  # least cosine at which two kinds of entities count as one
_MAX_PHRASE_WORDS = 4  # words in a row that are compared as one phrase
_PHRASE_MARGIN = 0.05  # cosine by which a phrase must fit better than each of its words


@dataclass(frozen=True, slots=True)
class WordVotes:
    """Each word's votes: columns are relations (same texts once), then kinds of entities."""

    weight: Floats
    required: Floats
    """Votes for what a path should contain: all but those of words that describe a name."""
    relations: int
    column: Ints
    """Column of each label asked for."""
    kind_column: dict[int, int]
    """Step code → column of the kind of entity at its end: a relation's if it has its name."""

    def of_steps(self, codes: Ints, labels: Ints) -> Floats:
        """Return words × codes: how strongly each word votes for each of these steps."""
        found: Floats = self.weight[:, self.column[np.searchsorted(labels, codes >> 1)]].copy()
        for at, code in enumerate(codes.tolist()):
            if code in self.kind_column:
                found[:, at] += self.weight[:, self.kind_column[code]]
        return np.minimum(found, 1)


@dataclass(frozen=True, slots=True)
class LabelVectors:
    """Distinct label texts with their vectors, and the row of each label."""

    meaning: RelationVectors
    row: Ints


async def embed_labels(ctx: Context, labels: Ints) -> LabelVectors:
    """Embed the labels of relations; relations with the same words share a row."""
    every = await embed_relations(ctx, labels)
    _, first, row = np.unique(
        np.array(every.texts, dtype=object), return_index=True, return_inverse=True
    )
    return LabelVectors(every.select(first), row.reshape(-1).astype(np.int64))


async def compute_votes(
    ctx: Context, shape: QuestionShape, labels: LabelVectors, ends: dict[int, EndVectors]
) -> WordVotes:
    """Distribute each word's vote over relations and kinds of entities by similarity."""
    kinds, kind_of = _group_kinds(ends, labels.meaning)
    count = len(labels.meaning.texts)
    if not len(shape.words) or not count:
        none = np.zeros((len(shape.words), count + len(kinds)), np.float32)
        return WordVotes(none, none, count, labels.row, kind_of)
    near = await _compare_words(ctx, shape, labels.meaning, kinds)
    top = near.max(axis=1, keepdims=True)
    likely = np.exp((near - top) / _VOTE_TEMPERATURE)
    likely /= likely.sum(axis=1, keepdims=True)
    sure = np.clip((top - _MIN_VOTE) / (_FULL_VOTE - _MIN_VOTE), 0, 1)
    for link in shape.chain:  # each link of "X's a's b" is said to be a relation
        sure[link[int(top[list(link)].argmax())]] = 1
    weight = (likely * sure).astype(np.float32)
    need = weight.copy()
    # "the movie X": the word describes X, and asks for nothing.
    need[np.array(shape.positions) == shape.name_position - 1, count:] = 0
    return WordVotes(weight, need, count, labels.row, kind_of)


async def compute_word_votes(ctx: Context, shape: QuestionShape, labels: Ints) -> Floats:
    """Return how strongly each content word votes for each of these relations."""
    votes = await compute_votes(ctx, shape, await embed_labels(ctx, labels), {})
    return votes.weight[:, votes.column]


async def _compare_words(
    ctx: Context, shape: QuestionShape, meaning: RelationVectors, kinds: Floats
) -> Floats:
    """Return words × (labels, kinds): similarities, a phrase's for words that form one."""
    phrases = _find_phrases(shape)
    texts = [*shape.words, *(text for _, _, text in phrases)]
    plain = await embed_cached(ctx, texts)
    bare, near = meaning.compare(plain, await embed_asked(ctx, texts))
    shift = (near - bare).mean(axis=1, keepdims=True)
    _add_stems(near, shape, meaning)
    if len(kinds):
        near = np.hstack([near, plain @ kinds.T + shift])
    words = len(shape.words)
    found = near[:words].copy()
    best = found.max(axis=1)
    for row, (first, last, _) in enumerate(phrases, start=words):
        inside = slice(first, last)
        if near[row].max() > best[inside].max() + _PHRASE_MARGIN:
            found[inside] = near[row]
            best[inside] = near[row].max()
    return found


def _add_stems(near: Floats, shape: QuestionShape, meaning: RelationVectors) -> None:
    for row, word in enumerate(shape.words):
        for column, parts in enumerate(meaning.words):
            share = stem_share(word, parts)
            compound = len(parts) > 1 and len(parts) == len(meaning.texts[column].split())
            if word in shape.nouns and compound and share and not stem_share(word, parts[-1:]):
                # "which drugs" asks for what has a "drug class", and not for the class.
                near[row, column] = min(near[row, column], _MIN_VOTE)
            elif share:
                near[row, column] = max(near[row, column], _STEM_BASE + _STEM_GAIN * share)


def _find_phrases(shape: QuestionShape) -> list[tuple[int, int, str]]:
    """Return (first word, last word + 1, text) of runs of words with no name between them."""
    found = []
    for first, start in enumerate(shape.positions):
        for last in range(first + 1, len(shape.positions)):
            keys = shape.keys[start : shape.positions[last] + 1]
            if len(keys) > _MAX_PHRASE_WORDS or NAME_MARK in keys or "s" in keys:
                break
            found.append((first, last + 1, " ".join(keys)))
    return found


def _group_kinds(
    ends: dict[int, EndVectors], labels: RelationVectors
) -> tuple[Floats, dict[int, int]]:
    """Return the kinds of entities that have no label's name, similar ones merged."""
    columns = list(labels.content)
    kind_of: dict[int, int] = {}
    for code, end in ends.items():
        if not end.from_relations:
            continue
        near = np.array(columns) @ end.kind
        at = int(near.argmax())
        if near[at] <= _SAME_KIND_COSINE:
            at = len(columns)
            columns.append(end.kind)
        kind_of[code] = at
    return np.array(columns[len(labels.content) :], np.float32), kind_of
