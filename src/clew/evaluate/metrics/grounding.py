"""Groundedness and citation precision/recall, by word overlap with the passages."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from clew.agents.citing.check import asked_question, spell_out_claim
from clew.agents.citing.support import MIN_SHARE, find_about, find_best_span, split_subjects
from clew.agents.core.messages import (
    CANDIDATE_LABEL,
    OWN_MARKS,
)
from clew.text.sentences import sentence_spans
from clew.types import Citation, Passage

_CITATION_MARKS = re.compile(rf"((?:\s*\[\d+\])+|\s*(?:{'|'.join(map(re.escape, OWN_MARKS))}))")
_CITATION_NUMBER = re.compile(r"\[(\d+)\]")
_CANDIDATE_LABEL = re.compile(rf"^{CANDIDATE_LABEL}\s*")
# Punctuation left over from a preceding mark ("… [1]. Next"), and list bullets.
_LEADING_PUNCTUATION = re.compile(r"(?:[\s.,;:!?…。．，；：！？、)）”]|[-*•]\s)+")
_QUOTATION = re.compile(r"“[^”]*”")
_QUESTION_MARKS = ("?", "？")
_ASKING_WORDS = re.compile(
    r"\b(?:who|whom|whose|what|which|where|when|why|how)\b|是?(?:谁或什么|谁|什么|哪[里儿个]?|何[时处]?)",
    re.IGNORECASE,
)


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


def groundedness(answer: str, passages: Sequence[Passage], question: str = "") -> float:
    """Share of an answer's claims that any passage of the evidence supports, cited or not."""
    parts = split_claims(answer)
    if not parts:
        return 0.0
    supported = [
        all(any(map(supports, passages)) for supports in _list_checks(question, claim.text))
        for claim in parts
    ]
    return sum(supported) / len(parts)


def score_citations(
    answer: str, citations: Sequence[Citation], passages: Mapping[str, Passage], question: str = ""
) -> tuple[float, float]:
    """Return citation precision (valid and supporting) and recall (claims supported)."""
    parts = split_claims(answer)
    good = total = supported = 0
    for claim in parts:
        cited = [citations[at] for at in claim.cited if at < len(citations)]
        checks = _list_checks(question, claim.text)
        by_text = [[_citation_supports(one, check, passages) for one in cited] for check in checks]
        good += sum(any(column) for column in zip(*by_text, strict=True))
        total += len(claim.cited)
        supported += all(any(row) for row in by_text)
    return (good / total if total else 0.0), (supported / len(parts) if parts else 0.0)


_Check = Callable[[Passage], bool]


def _list_checks(question: str, claim: str) -> list[_Check]:
    """Return what a passage must support: every claim, of a yes about two subjects each subject."""
    claims = spell_out_claim(question, claim)
    asked = asked_question(question)
    if claims == [asked] and (subjects := split_subjects(asked)):
        return [partial(_is_about, name, rest) for name, rest in subjects]
    return [partial(_passage_supports, text) for text in claims]


def _is_about(name: str, asked: str, passage: Passage) -> bool:
    return find_about(asked, name, [passage]) is not None


def _citation_supports(
    citation: Citation, supports: _Check, passages: Mapping[str, Passage]
) -> bool:
    """Whether the quote is verbatim at its span of the document and supports a claim."""
    passage = passages.get(citation.chunk)
    if passage is None or not citation.quote:
        return False
    start, end = citation.start - passage.start, citation.end - passage.start
    if start < 0 or passage.text[start:end] != citation.quote:
        return False
    quoted = Passage(
        *(passage.id, passage.doc, passage.title, 0.0, citation.quote), citation.start, citation.end
    )
    return supports(quoted)


def _passage_supports(claim: str, passage: Passage) -> bool:
    # "Who built it? Ilse" says that Ilse built it; no passage has the words that ask.
    said = _ASKING_WORDS.sub(" ", claim) if any(m in claim for m in _QUESTION_MARKS) else claim
    return find_best_span(said, passage).share >= MIN_SHARE
