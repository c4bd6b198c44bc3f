"""Every sentence that a model writes, held against the passages; those that nobody says go."""

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
    """Sentences with the marks of their citations; unsupported ones are marked, or dropped.

    A model may write several as one: each of them is checked by itself.
    """
    lines: list[str] = []
    citations: list[Citation] = []
    before = ""
    for several, sources in written:
        for text in apart(several):
            found = await cited(ctx, text, sources, passages)
            found = of_the_same(text, before, found, passages)
            citations += [one for one in dict.fromkeys(found) if one not in citations]
            marks = "".join(f"[{citations.index(one) + 1}]" for one in found)
            if marks:
                lines.append(f"{text} {marks}")
            elif mode == "open":
                lines.append(f"{text} {in_words_of(ctx.question, UNSUPPORTED)}")
            before = text
    return lines, citations


def apart(text: str) -> list[str]:
    """The sentences of a text; what has no word is none."""
    pieces = (text[start:end] for start, end in sentence_spans(text))
    return [piece for piece in pieces if _WORD.search(piece)]


def of_the_same(
    text: str, before: str, found: Sequence[Citation], passages: Sequence[Passage]
) -> list[Citation]:
    """The citations; of a sentence that begins with a pronoun those that tell of whom it means.

    "She was born in Ribe" is true of many: the passage must name somebody from the sentence before.
    """
    if not before or not _LEANS.match(text):
        return list(found)
    names = claim_of(before).names
    pages = {p.id: set(name_key(f"{p.title} {p.text}").split()) for p in passages}
    if not names:  # the one word that begins the sentence may be a name too
        first = frozenset(name_key(before).split()[:1])
        names = first if any(first & said for said in pages.values()) else names
    return [one for one in found if not names or names & pages.get(one.chunk, set())]


def candidate(ctx: Context, short: str, lines: Sequence[str], passages: Sequence[Passage]) -> str:
    """The short answer, if the sentences that were kept say it; a yes or no stands by itself."""
    bare = short.strip().rstrip(".")
    if unknown(bare) or invented(bare, _said(ctx, passages)):
        return ""
    return bare if bare.casefold() in _YES_NO or said_in(bare, " ".join(lines)) else ""


async def cited(
    ctx: Context, text: str, sources: Sequence[int], passages: Sequence[Passage]
) -> list[Citation]:
    """What bears a sentence out: the named passages, else any, by words and then by meaning."""
    if invented(text, _said(ctx, passages)):
        return []
    found = citations_for(text, sources, passages)
    if found:
        return found
    other = best_citation(text, passages)
    if other is None and (together := citations_for(text, range(1, len(passages) + 1), passages)):
        return together  # a small model names one passage for what two say
    if other is None and ctx.embed is not None:
        named = [passages[n - 1] for n in dict.fromkeys(sources) if 1 <= n <= len(passages)]
        other = await meant(ctx, text, named)
    return [other] if other is not None else []


def _said(ctx: Context, passages: Sequence[Passage]) -> list[str]:
    """All that a model was told: whatever else it names it has made up."""
    return [ctx.question, *(f"{passage.title} {passage.text}" for passage in passages)]


async def meant(ctx: Context, text: str, passages: Sequence[Passage]) -> Citation | None:
    """The sentence that says it in other words; its names and numbers must be there as they are."""
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
