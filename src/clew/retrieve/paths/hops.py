"""Predicts how many hops a question needs from its wording."""

import numpy as np

from clew.adapt.keep import get_tuning
from clew.context import Context
from clew.graph.traverse import FactGraph
from clew.retrieve.naming.question_shape import QuestionShape
from clew.retrieve.paths.meaning import compute_word_votes
from clew.retrieve.paths.ways import MAX_RELATION_LABELS, Floats, embed_cached

_HOP_VOTE = 0.4
_MAX_HOPS = 4


async def predict_hops(ctx: Context, ways: FactGraph, shape: QuestionShape) -> int:
    """Predict by the tuned classifier, or else by counting the relations that are mentioned.

    Every run of words that votes for one relation is a hop; words such as "same" and "also" add
    a way back.
    """
    classifier = get_tuning(ctx.view).hops
    if classifier is not None:
        [vector] = await embed_cached(ctx, [shape.rest or ctx.question])
        return classifier.predict(vector)
    if not 0 < ways.relation_count <= MAX_RELATION_LABELS:
        return 2 if shape.has_shared_word else 1
    votes = await compute_word_votes(ctx, shape, np.arange(ways.relation_count))
    return int(
        np.clip(_count_relation_mentions(shape, votes) + shape.has_shared_word, 1, _MAX_HOPS)
    )


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
