"""Check every sentence a model writes against the passages; mark or drop unsupported ones."""

import re
from collections.abc import Sequence

from clew.agents.answer import Mode
from clew.agents.writing.bearing import claim_of, same_signs
from clew.agents.writing.denial import agree
from clew.agents.writing.reading import unknown
from clew.agents.writing.support import (
    Place,
    best_citation,
    citations_for,
    invented,
    said_in,
    same_names,
)
from clew.agents.writing.support import citation as citation_at
from clew.agents.writing.wordings import UNSUPPORTED, in_words_of
from clew.context import Context
from clew.names import name_key
from clew.sentences import sentence_spans
from clew.types import Citation, Passage

_SAME_MEANING = 0.7  # cosine of two sentences (MiniLM)
_YES_NO = ("yes", "no", "是", "否", "不是")
_WORD = re.compile(r"\w")
# "It's a Wonderful Day" and "Her Majesty" are names.
_LEANS = re.compile(r"(?:He|She|It|They|His|Her|Its|Their)\s+(?=[a-z])")


async def checked_sentences(
    ctx: Context,
    written: Sequence[tuple[str, Sequence[int]]],
    passages: Sequence[Passage],
    mode: Mode,
) -> tuple[list[str], list[Citation]]:
    """Return the sentences with citation marks; unsupported ones are marked, or dropped.

    A model may write several sentences as one: each is checked separately.
    """
    lines: list[str] = []
    citations: list[Citation] = []
    previous = ""
    for several, sources in written:
        for text in apart(several):
            found = await cited(ctx, text, sources, passages)
            found = of_the_same(text, previous, found, passages)
            citations += [c for c in dict.fromkeys(found) if c not in citations]
            marks = "".join(f"[{citations.index(c) + 1}]" for c in found)
            if marks:
                lines.append(f"{text} {marks}")
            elif mode == "open":
                lines.append(f"{text} {in_words_of(ctx.question, UNSUPPORTED)}")
            previous = text
    return lines, citations


def apart(text: str) -> list[str]:
    """Split a text into sentences, without those that have no word."""
    pieces = (text[start:end] for start, end in sentence_spans(text))
    return [piece for piece in pieces if _WORD.search(piece)]


def of_the_same(
    text: str, before: str, found: Sequence[Citation], passages: Sequence[Passage]
) -> list[Citation]:
    """Filter the citations of a sentence that begins with a pronoun.

    "She was born in Ribe" is true of many: the passage must name somebody from the sentence before.
    """
    if not before or not _LEANS.match(text):
        return list(found)
    names = claim_of(before).names
    pages = {p.id: set(name_key(f"{p.title} {p.text}").split()) for p in passages}
    if not names:  # the one word that begins the sentence may be a name too
        first = frozenset(name_key(before).split()[:1])
        names = first if any(first & page_words for page_words in pages.values()) else names
    return [citation for citation in found if not names or names & pages.get(citation.chunk, set())]


def candidate(ctx: Context, short: str, lines: Sequence[str], passages: Sequence[Passage]) -> str:
    """Return the short answer if the kept sentences contain it; a yes or no needs no check."""
    bare = short.strip().rstrip(".")
    if unknown(bare) or invented(bare, _said(ctx, passages)):
        return ""
    return bare if bare.casefold() in _YES_NO or said_in(bare, " ".join(lines)) else ""


async def cited(
    ctx: Context, text: str, sources: Sequence[int], passages: Sequence[Passage]
) -> list[Citation]:
    """Find citations of a sentence in the named passages, else in any; by words or by meaning."""
    if invented(text, _said(ctx, passages)):
        return []
    found = citations_for(text, sources, passages)
    if found:
        return found
    best = best_citation(text, passages)
    if best is None and (combined := citations_for(text, range(1, len(passages) + 1), passages)):
        return combined  # a small model names one passage where it takes two
    if best is None and ctx.embed is not None:
        chosen = [passages[n - 1] for n in dict.fromkeys(sources) if 1 <= n <= len(passages)]
        best = await meant(ctx, text, chosen)
    return [best] if best is not None else []


def _said(ctx: Context, passages: Sequence[Passage]) -> list[str]:
    """Return all texts the model was given: any other name is invented."""
    return [ctx.question, *(f"{passage.title} {passage.text}" for passage in passages)]


async def meant(ctx: Context, text: str, passages: Sequence[Passage]) -> Citation | None:
    """Find a paraphrase of the sentence by cosine; its names and numbers must match exactly."""
    spans = [(p, start, end) for p in passages[:2] for start, end in sentence_spans(p.text)][:16]
    if not spans:
        return None
    vectors = await ctx.vectors([text, *(p.text[start:end] for p, start, end in spans)])
    cosines = [float(vector @ vectors[0]) for vector in vectors[1:]]
    best = max(range(len(spans)), key=lambda at: cosines[at])
    passage, start, end = spans[best]
    quote = passage.text[start:end]
    same = same_names(text, passage, quote) and same_signs(text, quote)
    if cosines[best] < _SAME_MEANING or not same or not agree(text, quote):
        return None
    return citation_at(passage, Place(start, end, cosines[best]))
