"""Compare what backs two answers to one question: what a model wrote, and what is read.

Both are described by the same signals, each from the sentences that it cites: how far the scorer
finds it to answer, how many of the question's words and names they say, and whether it is the kind
of thing that is asked for. The weights are those that rank the reader's candidates, which were
fitted; what only the reader knows of its own spans counts for neither.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from clew.agents.answering.judged_answer import say_cited
from clew.agents.answering.told import find_home
from clew.agents.core.confidence import JUDGED, LogisticModel
from clew.agents.core.types import Answer
from clew.agents.reading.answer import find_pages
from clew.agents.reading.choose import Candidate, describe_candidate
from clew.agents.reading.follow import Chain
from clew.agents.reading.judged import judge_texts
from clew.agents.reading.spans import Reading
from clew.agents.rules.question_analysis import find_subject_names
from clew.context import Context
from clew.types import Citation, Passage

BACKED = "backed"
"""The signal of how much better one of two different answers is backed than the other, -1 to 1."""
_SHARED = ("covered", "covered last", "fits", "named", "noun", "repeats", "said", JUDGED)
_MOST = 4.0  # log odds beyond which it says nothing more
_WAYS = ("direct", "together", "chain")


async def compare_backing(ctx: Context, rank: LogisticModel, one: Answer, other: Answer) -> float:
    """Return how much better the first of two answers is backed, -1 to 1."""
    first, second = await describe_backing(ctx, one), await describe_backing(ctx, other)
    if not first or not second:
        return 0.0
    both = [name for name in _SHARED if name in first and name in second]
    ahead = sum(rank.weights.get(name, 0.0) * (first[name] - second[name]) for name in both)
    return max(-1.0, min(1.0, ahead / _MOST))


async def describe_backing(ctx: Context, answer: Answer) -> Mapping[str, float]:
    """Return what the citations of an answer say for it; nothing where none has it."""
    passages = answer.evidence.chunks
    readings = _read_citations(ctx.question, answer, passages)
    if not readings:
        return {}
    *steps, last = readings
    chain = Chain(ctx.question, tuple(steps)) if steps else None
    candidate = Candidate(answer.candidate, None if steps else last, None, chain, last)
    names, ways = find_subject_names(ctx.view, ctx.question), dict.fromkeys(_WAYS, 0.0)
    pages = find_pages(passages)
    signals = describe_candidate(candidate, (), ctx.question, names, pages, ways)
    said = say_cited(names, answer, (answer.candidate,), passages)
    judged = await judge_texts(ctx, ctx.question, said)
    return {**signals, JUDGED: judged[0]} if judged else signals


def _read_citations(
    question: str, answer: Answer, passages: Sequence[Passage]
) -> tuple[Reading, ...]:
    """Return the citations as readings, the one that has the answer last."""
    has = [one for one in answer.citations if answer.candidate in one.quote]
    order = [*(one for one in answer.citations if one is not has[-1]), has[-1]] if has else []
    found = [(one, find_home(one, passages)) for one in order]
    return tuple(_as_reading(question, answer, *pair) for pair in found if pair[1] is not None)


def _as_reading(question: str, answer: Answer, cited: Citation, home: Passage | None) -> Reading:
    assert home is not None
    start = cited.start - home.start
    at = cited.quote.find(answer.candidate)
    if at < 0:
        return Reading(question, cited.quote, home, start, start + len(cited.quote), 0.0)
    first = start + at
    return Reading(question, answer.candidate, home, first, first + len(answer.candidate), 0.0)


def bound_by(winner: Answer, other: Answer) -> Answer:
    """Return an answer no surer than one that differs leaves it: both cannot be right."""
    most = round(1 - other.confidence, 4)
    return replace(winner, confidence=min(winner.confidence, most))
