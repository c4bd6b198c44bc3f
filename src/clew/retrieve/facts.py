"""How near facts are to a text, each read together with what it is about.

A triple says who it is about; a sentence says "he" or "the film". Its subject, which the extractor
knows, is read with it: the cosine is that with the sum of both vectors. Facts of a graph that was
imported have no text of their own worth a vector: their names and their relation speak for them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.retrieve.paths.ways import has_vectors, kept_vectors, label_words
from clew.view import View

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

_MANY = 0.25  # of all entities; where more are subjects, one pass over all is faster
_BLOCK = 4096  # facts whose vectors are compared with their subjects' at a time


@dataclass(frozen=True, slots=True)
class Subjects:
    """For each fact its subject's place in `entities`, behind the last for none, and the cosine."""

    entities: Ints
    of: Ints
    cosine: Floats

    def lengths(self, view: View, share: float) -> Floats:
        """How long the sum of text and so much of the subject's name is, 1 where there is none."""
        key = f"subjects {share}"
        if key not in view.memo:
            known = self.of < len(self.entities)
            length = np.sqrt(1 + share * share + 2 * share * self.cosine)
            view.memo[key] = np.where(known, length, 1).astype(np.float32)
        found: Floats = view.memo[key]
        return found


async def fact_nearness(
    ctx: Context, vector: Floats, share: float = 0.0, at: Ints | None = None
) -> Floats:
    """Cosine of facts (or those at `at`) with a vector, their subjects' names counting `share`."""
    view = ctx.view
    if not has_vectors(view, "fact"):
        return await _by_labels(ctx, vector, at)
    near = ctx.similar("fact", vector, at)
    known = subjects(view) if share else None
    if known is None or not len(known.entities):
        return near
    entities, of, length = known.entities, known.of, known.lengths(view, share)
    if at is not None:
        some, of = np.unique(of[at], return_inverse=True)
        # Facts without a subject stay behind the last.
        entities, length = entities[some[some < len(entities)]], length[at]
    if len(entities) > _MANY * view.count("entity"):
        subject = ctx.similar("entity", vector)[entities]
    else:
        subject = ctx.similar("entity", vector, entities)
    subject = np.append(np.float32(share) * np.maximum(subject, 0), np.float32(0))
    summed: Floats = near + subject[of]
    summed /= length
    return summed


async def _by_labels(ctx: Context, vector: Floats, at: Ints | None) -> Floats:
    """The mean of the nearest member's cosine and the relation's."""
    view, members = ctx.view, ctx.view.links("fact_entity")
    facts = np.arange(view.count("fact")) if at is None else at
    which, edge = members.edges_of(facts)
    names = ctx.similar("entity", vector)[members.columns[edge]]
    near = np.full(len(facts), -1, np.float32)
    np.maximum.at(near, which, names)
    words = await label_words(ctx)
    if not words:
        return near
    labels = (await kept_vectors(ctx, words)) @ vector
    relation = view.relations[facts]
    both: Floats = ((near + np.where(relation >= 0, labels[relation], 0)) / 2).astype(np.float32)
    return both


def subjects(view: View) -> Subjects:
    """Who each fact is about, where its text need not say so; made once per generation."""
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
    has = np.flatnonzero(of >= 0)
    for begin in range(0, len(has), _BLOCK):
        some = has[begin : begin + _BLOCK]
        both = view.vectors("fact", some) * view.vectors("entity", of[some])
        cosine[some] = both.sum(axis=1)
    entities, place = np.unique(of[has], return_inverse=True)
    of[:] = len(entities)
    of[has] = place
    return Subjects(entities, of, cosine)
