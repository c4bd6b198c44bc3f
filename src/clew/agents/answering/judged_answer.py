"""Let the scorer judge an answer as it is given: with the sentences that it cites."""

from collections.abc import Sequence

from clew.agents.answering.told import find_home
from clew.agents.core.confidence import JUDGED
from clew.agents.core.types import Answer
from clew.agents.reading.judged import Place, can_judge, judge_texts, say_with_places
from clew.agents.reading.spans import read_passages
from clew.context import Context
from clew.types import Citation, Passage

_MAX_QUOTE = 160  # characters of a quote that is judged as an answer


async def judge_cited(
    ctx: Context,
    question: str,
    names: Sequence[str],
    answer: Answer,
    chosen: Sequence[str],
    cited: Sequence[Passage],
) -> dict[str, float]:
    """Return how far an answer, or else its first quote, answers a question, if that is judged.

    Of an answer that lists several things the one that answers least counts, of what is read in a
    quote the one that answers best.
    """
    if answer.computed or answer.kind in ("path", "words") or not answer.citations:
        return {}
    if answer.candidate:
        judged = await judge_texts(ctx, question, say_cited(names, answer, chosen, cited))
        return {JUDGED: min(judged)} if judged else {}
    found = await _read_quote(ctx, question, answer.citations[0], cited)
    judged = await judge_texts(ctx, question, _say_found(names, answer, found))
    return {JUDGED: max(judged)} if judged else {}


def say_cited(
    names: Sequence[str], answer: Answer, chosen: Sequence[str], cited: Sequence[Passage]
) -> list[str]:
    """Say an answer that is named, or each thing that it lists, with the sentences it rests on."""
    whole = _place_answer(answer.candidate, answer.citations, cited)
    found = [whole] if whole else [_place_answer(o, answer.citations, cited) for o in chosen]
    return _say_found(names, answer, found)


def _say_found(
    names: Sequence[str], answer: Answer, found: Sequence[tuple[str, list[Place]] | None]
) -> list[str]:
    others = answer.evidence.chunks
    return [say_with_places(short, places, names, others) for short, places in filter(None, found)]


def _place_answer(
    short: str, citations: Sequence[Citation], cited: Sequence[Passage]
) -> tuple[str, list[Place]] | None:
    """Return an answer with the places that lead to it, the last of them its own.

    A model may name the answer first, and then say what leads to it.
    """
    places: list[Place] = []
    for one in sorted(citations, key=lambda cited: short in cited.quote):
        home = find_home(one, cited)
        if home is None:
            continue
        start, end = one.start - home.start, one.end - home.start
        at = home.text.find(short, start, end)
        if at >= 0:
            return short, [*places, Place(home, at, at + len(short))]
        places.append(Place(home, start, end))
    return None


async def _read_quote(
    ctx: Context, question: str, cited: Citation, passages: Sequence[Passage]
) -> list[tuple[str, list[Place]] | None]:
    """Return the spans that are read in a quote, each with its place, and the quote itself."""
    home = find_home(cited, passages)
    if home is None or not can_judge(ctx):
        return []
    start, end = cited.start - home.start, cited.end - home.start
    read = await read_passages(ctx, question, [home])
    inside = [one for one in read if start <= one.start and one.end <= end]
    whole = " ".join(cited.quote.split())[:_MAX_QUOTE], [Place(home, start, end)]
    return [*((one.text, [Place(home, one.start, one.end)]) for one in inside), whole]
