"""A fake reader without weights: the name, date or number nearest to the question's words.

A sentence answers if it, with its passage's title, has all words of the question; each word that it
lacks costs more than being right gains. So tests of agents need no weights and always agree.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clew.reader.span_reader import ReadSpan
from clew.text.language import is_unspaced
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words

_SMALL_WORDS = frozenset(
    """
    a an the of in on at to by for from with and or is was are were be been did does do has have who
    whom whose what which when where why how it its this that there please tell me you could would
    film song book name called many much s or nor as into he she they his her nationality country
    """.split()
)
_PRONOUNS = ("He", "She", "It", "They", "His", "Her", "Its", "The", "A", "In")
_NAME = re.compile(r"[A-Z][\w’'-]*(?:,? (?:of |the )?[A-Z][\w’'-]*)*")
_DATE = re.compile(r"(?:\d{1,2} )?(?:[A-Z][a-z]+ )?\d{3,4}\b")
_NUMBER = re.compile(r"\d[\d,.]*(?: [a-z]+)?")
_PLACE_BEFORE = re.compile(r"\b(?:in|at|near|from|to)\s+$")
_FULL, _LACKING, _ELSEWHERE = 6.0, 8.0, 2.0  # the score with all words; what missing ones cost


@dataclass(frozen=True)
class WordReader:
    """Reads by words alone."""

    def reads(self, question: str) -> bool:
        """Whether spaces part the words."""
        return not is_unspaced(question)

    def read(
        self,
        question: str,
        passages: Sequence[str],
        *,
        titles: Sequence[str] | None = None,
        most: int = 5,
    ) -> list[ReadSpan]:
        """Find spans in each passage."""
        names = titles or [""] * len(passages)
        found = [
            span
            for number, (text, title) in enumerate(zip(passages, names, strict=True))
            for span in _read_passage(question, number, text, title)
        ]
        return sorted(found, key=lambda span: -span.score)[:most]


def _read_passage(question: str, number: int, text: str, title: str) -> Iterator[ReadSpan]:
    asked, subject = _stems(question), ""
    around = _stems(f"{title} {text}")
    for start, end in sentence_spans(text):
        sentence = text[start:end]
        opening = _NAME.match(sentence.lstrip("# "))
        if opening and opening[0] not in _PRONOUNS:
            subject = opening[0]  # what the next sentences say "it" or "she" of
        lacking = asked - _stems(f"{title} {subject} {sentence}")
        # A word that stands elsewhere in the passage is missed less.
        cost = sum(_ELSEWHERE if stem in around else _LACKING for stem in lacking)
        for at, found in enumerate(_find_spans(question, sentence)):
            if _stems(found[0]) <= asked:
                continue
            # Of several candidates the one nearest behind a word of the question.
            near = min((abs(found.start() - p) for p in _places(question, sentence)), default=99)
            score = _FULL - cost - near / 20 - at / 1000
            first = start + found.start()
            yield ReadSpan(number, first, first + len(found[0]), found[0], score)


def _find_spans(question: str, sentence: str) -> Iterator[re.Match[str]]:
    asks = question.lower()
    if re.search(r"\bwhen\b|\byear\b|\bdate\b", asks):
        yield from _DATE.finditer(sentence)
    elif re.search(r"\bhow (?:many|much|tall|high|long|old|large)\b|\bpopulation\b", asks):
        yield from _NUMBER.finditer(sentence)
    elif re.search(r"\bwhere\b|\bcity\b|\btown\b|\bcountry\b", asks):
        for found in _NAME.finditer(sentence):
            if _PLACE_BEFORE.search(sentence[: found.start()]):
                yield found
    else:
        yield from _NAME.finditer(sentence)


def _stems(text: str) -> set[str]:
    words = (word for word in split_words(text) if word not in _SMALL_WORDS)
    return {"died" if word == "die" else word[:5] for word in words}


def _places(question: str, sentence: str) -> list[int]:
    """Where the sentence has words of the question that are no names."""
    wanted = _stems(re.sub(r"\b[A-Z]\w+", " ", question[1:]))
    return [m.end() for m in re.finditer(r"\w+", sentence) if m[0].lower()[:5] in wanted]
