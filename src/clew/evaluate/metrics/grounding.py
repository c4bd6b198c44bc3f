"""Groundedness and citation precision/recall, by word overlap with the passages."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clew.agents.citing.support import MIN_SHARE, find_best_span
from clew.agents.core.messages import CANDIDATE_LABEL, UNSUPPORTED_MARK, all_translations
from clew.text.sentences import sentence_spans
from clew.types import Citation, Passage

_UNSUPPORTED_MARK = "|".join(map(re.escape, all_translations(UNSUPPORTED_MARK)))
_CITATION_MARKS = re.compile(rf"((?:\s*\[\d+\])+|\s*(?:{_UNSUPPORTED_MARK}))")
_CITATION_NUMBER = re.compile(r"\[(\d+)\]")
# A citation mark as models and packages write it; a number joined to a word is a name.
_CITATION = re.compile(r"(?<=\S)\s*\[\d+(?:\s*[,;–-]\s*\d+)*\](?![\w-])")
_CANDIDATE_LABEL = re.compile(rf"^{CANDIDATE_LABEL}\s*")
# Punctuation left over from a preceding mark ("… [1]. Next"), and list bullets.
_LEADING_PUNCTUATION = re.compile(r"(?:[\s.,;:!?…。．，；：！？、)）”]|[-*•]\s)+")
_QUOTATION = re.compile(r"“[^”]*”")
_QUESTION_MARKS = ("?", "？")


@dataclass(frozen=True, slots=True)
class AnswerClaim:
    """A sentence of an answer, or a part of one, and its citation indices (from 0)."""

    text: str
    cited: tuple[int, ...]


def split_claims(answer: str) -> list[AnswerClaim]:
    """Split an answer at citation marks and into sentences; a mark belongs to the last one."""
    found: list[AnswerClaim] = []
    pieces = _CITATION_MARKS.split(answer)
    for text, marks in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        sentences = [one for one in _split_sentences(text) if any(char.isalnum() for char in one)]
        cited = tuple(int(number) - 1 for number in _CITATION_NUMBER.findall(marks))
        found += [AnswerClaim(one, ()) for one in sentences[:-1]]
        found += [AnswerClaim(one, cited) for one in sentences[-1:]]
    return found


def _split_sentences(text: str) -> list[str]:
    """Split into sentences; a question joins its answer, and a quotation is not split."""
    quotations = [quotation.span() for quotation in _QUOTATION.finditer(text)]
    pieces: list[str] = []
    start = 0
    for _, end in sentence_spans(text):
        if text.endswith(_QUESTION_MARKS, start, end) or any(a < end < b for a, b in quotations):
            continue
        pieces.append(text[start:end])
        start = end
    return [_strip_label(piece) for piece in (*pieces, text[start:])]


def _strip_label(piece: str) -> str:
    left_over = _LEADING_PUNCTUATION.match(piece)
    return _CANDIDATE_LABEL.sub("", piece[left_over.end() if left_over else 0 :].strip())


def strip_citations(answer: str) -> str:
    """Remove citation marks from an answer."""
    return _CITATION.sub("", answer)


def groundedness(answer: str, passages: Sequence[Passage]) -> float:
    """Share of an answer's claims that any passage of the evidence supports, cited or not."""
    parts = split_claims(answer)
    if not parts:
        return 0.0
    return sum(any(_passage_supports(p, claim.text) for p in passages) for claim in parts) / len(
        parts
    )


def score_citations(
    answer: str, citations: Sequence[Citation], passages: Mapping[str, Passage]
) -> tuple[float, float]:
    """Return citation precision (valid and supporting) and recall (claims supported)."""
    parts = split_claims(answer)
    good = total = supported = 0
    for claim in parts:
        supporting = [
            at
            for at in claim.cited
            if at < len(citations) and _citation_supports(citations[at], claim.text, passages)
        ]
        good += len(supporting)
        total += len(claim.cited)
        supported += bool(supporting)
    return (good / total if total else 0.0), (supported / len(parts) if parts else 0.0)


def _citation_supports(citation: Citation, claim: str, passages: Mapping[str, Passage]) -> bool:
    """Whether the quote is verbatim at its span of the document and supports the claim."""
    passage = passages.get(citation.chunk)
    if passage is None or not citation.quote:
        return False
    start, end = citation.start - passage.start, citation.end - passage.start
    if start < 0 or passage.text[start:end] != citation.quote:
        return False
    quoted = Passage(
        *(passage.id, passage.doc, passage.title, 0.0, citation.quote), citation.start, citation.end
    )
    return _passage_supports(quoted, claim)


def _passage_supports(passage: Passage, claim: str) -> bool:
    return find_best_span(claim, passage).share >= MIN_SHARE
