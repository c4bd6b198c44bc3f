"""Locates the sources of an answer: the model's numbers become character spans of documents.

No sentence is dropped or reworded; one whose source is not found is marked.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.agents.evidence import EvidencePage
from clew.agents.messages import NOT_FOUND_MARK, localise
from clew.context import Context
from clew.text.language import prompt_language
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words
from clew.types import Citation, Passage

_CLEAR = 0.6  # share of its words by which a sentence without a number is recognised in a passage
_SECOND_GAIN = 0.15  # further words that a second sentence must add to be quoted with the first
_MAX_SOURCES = 4  # passages cited for one sentence
_LONG = 3  # letters; only longer words and numbers tell sentences apart
_NUMBERS = re.compile(r"\s*[\[【](\d{1,3}(?:\s*[,;，、–-]\s*\d{1,3})*)[\]】](?![\w-])")
_RANGE = re.compile(r"(\d+)\s*[–-]\s*(\d+)")
_WORD = re.compile(r"\w")


@dataclass(frozen=True)
class CitedText:
    """An answer with numbers of its citations, and how well they support it."""

    text: str
    citations: tuple[Citation, ...] = ()
    located: float = 0.0
    """Share of the sentences whose source was found."""
    overlap: float = 0.0
    """Mean share of a located sentence's words that its quotes have."""


@dataclass(frozen=True, slots=True)
class _Span:
    passage: Passage
    start: int
    end: int
    share: float


def cite_text(ctx: Context, text: str, page: EvidencePage) -> CitedText:
    """Locate every sentence of an answer in the lines of the page that it names, or in any.

    `[2]` in the text means line 2 of the page; in the result it means the second citation.
    """
    pieces: list[str] = []
    citations: list[Citation] = []
    shares: list[float] = []
    unfound, before = 0, 0
    for start, end, numbers in _split(text):
        pieces.append(_NUMBERS.sub("", text[before:start]))
        before = end
        sentence = _NUMBERS.sub("", text[start:end])
        pieces.append(sentence)
        if not _claims(sentence):
            continue
        spans = _locate(f"{ctx.question} {sentence}", sentence, page, numbers) or _recognise(
            sentence, page
        )
        if not spans and any(page.is_computed(number) for number in numbers):
            shares.append(1.0)  # what a tool computed has no passage
            continue
        if not spans:
            unfound += 1
            pieces.append(f" {localise(ctx.question, NOT_FOUND_MARK)}")
            continue
        shares.append(_together(sentence, spans))
        found = [cite_span(one.passage, one.start, one.end) for one in spans]
        citations += [one for one in found if one not in citations]
        marks = "".join(f"[{n}]" for n in sorted({citations.index(one) + 1 for one in found}))
        pieces.append(f" {marks}")
    pieces.append(_NUMBERS.sub("", text[before:]))
    count = len(shares) + unfound
    return CitedText(
        "".join(pieces).strip(),
        tuple(citations),
        len(shares) / count if count else 0.0,
        sum(shares) / len(shares) if shares else 0.0,
    )


def _split(text: str) -> list[tuple[int, int, list[int]]]:
    """Split an answer into sentences with the numbers each names.

    Numbers that follow a sentence's stop belong to it, not to the next one.
    """
    found: list[tuple[int, int, list[int]]] = []
    for start, end in sentence_spans(text):
        while (lead := _NUMBERS.match(text, start, end)) and found:
            first, _, numbers = found[-1]
            found[-1] = (first, lead.end(), [*numbers, *_read_numbers(lead[1])])
            start = lead.end()
        if text[start:end].strip():
            start += len(text[start:end]) - len(text[start:end].lstrip())
            marks = _NUMBERS.finditer(text, start, end)
            found.append((start, end, [n for mark in marks for n in _read_numbers(mark[1])]))
    return found


def _read_numbers(listed: str) -> list[int]:
    spread = _RANGE.sub(
        lambda r: " ".join(map(str, range(int(r[1]), min(int(r[2]), int(r[1]) + 20) + 1))), listed
    )
    return [int(one) for one in re.findall(r"\d+", spread)]


def _claims(sentence: str) -> bool:
    """Whether a piece of an answer says something: no heading, rule or line that opens a list."""
    bare = sentence.strip()
    opens = bare.endswith((":", "：")) or bare.startswith("#")
    return _WORD.search(bare) is not None and not opens


def _locate(about: str, sentence: str, page: EvidencePage, numbers: Sequence[int]) -> list[_Span]:
    """Return the nearest span of each passage behind the lines that a sentence names.

    Of a line with several passages, such as a path, those that say all of the sentence do alone.
    Nothing is found where no passage has a word of what it is about, the question or the sentence:
    what was computed from passages need not stand in them, but they are about the question.
    """
    if not any(_shares_words(about, one) for one in page.sources(numbers)):
        return []
    found: list[_Span] = []
    for number in numbers:
        spans = [_best_span(sentence, passage) for passage in page.sources([number])]
        found += [span for span in spans if span.share >= 1] or spans
    return list(dict.fromkeys(found))[:_MAX_SOURCES]


def _shares_words(text: str, passage: Passage) -> bool:
    """Whether a passage has a word of a text; one in another script may say the same."""
    said = f"{passage.title} {passage.text}"
    if prompt_language(text) != prompt_language(said):
        return True
    return bool(content_words(text) & set(split_words(said)))


def _recognise(sentence: str, page: EvidencePage) -> list[_Span]:
    """Return the span of any passage of the page that clearly says a sentence without a number."""
    best = max(
        (_best_span(sentence, passage) for passage in page.passages),
        key=lambda span: span.share,
        default=None,
    )
    return [best] if best is not None and best.share >= _CLEAR else []


def measure_support(sentence: str, passage: Passage) -> float:
    """Return the share of a sentence's words that the nearest span of a passage has."""
    return _best_span(sentence, passage).share


def _best_span(sentence: str, passage: Passage) -> _Span:
    """Return the sentence of a passage, or two in a row, with most words of another sentence."""
    wanted = content_words(sentence)
    wanted = wanted - set(split_words(passage.title)) or wanted
    spans = sentence_spans(passage.text) or [(0, len(passage.text))]
    pairs = [(one[0], two[1]) for one, two in zip(spans, spans[1:], strict=False)]
    alone = [_measure(wanted, passage, *place) for place in spans]
    # Of equals the first is cited, but a heading only where there is nothing else.
    best = max(
        alone, key=lambda span: (span.share, passage.text[span.start : span.start + 1] != "#")
    )
    double = max(
        (_measure(wanted, passage, *p) for p in pairs), key=lambda s: s.share, default=best
    )
    return double if double.share > best.share + _SECOND_GAIN else best


def _measure(wanted: set[str], passage: Passage, start: int, end: int) -> _Span:
    share = len(wanted & set(split_words(passage.text[start:end]))) / max(1, len(wanted))
    return _Span(passage, start, end, share)


def _together(sentence: str, spans: Sequence[_Span]) -> float:
    """Return the share of a sentence's words that its quotes have between them."""
    said = " ".join(
        f"{span.passage.title} {span.passage.text[span.start : span.end]}" for span in spans
    )
    wanted = content_words(sentence)
    return len(wanted & set(split_words(said))) / max(1, len(wanted))


def cite_span(passage: Passage, start: int, end: int) -> Citation:
    """Cite a span of a passage without blanks at its ends."""
    quote = passage.text[start:end]
    start += len(quote) - len(quote.lstrip())
    quote = quote.strip()
    begin = passage.start + start
    return Citation(passage.doc, passage.id, begin, begin + len(quote), quote)


def content_words(text: str) -> set[str]:
    """Return the words of a text that tell it from others: long ones, numbers, other scripts."""
    found = split_words(text)
    long = {one for one in found if len(one) > _LONG or not one.isascii() or one.isdigit()}
    return long or set(found)
