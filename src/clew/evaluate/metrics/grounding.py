"""Groundedness and citations, checked by code on the passages' own words."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clew.agents.writing.support import ENOUGH, best_place
from clew.agents.writing.wordings import CANDIDATE, UNSUPPORTED, said_as
from clew.sentences import sentence_spans
from clew.types import Citation, Passage

_UNBORNE = "|".join(map(re.escape, said_as(UNSUPPORTED)))
_MARKS = re.compile(rf"((?:\s*\[\d+\])+|\s*(?:{_UNBORNE}))")
_NUMBER = re.compile(r"\[(\d+)\]")
# A citation as models and packages write it; a number that begins or joins a word is a name.
_CITED = re.compile(r"(?<=\S)\s*\[\d+(?:\s*[,;–-]\s*\d+)*\](?![\w-])")
_LABEL = re.compile(rf"^{CANDIDATE}\s*")
# What a mark before it left over ("… [1]. Next"), and the sign of a list.
_LEFT_OVER = re.compile(r"(?:[\s.,;:!?…。．，；：！？、)）”]|[-*•]\s)+")
_QUOTED = re.compile(r"“[^”]*”")
_ASKS = ("?", "？")


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer or a part of one, and the citations (from 0) it is marked with."""

    text: str
    cited: tuple[int, ...]


def claims(answer: str) -> list[Claim]:
    """An answer cut at its citation marks and into sentences; a mark is the last sentence's."""
    found: list[Claim] = []
    pieces = _MARKS.split(answer)
    for text, marks in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        said = [one for one in _sentences(text) if any(char.isalnum() for char in one)]
        cited = tuple(int(number) - 1 for number in _NUMBER.findall(marks))
        found += [Claim(one, ()) for one in said[:-1]]
        found += [Claim(one, cited) for one in said[-1:]]
    return found


def _sentences(text: str) -> list[str]:
    """What claims something by itself: a question says it with its answer, a quotation as one."""
    quotations = [quotation.span() for quotation in _QUOTED.finditer(text)]
    pieces: list[str] = []
    start = 0
    for _, end in sentence_spans(text):
        if text.endswith(_ASKS, start, end) or any(a < end < b for a, b in quotations):
            continue
        pieces.append(text[start:end])
        start = end
    return [_bare(piece) for piece in (*pieces, text[start:])]


def _bare(piece: str) -> str:
    left_over = _LEFT_OVER.match(piece)
    return _LABEL.sub("", piece[left_over.end() if left_over else 0 :].strip())


def unmarked(answer: str) -> str:
    """An answer without its citation marks, which are no part of what it says."""
    return _CITED.sub("", answer)


def groundedness(answer: str, passages: Sequence[Passage]) -> float:
    """Share of an answer's claims that some passage of the evidence says, cited or not."""
    made = claims(answer)
    if not made:
        return 0.0
    return sum(any(_says(p, claim.text) for p in passages) for claim in made) / len(made)


def citation_scores(
    answer: str, citations: Sequence[Citation], passages: Mapping[str, Passage]
) -> tuple[float, float]:
    """Precision: citations that stand where they say and bear their claim; recall: claims borne."""
    made = claims(answer)
    good = total = borne = 0
    for claim in made:
        right = [
            at
            for at in claim.cited
            if at < len(citations) and _bears(citations[at], claim.text, passages)
        ]
        good += len(right)
        total += len(claim.cited)
        borne += bool(right)
    return (good / total if total else 0.0), (borne / len(made) if made else 0.0)


def _bears(citation: Citation, claim: str, passages: Mapping[str, Passage]) -> bool:
    """The quote stands verbatim at its span of the document, and says the claim."""
    passage = passages.get(citation.chunk)
    if passage is None or not citation.quote:
        return False
    start, end = citation.start - passage.start, citation.end - passage.start
    if start < 0 or passage.text[start:end] != citation.quote:
        return False
    quoted = Passage(
        *(passage.id, passage.doc, passage.title, 0.0, citation.quote),
        citation.start,
        citation.end,
    )
    return _says(quoted, claim)


def _says(passage: Passage, claim: str) -> bool:
    return best_place(claim, passage).share >= ENOUGH
