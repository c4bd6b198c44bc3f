"""Builds training examples from questions with known answers."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context
from clew.errors import InputError
from clew.evaluate.datasets import Question
from clew.graph.csr import Ints, isin_sorted
from clew.retrieve.labels import embed_cached
from clew.retrieve.linking.link_entities import LinkEntities
from clew.retrieve.paths.relation_paths import (
    KeepAllPaths,
    ScoredRelationPaths,
    prepare_search,
    search_relation_paths,
)
from clew.retrieve.subgraph.extract import predict_hops
from clew.tune.fit import PassageExample, PathExample
from clew.types import Found

_MAX_HOPS = 3
_MIN_F1 = 0.3  # least F1 of the entities a path reaches with the answers, to count as right
_NEAREST_PASSAGES = 32  # nearest passages of a question


@dataclass(frozen=True, slots=True)
class PathTrainingQuestion:
    """A question as a training example."""

    path: PathExample
    hops: int
    ranked_first: bool
    """Whether the untuned embedder ranks a right path first."""
    predicted_hops: int
    """The number of hops predicted without tuning."""
    rest: str
    """The question without its names."""


async def collect_path_examples(
    ctx: Context, questions: Sequence[Question]
) -> AsyncIterator[PathTrainingQuestion | None]:
    """Yield one for each question; None where its entities or answers are unknown."""
    for question in questions:
        asked = replace(ctx, question=question.text, given_entities=tuple(question.entities))
        yield await _make_path_example(asked, question)


async def _make_path_example(ctx: Context, question: Question) -> PathTrainingQuestion | None:
    answers = _entity_positions(ctx, question.answers)
    if not len(answers):
        return None
    try:
        found = await LinkEntities()(ctx, Found())
    except InputError:
        return None
    on = prepare_search(ctx, found)
    if on.ways.relation_count == 0:
        return None
    trails = await search_relation_paths(on, _MAX_HOPS, KeepAllPaths(on.scorer))
    named = np.flatnonzero((on.ways.fact_of_code(trails.codes) < 0).all(axis=1))
    fits = np.array([_f1(trails, int(at), answers) for at in named])
    if not len(fits) or fits.max() < _MIN_F1:
        return None
    codes = trails.codes[named]
    right = fits >= fits.max() - 1e-6
    scores, rest = trails.scores[named], found.rest or question.text
    [asked] = await embed_cached(ctx, [rest])
    hops = int((codes[right] >= 0).sum(axis=1).min())
    first = bool(right[int(scores.argmax())])
    counted = await predict_hops(ctx, found.rest)
    return PathTrainingQuestion(
        PathExample(asked, codes, scores, right), hops, first, counted, rest
    )


def _entity_positions(ctx: Context, names: Sequence[str]) -> Ints:
    found = [entities for entities in ctx.view.find_by_own_name(names) if len(entities)]
    return np.unique(np.concatenate(found)).astype(np.int64) if found else np.zeros(0, np.int64)


def _f1(trails: ScoredRelationPaths, at: int, answers: Ints) -> float:
    ends = trails.end_entities(at)
    return 2 * int(isin_sorted(ends, answers).sum()) / (len(ends) + len(answers))


def filter_with_gold(questions: Sequence[Question], documents: dict[str, Ints]) -> list[Question]:
    """Return those with known gold documents; `documents` maps a name to its chunks."""
    return [q for q in questions if any(len(documents.get(doc, ())) for doc in q.gold)]


async def collect_passage_examples(
    ctx: Context, questions: Sequence[Question], documents: dict[str, Ints]
) -> list[PassageExample]:
    """Return one for each question that `filter_with_gold` kept."""
    if not questions or ctx.embed is None:
        return []
    vectors = await ctx.embed([q.text for q in questions], role="passage")
    found = []
    for question, asked in zip(questions, vectors, strict=True):
        gold = np.unique(np.concatenate([documents[d] for d in question.gold if d in documents]))
        near, _ = ctx.nearest("chunk", asked, _NEAREST_PASSAGES)
        chunks = np.concatenate([gold, near[~isin_sorted(near, gold)]]).astype(np.int64)
        right = np.arange(len(chunks)) < len(gold)
        found.append(PassageExample(asked, ctx.view.vectors("chunk", chunks), right))
    return found
