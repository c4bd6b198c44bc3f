"""Whether a question is restricted by a word in whose place the cited sentence has another one.

What a lunch costs in Linsdale is no answer for Quayford: the scorer, too, finds the sentence to
answer the question clearly better once Quayford is left out of it. What is only said in another
word ("mended" for "repaired") makes no such difference, or is missed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from clew.agents.answering.judged_answer import say_cited
from clew.agents.answering.lacking import find_missing, name_home
from clew.agents.answering.told import find_home, find_reference, list_words
from clew.agents.answering.units import STEM, stem_words
from clew.agents.core.confidence import FOREIGN
from clew.agents.core.types import Answer
from clew.agents.reading.judged import judge_texts
from clew.agents.reading.restrictions import blank_names, is_short
from clew.agents.reading.spans import asked_words
from clew.agents.reading.stems import cut_ending
from clew.context import Context
from clew.text.unicode import split_words
from clew.types import Citation, Passage

_WORD = re.compile(r"[^\W_]+(?:[-’'.,][^\W_]+)*|[;:.!?()]")
_OWNER = re.compile(r"['’]s?$")
_MOST = 2  # words that are left out, one at a time
_NOISE = 1 / 6  # what the scorer may gain, of 2, without the word meaning anything: log odds of 1
_WHOLE = 1 / 6  # of 2, above that: what is said of another thing for certain
_MOST_NAMES = 1  # of a question: what is said of two may stand in two passages
_FEW = 4  # words beside the names of a question that goes by no other thing to them
_APART = 0.7  # for a name that the document does not mention


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of content, or the mark that ends a clause."""

    text: str
    start: int
    end: int

    @property
    def stem(self) -> str:
        return _OWNER.sub("", self.text.lower())[:STEM]

    @property
    def is_mark(self) -> bool:
        return not self.text[0].isalnum()

    @property
    def is_number(self) -> bool:
        return any(map(str.isdigit, self.text))

    @property
    def is_named(self) -> bool:
        """Whether it is written like a name; the first word of a question may be any."""
        return self.start > 0 and self.text[0].isupper()


async def measure_contrast(
    ctx: Context,
    question: str,
    names: Sequence[str],
    answer: Answer,
    chosen: Sequence[str],
    cited: Sequence[Passage],
) -> dict[str, float]:
    """Return how far an answer is said of something else than what restricts the question.

    `foreign`, 0 to 1, is what the scorer gains where a word is left out that has a rival in the
    cited sentence, or is a name or number; and no less than a share of it where a short question
    has a name that the document which is cited does not mention.
    """
    texts = say_cited(names, answer, chosen, cited)
    home = find_home(answer.citations[-1], cited) if answer.citations else None
    if not texts or home is None:
        return {}
    # A longer question, or one with two names, may be told by sentences that are not cited.
    alone = is_short(question, names) and len(names) <= _MOST_NAMES
    found = await _find_unsaid(ctx, question, answer) if alone else []
    if not found:
        return {FOREIGN: 0.0}
    told = _find_rivals(question, found, answer, home)
    texts_of = [f"{one.title} {one.text}" for one in answer.evidence.chunks if one.doc == home.doc]
    own = " ".join((home.text, *texts_of))
    named = [one for one in found if one.is_named and _is_known(ctx, one)]
    few = len(asked_words(blank_names(question, names))) <= _FEW and len(answer.citations) == 1
    apart = few and any(not _says(own, one) for one in named)
    runs = [run for run in _join(question, found) if any(one in told for one in run)]
    gains = [await _leave_out(ctx, question, run, texts[-1]) for run in runs[:_MOST]]
    return {FOREIGN: max(*gains, _APART if apart else 0.0, 0.0)}


async def _find_unsaid(ctx: Context, question: str, answer: Answer) -> list[_Word]:
    """Return the words that nothing cited says in any form, nor what it stands under."""
    passages = answer.evidence.chunks
    near = []
    for cited in answer.citations:
        home = find_home(cited, passages)
        # What leads to an answer may name its subject anywhere.
        leads = home is not None and cited is not answer.citations[-1]
        near.append(name_home(cited, passages))
        near.append(home.text if home and leads else _quote_with_reference(cited, home))
    text = " ".join(near)
    missing = await find_missing(ctx, question, list_words(question, answer.candidate), text)
    forms = {cut_ending(word) for word in split_words(text)}
    return [
        one
        for one in _list_content(question)
        if (one.stem in missing and cut_ending(_OWNER.sub("", one.text.lower())) not in forms)
        or (_is_acronym(one) and not _says(text, one))
    ]


def _quote_with_reference(cited: Citation, home: Passage | None) -> str:
    """Return a quote behind the sentence that it refers to."""
    if home is None:
        return cited.quote
    return home.text[find_reference(cited, home) : cited.end - home.start]


def _is_known(ctx: Context, word: _Word) -> bool:
    return bool(len(ctx.view.bm25.chunks_with(_OWNER.sub("", word.text.lower()))))


def _is_acronym(word: _Word) -> bool:
    """Whether it is written in capitals: "IT" is a word of content, "it" is none."""
    return len(word.text) > 1 and word.text.isupper() and not word.is_number


def _says(text: str, word: _Word) -> bool:
    if _is_acronym(word):
        return re.search(rf"\b{re.escape(word.text)}\b", text) is not None
    return word.stem in stem_words(text)


def _list_content(text: str) -> list[_Word]:
    """Return the words of content of a text, and the marks between its clauses."""
    words = [_Word(found[0], found.start(), found.end()) for found in _WORD.finditer(text)]
    return [one for one in words if one.is_mark or _is_acronym(one) or asked_words(one.text)]


def _find_rivals(
    question: str, found: Sequence[_Word], answer: Answer, home: Passage
) -> list[_Word]:
    """Return the names and numbers, and the words that have a rival in the cited sentence.

    A rival stands beside the same word: "casting hall" for "assembly hall".
    """
    text = _quote_with_reference(answer.citations[-1], home)
    known = stem_words(f"{question} {answer.candidate}")
    said = _list_content(text)
    beside = {
        stem
        for at, one in enumerate(said)
        if not one.is_mark and one.stem not in known
        for stem in _list_beside(said, at, ())
    }
    asked = _list_content(question)
    return [
        one
        for one in found
        if one.is_named or one.is_number or beside & _list_beside(asked, asked.index(one), found)
    ]


def _list_beside(words: Sequence[_Word], at: int, skipped: Sequence[_Word]) -> set[str]:
    """Return the words of content on both sides of one in its clause, not those to be skipped."""
    before = next((one for one in reversed(words[:at]) if one not in skipped), None)
    behind = next((one for one in words[at + 1 :] if one not in skipped), None)
    return {one.stem for one in (before, behind) if one is not None and not one.is_mark}


def _join(question: str, found: Sequence[_Word]) -> list[list[_Word]]:
    """Join words that follow each other, such as those of a name."""
    breaks = 0
    keys = []
    for before, one in zip((None, *found), found, strict=False):
        breaks += before is None or not question[before.end : one.start].isspace()
        keys.append(breaks)
    pairs = groupby(zip(keys, found, strict=True), key=lambda pair: pair[0])
    return [[one for _, one in some] for _, some in pairs]


async def _leave_out(ctx: Context, question: str, run: Sequence[_Word], text: str) -> float:
    """Return how much better a text answers a question without some words, 0 to 1."""
    shorter = " ".join((question[: run[0].start] + question[run[-1].end :]).split())
    whole, without = (
        await judge_texts(ctx, question, [text]),
        await judge_texts(ctx, shorter, [text]),
    )
    gain = without[0] - whole[0] - _NOISE if whole and without else 0.0
    return max(0.0, min(1.0, gain / _WHOLE))
