"""How near facts are to a text, each read together with what it is about.

A triple says who it is about; a sentence says "he" or "the film". Its subject, which the extractor
knows, is read with it: the cosine is that with the sum of both vectors. Facts of a graph that was
imported have no text of their own worth a vector: their names and their relation speak for them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.retrieve.ways import has_vectors, kept_vectors, label_words
from clew.view import View

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

_BLOCK = 4096  # facts whose vectors are compared with their subjects' at a time
_SHARE = 0.25  # of all entities; where more are subjects, one pass over all is faster


@dataclass(frozen=True, slots=True)
class Subjects:
    """For each fact its subject among `entities` (-1: none) and the cosine of the two."""

    entities: Ints
    of: Ints
    cosine: Floats


async def fact_nearness(
    ctx: Context, vector: Floats, share: float = 0.0, at: Ints | None = None
) -> Floats:
    """Cosine of facts (or those at `at`) with a vector, their subjects' names counting `share`."""
    view = ctx.view
    if not has_vectors(view, "fact"):
        return await _by_labels(ctx, vector, at)
    near = view.similar("fact", vector, at)
    known = subjects(view) if share else None
    if known is None or not len(known.entities):
        return near
    of, cosine = (known.of, known.cosine) if at is None else (known.of[at], known.cosine[at])
    has = of >= 0
    subject = _entity_nearness(view, vector, known.entities)[of[has]]
    length = np.sqrt(1 + share * share + 2 * share * cosine[has])
    near[has] = (near[has] + share * subject) / length
    return near


def _entity_nearness(view: View, vector: Floats, entities: Ints) -> Floats:
    if len(entities) > _SHARE * view.count("entity"):
        near = view.similar("entity", vector)[entities]
    else:
        near = view.similar("entity", vector, entities)
    return np.maximum(near, 0)


async def _by_labels(ctx: Context, vector: Floats, at: Ints | None) -> Floats:
    """The mean of the nearest member's cosine and the relation's."""
    view, members = ctx.view, ctx.view.links("fact_entity")
    facts = np.arange(view.count("fact")) if at is None else at
    which, edge = members.edges_of(facts)
    names = view.similar("entity", vector)[members.columns[edge]]
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
        return Subjects(np.zeros(0, np.int64), np.full(len(members), -1, np.int64), cosine)
    has = np.flatnonzero(of >= 0)
    for begin in range(0, len(has), _BLOCK):
        some = has[begin : begin + _BLOCK]
        both = view.vectors("fact", some) * view.vectors("entity", of[some])
        cosine[some] = both.sum(axis=1)
    entities, place = np.unique(of[has], return_inverse=True)
    of[has] = place
    return Subjects(entities, of, cosine)
