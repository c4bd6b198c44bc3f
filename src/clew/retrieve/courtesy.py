"""Leaves out of a question what only addresses the reader, whatever its wording.

Word lists know "could you please tell me" (`clew.retrieve.question`). What they do not know is
judged by meaning: a clause that names nothing and asks nothing ("I hope you are well"), and the
words before a question that speak of "I" or "you" ("would you mind telling me who …").
"""

import re
from collections.abc import Iterator, Sequence

from clew.context import Context
from clew.retrieve.wording import can_judge, judge
from clew.text.names import Tokens, tokenize

Span = tuple[int, int]
"""The first token and the one behind the last."""
_ASKING = frozenset("who whom whose which what when where why how".split())
_ADDRESSING = frozenset("i you me we us my your".split())
_JOINING = frozenset(("but", "and", "so"))  # "sorry to bother you, but who …"
_MAX_WORDS = 14  # of a clause that may be courtesy
_LEAST_LEFT = 2  # words that a question keeps
_COURTEOUS = 0.6  # probability from which a clause is left out
_CLAUSE_END = re.compile(r"[.,:;!?\n–—]")


async def leave_out_courtesy(ctx: Context, question: str) -> str:
    """Return the question without the clauses that only address the reader."""
    t = tokenize(question)
    spans = list(dict.fromkeys(_find_candidates(question, t)))
    if not spans or not can_judge(ctx, question):
        return question
    texts = [question[t.starts[first] : t.ends[last - 1]] for first, last in spans]
    chances = await judge(ctx, "courtesy", texts)
    dropped = {
        at
        for (first, last), chance in zip(spans, chances, strict=True)
        if chance > _COURTEOUS
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


def _find_candidates(question: str, t: Tokens) -> Iterator[Span]:
    """Yield the parts of a question that name nothing and ask nothing."""
    clauses = list(_split_clauses(question, t))
    for first, last in clauses:
        asks = next((at for at in range(first, last) if t.keys[at] in _ASKING), last)
        if asks == last:
            if len(clauses) > 1 and _names_nothing(t, first, last):
                yield first, last
        elif asks - first > 1 and _names_nothing(t, first, asks):
            if not _ADDRESSING.isdisjoint(t.keys[first:asks]):
                yield first, asks
    # "… was born Many thanks in advance": a sentence of its own without a mark before it.
    first, last = clauses[-1] if clauses else (0, 0)
    capitals = [at for at in range(first + 1, last) if t.upper[at] and t.keys[at] != "i"]
    if capitals and last - capitals[-1] > 1 and _names_nothing(t, capitals[-1], last):
        yield capitals[-1], last


def _split_clauses(question: str, t: Tokens) -> Iterator[Span]:
    first = 0
    for at in range(len(t)):
        between = question[t.ends[at] : t.starts[at + 1] if at + 1 < len(t) else len(question)]
        if at + 1 == len(t) or _CLAUSE_END.search(between):
            yield first, at + 1
            first = at + 1


def _names_nothing(t: Tokens, first: int, last: int) -> bool:
    """Whether words have neither digits nor a capital but for the first one's and that of "I"."""
    if last - first > _MAX_WORDS or any(t.digit[first:last]):
        return False
    return not any(t.upper[at] and t.keys[at] != "i" for at in range(first + 1, last))
