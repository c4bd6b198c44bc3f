"""Scores relation paths for a question, and predicts how many hops it needs.

Relations are scored by their labels, facts without a relation by their sentence's vector. Every
content word of the question votes for relations (or for the kind of entity that has them). A good
path explains the words, needs nothing that no word mentions, is short, follows the question's
order, and ends at the kind of entity that is asked for (docs/lego.md).
"""

from dataclasses import dataclass

import numpy as np

from clew.adapters import get_tuning, step_slots
from clew.context import Context
from clew.graph.csr import Floats, Ints, Mask, isin_sorted
from clew.graph.traverse import FactGraph
from clew.retrieve.graph_cache import MAX_RELATION_LABELS
from clew.retrieve.labels import embed_cached
from clew.retrieve.path_alignment import align_paths
from clew.retrieve.question import QuestionShape
from clew.retrieve.relation_vectors import (
    EndVectors,
    RelationVectors,
    embed_relations,
    embed_step_ends,
    load_short_texts,
    name_converse_ends,
)
from clew.retrieve.verb_sides import find_contradicting, name_subject
from clew.retrieve.word_votes import WordVotes, compute_votes, compute_word_votes, embed_labels

_FULL_MATCH_SHARE = 0.6  # share of the highest similarity that counts as a full match
_MIN_KIND_SCORE = -0.5
_MENTION_VOTE = 0.4
_ANSWER_KIND_TEXTS = {
    "person": "the name of a person",
    "time": "a year or a date",
    "place": "the name of a place",
}
FEATURES = (
    *("likeness", "unexplained", "unspoken", "hops", "order", "nearer", "kind"),
    *("return_shared", "return_plain", "return_twice", "last"),
    *("unexplained_in_order", "unspoken_in_order", "backward", "chain_gap", "chain_back"),
)
# Fitted on half of the relation paths of MetaQA and of PathQuestion (`bench/path_weights.py`).
FEATURE_WEIGHTS: Floats = np.array(
    [
        *(5.7, -2.1, -1.8, -0.6, 0.7, 0.9, 2.0, 8.5, 0.8, 1.1, -1.9),
        *(-2.0, -1.3, -5.8, -3.4, -0.5),
    ],
    np.float32,
)
_REST_WEIGHT = 0.7  # weight of the question without names against the whole question
_SENTENCE_WEIGHT = 12.0  # scale of a sentence's fit
_HOP_PENALTY = 0.6  # fit that each further sentence must add
_HOP_VOTE = 0.4
_SURE_VOTE = 0.7  # of a word that names a relation for certain
_MAX_COMPARED_LABELS = 256  # relations of one question that are embedded and compared
_FEW_COMPARED_LABELS = 48  # where nearly every question meets others: they have no vectors yet
_UNCOMPARED_SCORE = -100.0
_STEM_CHARS = 4  # first letters by which a word and a label are taken for related
_MAX_HOPS = 4


@dataclass(frozen=True)
class RelationPathScorer:
    """Scores step codes for one question, as whole paths or step by step."""

    ctx: Context
    ways: FactGraph
    shape: QuestionShape

    async def score_paths(self, codes: Ints, *, whole: bool = True) -> Floats:
        """Score each row of codes (padded with -1); higher is better.

        Without `whole` they may be prefixes of paths.
        """
        scores = np.zeros(len(codes), np.float32)
        has_sentence = (self.ways.fact_of_code(codes) >= 0).any(axis=1)
        relation_rows = np.flatnonzero(~has_sentence)
        if len(relation_rows):
            scores[relation_rows] = await score_relation_paths(
                self.ctx, self.ways, self.shape, codes[relation_rows], whole=whole
            )
        sentence_rows = np.flatnonzero(has_sentence)
        if len(sentence_rows):
            fit = await self.score_steps(codes[sentence_rows])
            hops = (codes[sentence_rows] >= 0).sum(axis=1)
            scores[sentence_rows] = _SENTENCE_WEIGHT * fit.sum(axis=1) / hops - _HOP_PENALTY * (
                hops - 1
            )
        return scores

    async def score_steps(self, codes: Ints) -> Floats:
        """Score each single step, 0 for padding."""
        vector = await self._question_vector()
        distinct, at = np.unique(codes, return_inverse=True)
        fit = np.zeros(len(distinct), np.float32)
        own = self.ways.fact_of_code(distinct)
        sentences = np.flatnonzero((own >= 0) & (distinct >= 0))
        if len(sentences):
            fit[sentences] = self.ctx.view.cosines("fact", vector, own[sentences])
        relations = np.flatnonzero((own < 0) & (distinct >= 0))
        if len(relations):
            fit[relations] = await self._score_relations(distinct[relations] >> 1, vector)
        found: Floats = fit[at].reshape(codes.shape)
        return found

    async def _score_relations(self, labels: Ints, vector: Floats) -> Floats:
        """Score relations: half by cosine with the question, half by the strongest word vote."""
        distinct, at, count = np.unique(labels, return_inverse=True, return_counts=True)
        compared = np.arange(len(distinct))
        if len(distinct) > _most_compared(self.ways):
            most = _most_compared(self.ways)
            kept = await _select_labels(self.ctx, self.shape, distinct, count, most)
            compared = np.searchsorted(distinct, kept)
        texts = await load_short_texts(self.ctx)
        words = [texts[label] for label in distinct[compared].tolist()]
        near = await embed_cached(self.ctx, words) @ vector
        votes = await compute_word_votes(self.ctx, self.shape, distinct[compared])
        fit = np.zeros(len(distinct), np.float32)
        fit[compared] = (near + votes.max(axis=0, initial=0.0)) / 2
        found: Floats = fit[at]
        return found

    async def _question_vector(self) -> Floats:
        whole, rest = await self.ctx.vectors(
            [self.ctx.question, self.shape.rest or self.ctx.question]
        )
        return np.asarray((1 - _REST_WEIGHT) * whole + _REST_WEIGHT * rest, np.float32)


async def score_relation_paths(
    ctx: Context, ways: FactGraph, shape: QuestionShape, codes: Ints, *, whole: bool = True
) -> Floats:
    """Score each row of codes (padded with -1); all codes are relations.

    The tuned adapter applies to whole paths: prefixes of paths are scored without it. Of very many
    relations the most promising are compared; paths with others come last.
    """
    kept = await _select_rows(ctx, ways, shape, codes)
    if len(kept) < len(codes):
        hops = (codes >= 0).sum(axis=1)
        scores: Floats = (_UNCOMPARED_SCORE - hops).astype(np.float32)
        scores[kept] = await score_relation_paths(ctx, ways, shape, codes[kept], whole=whole)
        return scores
    features = await compute_path_features(ctx, ways, shape, codes)
    adapter = get_tuning(ctx.view).paths if whole else None
    if adapter is None or not len(codes):
        plain: Floats = features @ FEATURE_WEIGHTS
        return plain
    labels = np.unique(codes[codes >= 0] >> 1)
    [vector] = await embed_cached(ctx, [shape.rest or ctx.question])
    table = adapter.step_scores(vector, (await embed_relations(ctx, labels)).whole)
    row, column = np.nonzero(codes >= 0)
    step = table[step_slots(codes)[row, column], np.searchsorted(labels, codes[row, column] >> 1)]
    tuned: Floats = features @ adapter.weights + np.bincount(row, step, minlength=len(codes))
    return tuned.astype(np.float32)


def _most_compared(ways: FactGraph) -> int:
    """Return how many relations of one question are compared."""
    many = ways.relation_count > MAX_RELATION_LABELS
    return _FEW_COMPARED_LABELS if many else _MAX_COMPARED_LABELS


async def _select_rows(ctx: Context, ways: FactGraph, shape: QuestionShape, codes: Ints) -> Ints:
    """Return the rows whose relations are all among those that are compared."""
    labels, count = np.unique(codes[codes >= 0] >> 1, return_counts=True)
    most = _most_compared(ways)
    if len(labels) <= most:
        return np.arange(len(codes))
    near = np.isin(labels, codes[:, 0] >> 1)
    kept = await _select_labels(ctx, shape, labels, near * count.sum() + count, most)
    known: Mask = isin_sorted(codes >> 1, kept) | (codes < 0)
    return np.flatnonzero(known.all(axis=1))


async def _select_labels(
    ctx: Context, shape: QuestionShape, labels: Ints, value: Ints, most: int
) -> Ints:
    """Return the labels to compare, ascending: those with words of the question, then by value.

    Of very many, those nearest in meaning: more is embedded of each that is compared.
    """
    texts = await load_short_texts(ctx)
    stems = {word[:_STEM_CHARS] for word in shape.words}
    said = [
        sum(word[:_STEM_CHARS] in stems for word in texts[label].split())
        for label in labels.tolist()
    ]
    order = np.lexsort((labels, -value, -np.array(said, np.int64)))[:_MAX_COMPARED_LABELS]
    if len(order) > most:
        named = [texts[label] for label in labels[order].tolist()]
        asked = await embed_cached(ctx, [shape.rest or ctx.question, *shape.words])
        near = (await embed_cached(ctx, named) @ asked.T).max(axis=1)
        order = order[np.argsort(-near, kind="stable")[:most]]
    return np.sort(labels[order])


async def compute_path_features(
    ctx: Context, ways: FactGraph, shape: QuestionShape, codes: Ints
) -> Floats:
    """Compute the features of each row of codes, a column for each of `FEATURES`."""
    if not len(codes):
        return np.zeros((0, len(FEATURES)), np.float32)
    labels = np.unique(codes[codes >= 0] >> 1)
    named = await embed_labels(ctx, labels)
    steps = np.unique(codes[codes >= 0])
    ends = dict(zip(steps.tolist(), await embed_step_ends(ctx, ways, steps.tolist()), strict=True))
    shape = name_subject(shape, named.meaning.texts)
    ends = await name_converse_ends(ctx, shape.words, ends)
    votes = await compute_votes(ctx, shape, named, ends)
    at = np.where(
        codes >= 0, named.row[np.searchsorted(labels, np.maximum(codes, 0) >> 1) % len(labels)], -1
    )
    table = _PathTable(codes, at, (codes >= 0).sum(axis=1), len(named.meaning.texts))
    kinds = await _score_answer_kind(ctx, shape, steps, ends)
    [vector] = await embed_cached(ctx, [shape.rest or ctx.question])
    last = kinds[np.searchsorted(steps, table.last_entries(codes))]
    spoken = np.pad(votes.of_steps(steps, labels), ((0, 0), (0, 1)))
    column = np.where(codes >= 0, np.searchsorted(steps, codes), -1)
    aligned = align_paths(shape, spoken, votes.required.sum(axis=1), column)
    turned = await _find_turned(ctx, shape, codes)
    backward = _count_unnamed_returns(column, votes, steps, turned)
    more = np.column_stack(
        [
            aligned.unexplained,
            aligned.unspoken,
            backward,
            _chain_gap(shape, table.hops),
            ((codes >= 0) & (codes % 2 == 1)).sum(axis=1) * bool(shape.chain),
        ]
    )
    plain = _stack_features(table, shape, votes, (named.meaning, vector, last))
    return np.hstack([plain, more]).astype(np.float32)


def _count_unnamed_returns(column: Ints, votes: WordVotes, steps: Ints, turned: Mask) -> Floats:
    """Count the steps against their relation's direction whose end no word names.

    A first step that is `turned` counts as if it went the other way.
    """
    named = votes.weight.max(axis=0, initial=0.0)
    cost = np.zeros(len(steps) + 1, np.float32)
    for at, code in enumerate(steps.tolist()):
        if code % 2:
            cost[at] = 1 - (named[votes.kind_column[code]] if code in votes.kind_column else 0)
    found: Floats = cost[column].sum(axis=1)
    first = column[:, 0]
    return np.where(turned, found - cost[first] + (steps[first] % 2 == 0), found)


async def _find_turned(ctx: Context, shape: QuestionShape, codes: Ints) -> Mask:
    """Mark the paths whose first step the words before the name turn round.

    "What leads to X" asks for what "road to" starts at: X stands where its label ends. "Who knows
    X" asks for the subject of "knows". It matters only where the start has the relation in both
    directions.
    """
    before, taken = shape.word_before_name(), set(codes[:, 0].tolist())
    texts = await load_short_texts(ctx)
    both = {code for code in taken if code ^ 1 in taken}
    away = await find_contradicting(ctx, shape, texts, sorted(both))
    named = {code & ~1 for code in away if code % 2 == 0}
    named |= {code & ~1 for code in both if before and texts[code >> 1].endswith(f" {before}")}
    return np.isin(codes[:, 0] & ~1, np.array(sorted(named), np.int64))


def _chain_gap(shape: QuestionShape, hops: Ints) -> Floats:
    """Return by how many steps a path is shorter or longer than a possessive chain allows."""
    least, most = shape.bound_hops()
    over = np.maximum(hops - most, 0) if most is not None else 0
    gap: Floats = (np.maximum(least - hops, 0) + over).astype(np.float32)
    return gap


@dataclass(frozen=True, slots=True)
class _PathTable:
    """Paths as rows of step codes, and as rows of indices into the labels."""

    codes: Ints
    labels: Ints
    hops: Ints
    count: int

    def last_entries(self, table: Ints) -> Ints:
        """Return the last entry of each row."""
        return table[np.arange(len(table)), self.hops - 1]

    def label_matrix(self) -> Floats:
        """Return paths × labels: 1 where a path contains a label."""
        found = np.zeros((len(self.codes), self.count), np.float32)
        rows, steps = np.nonzero(self.labels >= 0)
        found[rows, self.labels[rows, steps]] = 1
        return found


def _stack_features(
    table: _PathTable,
    shape: QuestionShape,
    word_votes: WordVotes,
    vectors: tuple[RelationVectors, Floats, Floats],
) -> Floats:
    meaning, question, kinds = vectors
    votes = word_votes.weight[:, : word_votes.relations]
    contains, mentioned = table.label_matrix(), votes.max(axis=0, initial=0.0)
    order, nearer = _order_features(table, shape, votes)
    back = _find_returns(table)
    twice = np.append((votes > _MENTION_VOTE).sum(axis=0) >= 2, False)
    returns = back.any(axis=1)
    columns = (
        _question_similarity(table, meaning.whole, question),
        _missing_votes(table, word_votes, contains),
        # Not a matrix product: some BLAS warn of overflow in the unused lanes of a narrow one.
        np.where(contains > 0, 1 - mentioned, 0).sum(axis=1),
        table.hops - 1,
        order,
        nearer,
        kinds,
        returns & shape.has_shared_word,
        returns & (not shape.has_shared_word),
        (back & twice[table.labels[:, :-1]]).any(axis=1),
        mentioned[table.last_entries(table.labels)],
    )
    return np.column_stack(columns).astype(np.float32)


def _question_similarity(table: _PathTable, labels: Floats, question: Floats) -> Floats:
    """Cosine of the question with the sum of a path's relations."""
    padded = np.vstack([labels, np.zeros_like(labels[:1])])
    vectors = padded[table.labels].sum(axis=1)
    near: Floats = (vectors @ question) / np.maximum(np.linalg.norm(vectors, axis=1), 1e-9)
    return near


def _order_features(table: _PathTable, shape: QuestionShape, votes: Floats) -> tuple[Ints, Ints]:
    """1 where the last relation's word is farther from the name (nearer to the question word)."""
    if not len(votes):
        none = np.zeros(len(table.codes), np.int64)
        return none, none
    spoken = votes.argmax(axis=0)
    first, last = spoken[table.labels[:, 0]], spoken[table.last_entries(table.labels)]
    apart = table.labels[:, 0] != table.last_entries(table.labels)
    places = np.array(shape.positions)
    away = np.abs(places - (shape.name_position if shape.name_position >= 0 else len(places)))
    asking = np.abs(places - max(shape.question_word_position, 0))
    order: Ints = np.sign(away[last] - away[first]) * apart
    nearer: Ints = np.sign(asking[first] - asking[last]) * apart
    return order, nearer


def _find_returns(table: _PathTable) -> Mask:
    """Mark steps that are reversed by the next: paths × steps but the last."""
    here, there = table.codes[:, :-1], table.codes[:, 1:]
    back: Mask = (there >= 0) & (here ^ 1 == there)
    return back


def _missing_votes(table: _PathTable, votes: WordVotes, contains: Floats) -> Floats:
    """Return the sum of votes for relations and kinds that a path does not contain."""
    mass = votes.required.sum(axis=0)
    reached = np.pad(contains, ((0, 0), (0, len(mass) - contains.shape[1])))
    for code, column in votes.kind_column.items():
        reached[(table.codes == code).any(axis=1), column] = 1
    left: Floats = mass.sum() - reached @ mass
    return left


async def _score_answer_kind(
    ctx: Context, shape: QuestionShape, steps: Ints, ends: dict[int, EndVectors]
) -> Floats:
    """Score for each step how well its end matches the kind of answer asked for, at most 1."""
    if shape.answer_kind:
        [anchor] = await embed_cached(ctx, [_ANSWER_KIND_TEXTS[shape.answer_kind]])
        named = np.array([ends[code].names for code in steps.tolist()])
        return _cap((named - named.mean(axis=0)) @ anchor)
    if not shape.nouns:
        return np.zeros(len(steps), np.float32)
    nouns = await embed_cached(ctx, shape.nouns)
    kinds = np.array([ends[code].kind for code in steps.tolist()])
    kinds = kinds - kinds.mean(axis=0)
    alike: Floats = np.max([_cap(kinds @ noun) for noun in nouns], axis=0)
    return alike


def _cap(near: Floats) -> Floats:
    """Scale so that all nearly as near as the nearest score 1."""
    enough = max(_FULL_MATCH_SHARE * float(near.max()), 1e-6)
    capped: Floats = np.maximum(np.minimum(near / enough, 1), _MIN_KIND_SCORE).astype(np.float32)
    return capped


async def predict_hops(ctx: Context, ways: FactGraph, shape: QuestionShape) -> int:
    """Predict by the tuned classifier, a possessive chain, or the relations that are mentioned.

    Every run of words that votes for one relation is a hop; words such as "same" and "also" add
    a way back.
    """
    classifier = get_tuning(ctx.view).hops
    if classifier is not None:
        [vector] = await embed_cached(ctx, [shape.rest or ctx.question])
        return classifier.predict(vector)
    least, most = shape.bound_hops()
    if least == most:
        return min(least, _MAX_HOPS)
    if not 0 < ways.relation_count <= MAX_RELATION_LABELS:
        return 2 if shape.has_shared_word else 1
    votes = await compute_word_votes(ctx, shape, np.arange(ways.relation_count))
    return int(
        np.clip(_count_relation_mentions(shape, votes) + shape.has_shared_word, 1, _MAX_HOPS)
    )


async def count_unsaid_relations(
    ctx: Context, ways: FactGraph, shape: QuestionShape, codes: Ints
) -> int:
    """Count the relations of the whole graph that words name and a path does not take.

    0 in a graph with very many relations, where it is not known.
    """
    if not 0 < ways.relation_count <= MAX_RELATION_LABELS:
        return 0
    votes = await compute_word_votes(ctx, shape, np.arange(ways.relation_count))
    texts = await load_short_texts(ctx)
    taken = {texts[label] for label in (codes >> 1).tolist() if 0 <= label < len(texts)}
    named = {texts[int(row.argmax())] for row in votes if row.max(initial=0.0) > _SURE_VOTE}
    return len(named - taken)


def _count_relation_mentions(shape: QuestionShape, votes: Floats) -> int:
    """Count runs of neighbouring words that vote for the same relation."""
    count, last, place = 0, -1, -2
    for at, row in zip(shape.positions, votes, strict=True):
        relation = int(row.argmax()) if len(row) and row.max() > _HOP_VOTE else -1
        if relation < 0:
            continue
        if relation != last or at != place + 1:
            count += 1
        last, place = relation, at
    return count
