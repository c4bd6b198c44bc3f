"""Builds training examples from questions with known answers."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.adapt.learn_paths import PathExample
from clew.adapt.learn_queries import PassageExample
from clew.context import Context
from clew.errors import InputError
from clew.evaluate.datasets import Question
from clew.graph.traverse import Ints, among
from clew.retrieve.naming.link_entities import LinkEntities
from clew.retrieve.naming.question_shape import shape_of, spans_of
from clew.retrieve.paths.hops import predicted_hops
from clew.retrieve.paths.meaning import path_features
from clew.retrieve.paths.trail_search import AllTrails, Tracked, ground, tracked
from clew.retrieve.paths.ways import Floats, kept_vectors
from clew.retrieve.rank import best
from clew.types import Found

_HOPS = 3
_RIGHT = 0.3  # least F1 of the entities a path reaches with the answers, to count as right
_RIVALS = 32  # nearest passages of a question
_AT_ONCE = 512  # questions embedded together


@dataclass(frozen=True, slots=True)
class Learnable:
    """A question as a training example."""

    path: PathExample
    hops: int
    first: bool
    """Whether the untuned embedder ranks a right path first."""
    counted: int
    """The number of hops predicted from its words."""
    rest: str
    """The question without its names."""


async def path_examples(
    ctx: Context, questions: Sequence[Question], weights: Floats
) -> AsyncIterator[Learnable | None]:
    """Yield one for each question; None where its entities or answers are unknown."""
    for at in range(0, len(questions), _AT_ONCE):
        block = questions[at : at + _AT_ONCE]
        shapes = [shape_of(q.text, spans_of(q.text, q.entities)) for q in block]
        texts = [shape.rest for shape in shapes if shape.rest]
        await kept_vectors(ctx, [*texts, *(word for shape in shapes for word in shape.words)])
        for question in block:
            asked = replace(ctx, question=question.text, given=tuple(question.entities))
            yield await _path_example(asked, question, weights)


async def _path_example(ctx: Context, question: Question, weights: Floats) -> Learnable | None:
    answers = _positions(ctx, question.answers)
    if not len(answers):
        return None
    try:
        found = await LinkEntities()(ctx, Found())
    except InputError:
        return None
    on = ground(ctx, found)
    if on.ways.names == 0:
        return None
    trails = await tracked(on, _HOPS, AllTrails(on.scorer))
    named = np.flatnonzero((on.ways.own_fact(trails.codes) < 0).all(axis=1))
    fits = np.array([_f1(trails, int(at), answers) for at in named])
    if not len(fits) or fits.max() < _RIGHT:
        return None
    codes = trails.codes[named]
    right = fits >= fits.max() - 1e-6
    seen = await path_features(ctx, on.ways, on.shape, codes)
    rest = on.shape.rest or question.text
    [asked] = await kept_vectors(ctx, [rest])
    hops = int((codes[right] >= 0).sum(axis=1).min())
    first = bool(right[int((seen @ weights).argmax())])
    counted = await predicted_hops(ctx, on.ways, on.shape)
    return Learnable(PathExample(asked, codes, seen, right), hops, first, counted, rest)


def _positions(ctx: Context, names: Sequence[str]) -> Ints:
    found = [entities for entities in ctx.view.named(names) if len(entities)]
    return np.unique(np.concatenate(found)).astype(np.int64) if found else np.zeros(0, np.int64)


def _f1(trails: Tracked, at: int, answers: Ints) -> float:
    ends = trails.ends(at)
    return 2 * int(among(ends, answers).sum()) / (len(ends) + len(answers))


def with_gold(questions: Sequence[Question], documents: dict[str, Ints]) -> list[Question]:
    """Return those with known gold documents; `documents` maps a name to its chunks."""
    return [q for q in questions if any(len(documents.get(doc, ())) for doc in q.gold)]


async def passage_examples(
    ctx: Context, questions: Sequence[Question], documents: dict[str, Ints]
) -> list[PassageExample]:
    """Return one for each question that `filter_with_gold` kept."""
    if not questions or ctx.embed is None:
        return []
    vectors = await ctx.embed([q.text for q in questions], role="passage")
    found = []
    for question, asked in zip(questions, vectors, strict=True):
        gold = np.unique(np.concatenate([documents[d] for d in question.gold if d in documents]))
        near = best(ctx.view.similar("chunk", asked), ctx.view.keys("chunk"), _RIVALS)
        chunks = np.concatenate([gold, near[~among(near, gold)]]).astype(np.int64)
        right = np.arange(len(chunks)) < len(gold)
        found.append(PassageExample(asked, ctx.view.vectors("chunk", chunks), right))
    return found
