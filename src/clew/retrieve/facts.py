"""Cosine similarity of facts with a text, each fact read together with its subject.

A triple names its subject; a sentence often says "he" or "the film". The subject, which the
extractor knows, is added: the cosine is that with the sum of both vectors. Facts of an imported
graph have no sentence worth embedding: their entity names and relation are compared instead.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.retrieve.paths.ways import has_vectors, kept_vectors, label_words
from clew.view import View

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

_MANY = 0.25  # share of all entities; with more subjects one pass over all is faster
_BLOCK = 4096  # facts whose vectors are compared with their subjects' at a time


@dataclass(frozen=True, slots=True)
class Subjects:
    """Each fact's subject as an index into `entities` (past the end for none), and their cosine."""

    entities: Ints
    of: Ints
    cosine: Floats

    def lengths(self, view: View, share: float) -> Floats:
        """Length of each fact's text vector plus `share` of its subject's; 1 without one."""
        key = f"subjects {share}"
        if key not in view.memo:
            has_subject = self.of < len(self.entities)
            length = np.sqrt(1 + share * share + 2 * share * self.cosine)
            view.memo[key] = np.where(has_subject, length, 1).astype(np.float32)
        lengths: Floats = view.memo[key]
        return lengths


async def fact_nearness(
    ctx: Context, vector: Floats, share: float = 0.0, at: Ints | None = None
) -> Floats:
    """Cosine of facts (or those at `at`) with a vector; subjects' names count `share`."""
    view = ctx.view
    if not has_vectors(view, "fact"):
        return await _by_labels(ctx, vector, at)
    near = ctx.similar("fact", vector, at)
    about = subjects(view) if share else None
    if about is None or not len(about.entities):
        return near
    entities, of, length = about.entities, about.of, about.lengths(view, share)
    if at is not None:
        used, of = np.unique(of[at], return_inverse=True)
        # The index past the end stands for facts without a subject.
        entities, length = entities[used[used < len(entities)]], length[at]
    if len(entities) > _MANY * view.count("entity"):
        subject = ctx.similar("entity", vector)[entities]
    else:
        subject = ctx.similar("entity", vector, entities)
    subject = np.append(np.float32(share) * np.maximum(subject, 0), np.float32(0))
    summed: Floats = near + subject[of]
    summed /= length
    return summed


async def _by_labels(ctx: Context, vector: Floats, at: Ints | None) -> Floats:
    """Mean of the cosine of the nearest member's name and that of the relation."""
    view, members = ctx.view, ctx.view.links("fact_entity")
    facts = np.arange(view.count("fact")) if at is None else at
    which, edge = members.edges_of(facts)
    names = ctx.similar("entity", vector)[members.columns[edge]]
    nearest = np.full(len(facts), -1, np.float32)
    np.maximum.at(nearest, which, names)
    words = await label_words(ctx)
    if not words:
        return nearest
    labels = (await kept_vectors(ctx, words)) @ vector
    relation = view.relations[facts]
    mean: Floats = ((nearest + np.where(relation >= 0, labels[relation], 0)) / 2).astype(np.float32)
    return mean


def subjects(view: View) -> Subjects:
    """Return the subject of each fact, computed once per generation."""
    if "subjects" not in view.memo:
        view.memo["subjects"] = _subjects(view)
    found: Subjects = view.memo["subjects"]
    return found


def _subjects(view: View) -> Subjects:
    members = view.links("fact_entity")
    owner = np.repeat(np.arange(len(members)), members.degrees())
    subject = np.flatnonzero(members.weights == 0)  # role 0
    of = np.full(len(members), -1, np.int64)
    of[owner[subject]] = members.columns[subject]
    cosine = np.zeros(len(members), np.float32)
    if not has_vectors(view, "entity"):
        return Subjects(np.zeros(0, np.int64), np.zeros(len(members), np.int64), cosine)
    with_subject = np.flatnonzero(of >= 0)
    for begin in range(0, len(with_subject), _BLOCK):
        some = with_subject[begin : begin + _BLOCK]
        both = view.vectors("fact", some) * view.vectors("entity", of[some])
        cosine[some] = both.sum(axis=1)
    entities, index = np.unique(of[with_subject], return_inverse=True)
    of[:] = len(entities)
    of[with_subject] = index
    return Subjects(entities, of, cosine)
