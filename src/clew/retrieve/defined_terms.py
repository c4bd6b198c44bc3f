"""Finds the passages that define what a question names: an option, a setting, a code, a term.

Words and vectors find the passages that speak of `--onto`; the one whose line begins with it and
says what it does is rarely among the first, as it has each word once. Definitions are told by their
form (`clew.text.definitions`), so that they are found in any language.
"""

import re

import numpy as np

from clew.context import Context, TraceStep
from clew.graph.csr import Floats, Ints
from clew.text.code_names import find_code_names, find_marked
from clew.text.definitions import defines_term, find_signed_letters
from clew.text.unicode import split_words

_MAX_TERMS = 4  # of a question that are looked up
_MAX_READ = 200  # passages with a term that are read, the best by relevance
# For the only definition of a code, or of a term in words. By the mean of found over the dev halves
# of bench.documents and questions on manual pages: three quarters to all of it do best.
_CODE_BONUS, _TERM_BONUS = 0.6, 0.3
_ASKED = re.compile(
    r"what(?:'s|\s+(?:is|are|does|do))\s+(?:an?\s+|the\s+)?(?P<term>\S+(?:\s+\S+){0,3}?)"
    r"(?:\s+(?:mean|do|used\s+for|for))?\s*[?.]*",
    re.IGNORECASE,
)


def find_named_terms(question: str) -> dict[str, float]:
    """Return the codes of a question, or the term whose meaning it asks for, with their bonus."""
    codes = [found.name for found in (*find_code_names(question), *find_marked(question))]
    codes += find_signed_letters(question)
    found = dict.fromkeys(codes[:_MAX_TERMS], _CODE_BONUS)
    asked = _ASKED.fullmatch(question.strip())
    if not found and asked:
        found[asked["term"].rstrip("?.")] = _TERM_BONUS
    return found


async def score_definitions(ctx: Context, scores: Floats) -> Floats:
    """Return what to add to the score of each chunk: a bonus where it defines a named term.

    Many definitions of one term share its bonus: what the others say decides among them.
    """
    added = np.zeros_like(scores)
    for term, bonus in find_named_terms(ctx.question).items():
        words = split_words(term)
        at = ctx.view.bm25.chunks_with_all(words).astype(np.int64) if words else None
        if at is None or not len(at):
            continue
        best: Ints = at[np.argsort(-scores[at], kind="stable")[:_MAX_READ]]
        keys = ctx.view.keys("chunk")[best]
        chunks = await ctx.snapshot.chunks(keys.tolist())
        defining = [
            place
            for place, key in zip(best.tolist(), keys.tolist(), strict=True)
            if key in chunks and defines_term(term, chunks[key].text)
        ]
        if defining:
            added[defining] = np.maximum(added[defining], bonus / len(defining) ** 0.5)
            said = f"{len(defining)} passages define it" if len(defining) > 1 else "one defines it"
            ctx.trace.append(TraceStep("definitions", term, said, 0.0))
    return added
