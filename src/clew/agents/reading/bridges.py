"""Tell whether each step of an answer over two sentences says what a short question asks.

A sentence that leads to another page must say the relation that is asked: "She married N" leads to
N, and says nothing of a sister. And what is said at the end must be said of what was reached: "He
was born" on the page of the son tells nothing of his mother. The scorer judges a step by its own
question and sentence; a step counts as unsaid where its words lack as well.
"""

from collections.abc import Sequence

from clew.agents.citing.support import has_title, mentions_name
from clew.agents.core.confidence import UNSAID_STEP
from clew.agents.reading.answer import RankedCandidate
from clew.agents.reading.follow import Piece, ask_piece, find_pieces
from clew.agents.reading.judged import Place, judge_texts, say_with_places
from clew.agents.reading.restrictions import is_short, states_relation
from clew.agents.reading.spans import Reading, asked_words
from clew.agents.rules.question_analysis import find_subject_names
from clew.context import Context

_UNLIKELY = -0.9  # what the scorer finds of a sentence that does not say a relation, -1 to 1
_DOUBTFUL = -0.2  # of one that may speak of something else


async def find_unsaid_step(ctx: Context, best: RankedCandidate) -> dict[str, float]:
    """Return the signal of an unsaid step, if there is one.

    A longer question, or one with two names, may be told by sentences that are not cited.
    """
    names = find_subject_names(ctx.view, ctx.question)
    readings = best.candidate.readings
    if len(names) > 1 or not is_short(ctx.question, names):
        return {}
    unsaid = False
    if best.bridge is not None:
        unsaid = await _leads_by_nothing(ctx, best.bridge)
    elif len(readings) > 1:
        unsaid = await _ends_elsewhere(ctx, names, readings)
    return {UNSAID_STEP: 1.0} if unsaid else {}


async def _leads_by_nothing(ctx: Context, bridge: Reading) -> bool:
    """Whether a sentence leads to a page by no relation that a piece of the question names."""
    pieces = find_pieces(ctx, ctx.question)
    told = f"{bridge.passage.title} {bridge.cite().quote}"
    if any(_is_stated(ctx.question, piece, told) for piece in pieces):
        return False
    asked = [ask_piece(ctx.question, piece) for piece in pieces]
    return all([await _judge_step(ctx, one, bridge) < _UNLIKELY for one in asked])


def _is_stated(question: str, piece: Piece, told: str) -> bool:
    """Whether a text has a word by which a piece goes beyond its name, or a synonym."""
    rest = question[piece.start : piece.end].replace(piece.name, " ")
    return any(states_relation(question, word, told) for word in asked_words(rest))


async def _ends_elsewhere(ctx: Context, names: Sequence[str], readings: Sequence[Reading]) -> bool:
    """Whether the last sentence is about what the question names, not about what was reached."""
    *_, before, last = readings
    start, end = last.sentence()
    of_name = any(has_title(last.passage, name) for name in names)
    if not of_name or mentions_name(before.text, last.passage.text[start:end]):
        return False
    return await _judge_step(ctx, last.question, last) < _DOUBTFUL


async def _judge_step(ctx: Context, question: str, step: Reading) -> float:
    """Return how far the scorer finds one sentence to answer the question of its step, -1 to 1."""
    place = Place(step.passage, step.start, step.end)
    judged = await judge_texts(ctx, question, [say_with_places(step.text, [place], (), ())])
    return judged[0] if judged else 1.0
