"""Groundedness and citation precision and recall, by the words an answer shares with passages."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clew.agents.cite import measure_support
from clew.agents.messages import OWN_MARKS, strip_marks
from clew.text.sentences import sentence_spans
from clew.types import Citation, Passage

_SUPPORTED = 0.4  # share of a sentence's words that a passage must have
_NUMBERS = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class AnswerClaim:
    """A sentence of an answer, and its citation indices (from 0)."""

    text: str
    cited: tuple[int, ...]


def split_claims(answer: str) -> list[AnswerClaim]:
    """Split an answer into sentences; numbers behind a sentence's stop are its own."""
    found: list[AnswerClaim] = []
    for mark in OWN_MARKS:  # it stands behind a sentence, and hides its end from the splitter
        answer = answer.replace(mark, "\n")
    for start, end in sentence_spans(answer):
        piece = answer[start:end]
        lead = re.match(r"(?:\s*\[\d+\])+", piece)
        if lead and found:
            numbers = tuple(int(one) - 1 for one in _NUMBERS.findall(lead[0]))
            found[-1] = AnswerClaim(found[-1].text, (*found[-1].cited, *numbers))
            piece = piece[lead.end() :]
        text = strip_marks(piece)
        if any(char.isalnum() for char in text):
            numbers = tuple(int(one) - 1 for one in _NUMBERS.findall(piece))
            found.append(AnswerClaim(text, numbers))
    return found


def groundedness(answer: str, passages: Sequence[Passage]) -> float:
    """Share of an answer's sentences that any passage of the evidence supports, cited or not."""
    claims = split_claims(answer)
    supported = [any(_supports(one, claim.text) for one in passages) for claim in claims]
    return sum(supported) / len(claims) if claims else 0.0


def score_citations(
    answer: str, citations: Sequence[Citation], passages: Mapping[str, Passage]
) -> tuple[float, float]:
    """Return citation precision (valid and supporting) and recall (sentences supported)."""
    claims = split_claims(answer)
    good = total = supported = 0
    for claim in claims:
        cited = [citations[at] for at in claim.cited if at < len(citations)]
        right = [_is_right(one, claim.text, passages) for one in cited]
        good += sum(right)
        total += len(claim.cited)
        supported += any(right)
    return (good / total if total else 0.0), (supported / len(claims) if claims else 0.0)


def _is_right(citation: Citation, claim: str, passages: Mapping[str, Passage]) -> bool:
    """Whether the quote is verbatim at its span of the document, and supports a sentence."""
    passage = passages.get(citation.chunk)
    if passage is None or not citation.quote:
        return False
    start, end = citation.start - passage.start, citation.end - passage.start
    if start < 0 or passage.text[start:end] != citation.quote:
        return False
    where = (passage.id, passage.doc, passage.title, 0.0, citation.quote)
    return _supports(Passage(*where, citation.start, citation.end), claim)


def _supports(passage: Passage, claim: str) -> bool:
    return measure_support(claim, passage) >= _SUPPORTED
