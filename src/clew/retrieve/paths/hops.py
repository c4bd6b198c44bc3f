"""Predicts how many hops a question needs from its wording."""

import numpy as np

from clew.adapt.keep import tuning_of
from clew.context import Context
from clew.graph.traverse import Ways
from clew.retrieve.naming.question_shape import Shape
from clew.retrieve.paths.meaning import word_votes
from clew.retrieve.paths.ways import MANY_RELATIONS, Floats, kept_vectors

_MENTION = 0.4
_MOST = 4


async def predicted_hops(ctx: Context, ways: Ways, shape: Shape) -> int:
    """Predict by the tuned classifier, or else by counting the relations that are mentioned.

    Every run of words that votes for one relation is a hop; words such as "same" and "also" add
    a way back.
    """
    classifier = tuning_of(ctx.view).hops
    if classifier is not None:
        [vector] = await kept_vectors(ctx, [shape.rest or ctx.question])
        return classifier.most_likely(vector)
    if not 0 < ways.names <= MANY_RELATIONS:
        return 2 if shape.sharing else 1
    votes = await word_votes(ctx, shape, np.arange(ways.names))
    return int(np.clip(_mentions(shape, votes) + shape.sharing, 1, _MOST))


def _mentions(shape: Shape, votes: Floats) -> int:
    """Count runs of neighbouring words that vote for the same relation."""
    count, last, place = 0, -1, -2
    for at, row in zip(shape.places, votes, strict=True):
        relation = int(row.argmax()) if len(row) and row.max() > _MENTION else -1
        if relation < 0:
            continue
        if relation != last or at != place + 1:
            count += 1
        last, place = relation, at
    return count
