"""Cite the sentences that a model wrote, but those that the cited place says otherwise.

The words of a quote make false sentences, too. What a place says the other way round, with another
bound, of a part, of something else, or with fewer pieces, does not support a sentence.
"""

from collections.abc import Sequence

from clew.agents.answering.told import find_home, find_reference
from clew.agents.answering.unsaid import mean_same
from clew.agents.citing.check import cite_sentences
from clew.agents.reading.claims import explain_false, find_added
from clew.agents.reading.spans import asked_words
from clew.context import Context, TraceStep
from clew.types import Citation, Passage, Statement

_SAME = 0.6  # cosine of two words for one thing


async def cite_written(
    ctx: Context,
    written: Sequence[tuple[str, Sequence[int]]],
    passages: Sequence[Passage],
    facts: Sequence[Statement] = (),
) -> tuple[list[tuple[str, list[Citation]]], str]:
    """Return each sentence with the citations that support it, and why some that have its words do
    not: "“A sued B”: the passage says it the other way round".
    """
    cited, reasons = list[tuple[str, list[Citation]]](), list[str]()
    for text, found in await cite_sentences(ctx, written, passages, facts):
        reason = await _explain_unsupported(ctx, text, found, passages)
        cited.append((text, [] if reason else found))
        if reason:
            reasons.append(f"“{text}”: {reason}")
            ctx.trace.append(TraceStep("claim", text, f"not supported: {reason}", 0.0))
    return cited, "; ".join(reasons)


async def _explain_unsupported(
    ctx: Context, text: str, found: Sequence[Citation], passages: Sequence[Passage]
) -> str:
    """Return why what is cited does not say a sentence; "" where it does, or nothing is cited."""
    if not found:
        return ""
    around = " ".join(_find_around(one, passages) for one in found)
    quotes = [one.quote for one in found]
    if reason := explain_false(text, quotes, around):
        return reason
    whole = f"{around} {' '.join(quotes)}"
    for word in find_added(text, whole):
        if not await mean_same(ctx, [word], asked_words(whole), _SAME):
            return f"the passage does not say “{word}”"
    return ""


def _find_around(cited: Citation, passages: Sequence[Passage]) -> str:
    """Return what a quote stands under, and the sentence before that it refers to."""
    home = find_home(cited, passages)
    if home is None:
        return ""
    before = home.text[find_reference(cited, home) : cited.start - home.start]
    return f"{home.title} {home.heading} {before}"
