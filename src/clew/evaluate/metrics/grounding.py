"""Groundedness and citation precision/recall, by word overlap with the passages."""

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
# A citation mark as models and packages write it; a number joined to a word is a name.
_CITED = re.compile(r"(?<=\S)\s*\[\d+(?:\s*[,;–-]\s*\d+)*\](?![\w-])")
_LABEL = re.compile(rf"^{CANDIDATE}\s*")
# Punctuation left over from a preceding mark ("… [1]. Next"), and list bullets.
_LEFT_OVER = re.compile(r"(?:[\s.,;:!?…。．，；：！？、)）”]|[-*•]\s)+")
_QUOTED = re.compile(r"“[^”]*”")
_ASKS = ("?", "？")


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer, or a part of one, and its citation indices (from 0)."""

    text: str
    cited: tuple[int, ...]


def claims(answer: str) -> list[Claim]:
    """Split an answer at citation marks and into sentences; a mark belongs to the last one."""
    found: list[Claim] = []
    pieces = _MARKS.split(answer)
    for text, marks in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        sentences = [one for one in _sentences(text) if any(char.isalnum() for char in one)]
        cited = tuple(int(number) - 1 for number in _NUMBER.findall(marks))
        found += [Claim(one, ()) for one in sentences[:-1]]
        found += [Claim(one, cited) for one in sentences[-1:]]
    return found


def _sentences(text: str) -> list[str]:
    """Split into sentences; a question joins its answer, and a quotation is not split."""
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
    """Remove citation marks from an answer."""
    return _CITED.sub("", answer)


def groundedness(answer: str, passages: Sequence[Passage]) -> float:
    """Share of an answer's claims that any passage of the evidence supports, cited or not."""
    parts = claims(answer)
    if not parts:
        return 0.0
    return sum(any(_says(p, claim.text) for p in passages) for claim in parts) / len(parts)


def citation_scores(
    answer: str, citations: Sequence[Citation], passages: Mapping[str, Passage]
) -> tuple[float, float]:
    """Return citation precision (valid and supporting) and recall (claims supported)."""
    parts = claims(answer)
    good = total = supported = 0
    for claim in parts:
        supporting = [
            at
            for at in claim.cited
            if at < len(citations) and _bears(citations[at], claim.text, passages)
        ]
        good += len(supporting)
        total += len(claim.cited)
        supported += bool(supporting)
    return (good / total if total else 0.0), (supported / len(parts) if parts else 0.0)


def _bears(citation: Citation, claim: str, passages: Mapping[str, Passage]) -> bool:
    """Whether the quote is verbatim at its span of the document and supports the claim."""
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
