"""Leaves out of a question what only addresses the reader, whatever its wording.

Word lists know "could you please tell me" (`clew.retrieve.question`). What they do not know is
judged by meaning: a clause that names nothing and asks nothing ("I hope you are well"), and the
words before a question that speak of "I" or "you" ("would you mind telling me who …").
"""

import re
from collections.abc import Iterator, Sequence

from clew.context import Context
from clew.retrieve.question import QUESTION_WORDS
from clew.retrieve.wording import can_judge, judge
from clew.text.names import Tokens, tokenize

Span = tuple[int, int]
"""The first token and the one behind the last."""
_ASKING = frozenset("who whom whose which what when where why how".split())
_ADDRESSING = frozenset("i you me we us my your".split())
_JOINING = frozenset(("but", "and", "so"))  # "sorry to bother you, but who …"
_MAX_WORDS = 14  # of a clause that may be courtesy
_LEAST_LEFT = 2  # words that a question keeps
# Probability from which a clause is left out, and a last one that only a comma parts from the rest.
_COURTEOUS, _SURELY_COURTEOUS = 0.6, 0.9
_MAX_CLOSING = 4  # words of such a one
_ABBREVIATION = 3  # letters of a capitalised word whose mark may be its own
_SENTENCE_END = re.compile(r"[.!?]\S?\s|\n")
_COMMA = re.compile(r"\s*[,:;–—]\s")


async def leave_out_courtesy(ctx: Context, question: str) -> str:
    """Return the question without the clauses that only address the reader."""
    t = tokenize(question)
    least = dict(_find_candidates(question, t))
    if not least or not can_judge(ctx, question):
        return question
    texts = [question[t.starts[first] : t.ends[last - 1]] for first, last in least]
    chances = await judge(ctx, "courtesy", texts)
    dropped = {
        at
        for ((first, last), enough), chance in zip(least.items(), chances, strict=True)
        if chance > enough
        for at in range(first, last)
    }
    kept = [at for at in range(len(t)) if at not in dropped]
    if 0 in dropped and kept and t.keys[kept[0]] in _JOINING:
        kept = kept[1:]
    if not dropped or len(kept) < _LEAST_LEFT:
        return question
    return _join(question, t, kept)


def _join(question: str, t: Tokens, kept: Sequence[int]) -> str:
    """Return the text of some tokens; marks stay with the words they follow."""
    ends = [*t.starts[1:], len(question)]
    last = kept[-1]
    text = "".join(question[t.starts[at] : ends[at]] for at in kept[:-1])
    closing = question[t.ends[last] : ends[last]].strip()
    return text + question[t.starts[last] : t.ends[last]] + closing.rstrip(",;:–—")


def _find_candidates(question: str, t: Tokens) -> Iterator[tuple[Span, float]]:
    """Yield the parts at both ends that name nothing and ask nothing, and how sure one must be."""
    clauses = list(_split_clauses(question, t))
    if len(clauses) > 1:
        yield from ((span, _COURTEOUS) for span, _ in _take_outer(t, clauses))
        for span, after_comma in _take_outer(t, clauses[::-1]):
            if after_comma and span[1] - span[0] > _MAX_CLOSING:
                break  # "…, as a sailor" belongs to what is asked
            yield span, _SURELY_COURTEOUS if after_comma else _COURTEOUS
    # "… was born Have a great day": a sentence of common words without a mark before it.
    (first, last), _ = clauses[-1] if clauses else ((0, 0), False)
    capitals = [at for at in range(first + 1, last) if t.upper[at] and t.keys[at] != "i"]
    if capitals and last - capitals[-1] > 2 and t.keys[capitals[-1]] in QUESTION_WORDS:
        if _names_nothing(t, capitals[-1], last):
            yield (capitals[-1], last), _SURELY_COURTEOUS
    for (first, last), _ in clauses:
        asks = next((at for at in range(first, last) if t.keys[at] in _ASKING), last)
        if 1 < asks - first < last - first and _names_nothing(t, first, asks):
            if not _ADDRESSING.isdisjoint(t.keys[first:asks]):
                yield (first, asks), _COURTEOUS


def _take_outer(t: Tokens, clauses: Sequence[tuple[Span, bool]]) -> Iterator[tuple[Span, bool]]:
    """Yield the clauses before the first that names or asks something."""
    for (first, last), after_comma in clauses:
        if not _ASKING.isdisjoint(t.keys[first:last]) or not _names_nothing(t, first, last):
            return
        yield (first, last), after_comma


def _split_clauses(question: str, t: Tokens) -> Iterator[tuple[Span, bool]]:
    """Yield what stands between marks, and whether the mark before it is only a comma.

    Marks of abbreviations ("Mr. Moto", "U.S.A.") end nothing.
    """
    first, after_comma = 0, False
    for at in range(len(t)):
        last = at + 1 == len(t)
        between = "" if last else question[t.ends[at] : t.starts[at + 1]]
        short = t.upper[at] and t.ends[at] - t.starts[at] <= _ABBREVIATION and at > first
        ends = _SENTENCE_END.search(between) and not (short and between.startswith("."))
        comma = _COMMA.match(between)
        if last or ends or comma:
            yield (first, at + 1), after_comma
            first, after_comma = at + 1, not ends


def _names_nothing(t: Tokens, first: int, last: int) -> bool:
    """Whether words have neither digits nor a capital but for the first one's and that of "I"."""
    if last - first > _MAX_WORDS or any(t.digit[first:last]):
        return False
    return not any(t.upper[at] and t.keys[at] != "i" for at in range(first + 1, last))
