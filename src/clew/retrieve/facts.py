"""Cosine similarity of facts with a text, each fact read together with its subject.

A triple names its subject; a sentence often says "he" or "the film". The subject, which the
extractor knows, is added: the cosine is that with the sum of both vectors. Facts of an imported
graph have no sentence worth embedding: their entity names and relation are compared instead.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from clew.context import Context
from clew.graph.csr import Csr, Floats, Ints, group_equals, sorted_unique
from clew.index.estimates import Estimates
from clew.retrieve.labels import embed_cached, has_vectors, load_relation_texts
from clew.retrieve.question import content_words
from clew.retrieve.rank import top_positions

if TYPE_CHECKING:
    from clew.index.view import View

_FULL_SCAN_SHARE = 0.25  # share of all entities; with more subjects one pass over all is faster
_MAX_LABELS = 512  # labels of relations that are embedded and compared
# Names whose own facts are compared, whatever their texts say, of so many likely ones.
_NEAR_SUBJECTS, _LIKELY_SUBJECTS = 100, 600
_BLOCK_SIZE = 4096  # facts whose vectors are compared with their subjects' at a time


@dataclass(frozen=True, slots=True)
class FactSubjects:
    """Each fact's subject as an index into `entities` (past the end for none), and their cosine."""

    entities: Ints
    index: Ints
    cosine: Estimates
    """Compared when it is asked for, and kept."""

    def vector_lengths(self, share: float, at: Ints | None = None) -> Floats:
        """Length of facts' text vectors plus `share` of their subjects'; 1 without one."""
        at = np.arange(len(self.index)) if at is None else at
        length = np.sqrt(1 + share * share + 2 * share * self.cosine.at(at))
        lengths: Floats = np.where(self.index[at] < len(self.entities), length, 1)
        return lengths.astype(np.float32, copy=False)


async def score_facts(
    ctx: Context, vector: Floats, share: float = 0.0, at: Ints | None = None
) -> Floats:
    """Cosine of facts (or those at `at`) with a vector; subjects' names count `share`."""
    if not has_vectors(ctx.view, "fact"):
        return await _score_facts_by_labels(ctx, vector, at)
    return _add_subjects(ctx, vector, share, ctx.cosines("fact", vector, at), at)


def _add_subjects(
    ctx: Context, vector: Floats, share: float, near: Floats, at: Ints | None
) -> Floats:
    """Cosines of facts (or those at `at`), given `near`, with their subjects' names."""
    view = ctx.view
    about = fact_subjects(view) if share else None
    if about is None or not len(about.entities):
        return near
    entities, of, length = about.entities, about.index, about.vector_lengths(share, at)
    if at is not None:
        used, _, of = group_equals(of[at])
        # The index past the end stands for facts without a subject.
        entities = entities[used[used < len(entities)]]
    if len(entities) > _FULL_SCAN_SHARE * view.count("entity"):
        subject = ctx.cosines("entity", vector)[entities]
    else:
        subject = ctx.cosines("entity", vector, entities)
    subject = np.append(np.float32(share) * np.maximum(subject, 0), np.float32(0))
    summed: Floats = near + subject[of]
    summed /= length
    return summed


async def nearest_facts(ctx: Context, vector: Floats, share: float = 0.0) -> tuple[Ints, Floats]:
    """Positions and scores of the facts among which the nearest are: of few facts all."""
    if has_vectors(ctx.view, "fact"):
        near = ctx.estimates("fact", vector, others=False)
        if near.known is not None:
            at = near.find_known()
            if share:
                at = sorted_unique(np.concatenate([at, _find_facts_of_nearest(ctx, vector)]))
            return at, _add_subjects(ctx, vector, share, near.at(at), at)
    scores = await score_facts(ctx, vector, share)
    return np.arange(len(scores)), scores


def _find_facts_of_nearest(ctx: Context, vector: Floats) -> Ints:
    """Facts whose subject's name is near: one counts by both, and its text alone may be too far."""
    view = ctx.view
    if not has_vectors(view, "entity"):
        return np.zeros(0, np.int64)
    near = ctx.estimates("entity", vector, others=False, most=_LIKELY_SUBJECTS)
    known = near.find_known()
    best = top_positions(near.values[known], view.codes("entity")[known], _NEAR_SUBJECTS)
    stated = view.links("entity_fact")
    _, edge = stated.edges_of(known[best])
    found: Ints = stated.columns[edge[stated.weights[edge] == 0]].astype(np.int64)  # role 0
    return found


@dataclass(frozen=True, slots=True)
class SentenceFits:
    """How every fact fits a vector, and every chunk: by its best fact, or as a whole, if better.

    Of many, those are exact that fit best and those that are asked for by position; other facts
    count as if they did not fit at all.
    """

    facts: Estimates
    chunks: Estimates
    whole: Estimates
    """Of each chunk, its facts apart."""


async def score_sentences(ctx: Context, target: Floats, most: int | None = None) -> SentenceFits:
    """Fit of every fact and every chunk; a model's facts have gaps, so the whole text counts.

    Of very many chunks about `most` are compared, and as many facts.
    """
    whole = ctx.estimates("chunk", target, most=most)
    if has_vectors(ctx.view, "fact"):
        most = None if whole.known is None else most
        facts = ctx.estimates("fact", target, others=False, most=most)
    else:
        facts = Estimates(await score_facts(ctx, target))
    fit = np.maximum(whole.values, 0)
    if facts.known is None and whole.known is None:
        _raise_to_best_fact(ctx.view.links("chunk_fact"), facts.values, fit)
        return SentenceFits(facts, Estimates(fit), whole)
    best = facts.find_known()
    stating = ctx.view.links("fact_chunk")
    which, edge = stating.edges_of(best)
    np.maximum.at(fit, stating.columns[edge], facts.values[best][which])
    compare = partial(compare_chunks, ctx.view.links("chunk_fact"), facts, whole)
    return SentenceFits(facts, Estimates(fit, np.zeros(len(fit), np.bool_), compare), whole)


def _raise_to_best_fact(links: Csr, facts: Floats, fit: Floats) -> None:
    """Raise the fit of each chunk to that of its best fact."""
    with_facts = np.flatnonzero(links.degrees())
    if len(with_facts):
        best = np.maximum.reduceat(facts[links.columns], links.starts[with_facts])
        fit[with_facts] = np.maximum(fit[with_facts], best)


def compare_chunks(links: Csr, facts: Estimates, whole: Estimates, chunks: Ints) -> Floats:
    """Fit of some chunks, from all their facts."""
    fit = np.maximum(whole.at(chunks), 0)
    facts.raise_to_best(links, chunks, fit)
    return fit


async def _score_facts_by_labels(ctx: Context, vector: Floats, at: Ints | None) -> Floats:
    """Mean of the cosine of the nearest member's name and that of the relation."""
    view, members = ctx.view, ctx.view.links("fact_entity")
    facts = np.arange(view.count("fact")) if at is None else at
    which, edge = members.edges_of(facts)
    names = ctx.cosines("entity", vector)[members.columns[edge]]
    nearest = np.full(len(facts), -1, np.float32)
    np.maximum.at(nearest, which, names)
    words = await load_relation_texts(ctx)
    if not words:
        return nearest
    relation = view.relations[facts]
    present = np.unique(relation[relation >= 0]).tolist() if at is not None else []
    few = at is not None and len(present) <= _MAX_LABELS
    chosen = present if few else _choose_relations(ctx, words)
    labels = np.zeros(len(words), np.float32)
    if len(chosen):
        labels[chosen] = (await embed_cached(ctx, [words[at] for at in chosen])) @ vector
    mean: Floats = ((nearest + np.where(relation >= 0, labels[relation], 0)) / 2).astype(np.float32)
    return mean


def _choose_relations(ctx: Context, labels: Sequence[str]) -> list[int]:
    """Return the relations whose labels are compared: of very many those with words asked for."""
    if len(labels) <= _MAX_LABELS:
        return list(range(len(labels)))
    memo = ctx.view.memo
    if "relations as lines" not in memo:
        lines = [f" {label} \n" for label in labels]
        memo["relations as lines"] = "".join(lines), np.cumsum([0, *map(len, lines)])
    text, starts = memo["relations as lines"]
    shared: Counter[int] = Counter()
    for word in content_words(ctx.question):
        places = [found.start() for found in re.finditer(f" {re.escape(word)} ", text)]
        shared.update((np.unique(np.searchsorted(starts, places, side="right")) - 1).tolist())
    return [at for at, _ in shared.most_common(_MAX_LABELS)]


def fact_subjects(view: View) -> FactSubjects:
    """Return the subject of each fact, computed once per generation."""
    if "subjects" not in view.memo:
        view.memo["subjects"] = _compute_fact_subjects(view)
    found: FactSubjects = view.memo["subjects"]
    return found


def _compute_fact_subjects(view: View) -> FactSubjects:
    count = view.count("fact")
    if not has_vectors(view, "entity"):
        none = Estimates(np.zeros(count, np.float32))
        return FactSubjects(np.zeros(0, np.int64), np.zeros(count, np.int64), none)
    kept = view.derive_once("subjects of facts", lambda: _find_subjects(view))
    compare = partial(_compare_with_subjects, view, kept["subject"])
    cosine = Estimates(np.zeros(count, np.float32), np.zeros(count, np.bool_), compare)
    return FactSubjects(kept["entities"], kept["index"], cosine)


def _find_subjects(view: View) -> dict[str, Ints]:
    """Each fact's subject (-1 for none), all that are one, and each fact's among these."""
    members = view.links("fact_entity")
    owner = members.row_numbers()
    subject = np.flatnonzero(members.weights == 0)  # role 0
    of = np.full(len(members), -1, np.int64)
    of[owner[subject]] = members.columns[subject]
    is_subject = np.zeros(view.count("entity") + 1, np.bool_)
    is_subject[of] = True  # the last one stands for none
    is_subject[-1] = False
    entities = np.flatnonzero(is_subject)
    place = np.cumsum(is_subject) - 1
    place[-1] = len(entities)
    return {"subject": of, "entities": entities, "index": place[of]}


def _compare_with_subjects(view: View, subject: Ints, facts: Ints) -> Floats:
    """Cosine of each fact's text with the name of its subject; 0 without one."""
    cosine = np.zeros(len(facts), np.float32)
    for begin in range(0, len(facts), _BLOCK_SIZE):
        some = slice(begin, begin + _BLOCK_SIZE)
        names = np.maximum(subject[facts[some]], 0)
        both = view.vectors("fact", facts[some]) * view.vectors("entity", names)
        cosine[some] = np.where(subject[facts[some]] >= 0, both.sum(axis=1), 0)
    return cosine
