"""Tidies a question before it is read: its closing mark, and missing capitals.

Names are told from common words by their capitals. A question typed without any gets them back
from how the texts of the knowledge base write its words and phrases.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from clew.context import Context, TraceStep
from clew.index.view import View
from clew.retrieve.question import NAME_BREAKS, OPENING_WORDS, span_key, tidy_question
from clew.retrieve.step import Step
from clew.text.names import CONNECTORS, STOP_WORDS, Tokens, tokenize_question
from clew.text.unicode import hash64, split_words
from clew.types import Chunk, Found

_MAX_TOKENS = 64  # tokens of a question that are looked up
_MAX_PHRASE = 8  # tokens of a phrase that are looked up as a name
_PASSAGES = 12  # passages read for each word or phrase
_PART_SHARE = 0.1  # what a capital within a longer name counts: "county" in "York County"
_UNTOLD_SHARE = 0.5  # what a capital at the beginning of a sentence counts
_BEFORE = 20  # characters before a word that are looked at
_MAX_CACHED = 50_000  # words and phrases whose writing a view keeps
_SENTENCE_END = re.compile(r"(?:[.!?:;•|*\n\"“(\[])\s*$")
_NEXT_SENTENCE = re.compile(r"[.!?]\s+\Z|\n")
_SHOUTED = 3  # words from which capitals alone tell nothing
_ARTICLES = frozenset(("the", "a", "an"))
_WORD_BEFORE = re.compile(r"[A-Z][\w'’.-]* ?$")
_WORD_AFTER = re.compile(r"[- ][A-Z]")
Span = tuple[int, int]


@dataclass(frozen=True)
class TidyQuestion:
    """Runs a step on the question with one mark at its end and with capitals."""

    inner: Step

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Run the step; the trace says if the question differs."""
        question = tidy_question(await restore_capitals(ctx, lower_capitals(ctx.question)))
        if question == ctx.question:
            return await self.inner(ctx, found)
        ctx.trace.append(TraceStep("tidy question", ctx.question, question, 0.0))
        return await self.inner(ctx.with_question(question), found)


def lower_capitals(question: str) -> str:
    """Return a question of nothing but capitals in lower case."""
    shouted = question.isupper() and len(question.split()) >= _SHOUTED
    return question.lower() if shouted else question


async def restore_capitals(ctx: Context, question: str) -> str:
    """Return a question without capitals with those that the texts give its words."""
    t = tokenize_question(question)
    if _has_capitals(question, t):
        return question
    spans = _choose_spans(ctx.view, t)
    words = [question[a:b].lower() for a, b in zip(t.starts, t.ends, strict=True)]
    phrases = [" ".join(words[first:last]) for first, last in spans]
    names = await _find_names(ctx, phrases)
    raised: set[int] = set()
    for (first, last), phrase in zip(spans, phrases, strict=True):
        if phrase in names:
            first += t.keys[first] in _ARTICLES and last - first > 1
            inner = (at for at in range(first, last) if t.keys[at] not in STOP_WORDS)
            raised |= {first, last - 1, *inner}
    letters = list(question)
    for at in raised:
        letters[t.starts[at]] = letters[t.starts[at]].upper()
    return "".join(letters)


def _has_capitals(question: str, t: Tokens) -> bool:
    """Whether a word has a capital that neither begins a sentence nor is "I"."""
    return any(
        t.upper[at]
        and t.keys[at] != "i"
        and not _NEXT_SENTENCE.search(question, t.ends[at - 1], t.starts[at])
        for at in range(1, len(t))
    )


def _choose_spans(view: View, t: Tokens) -> list[Span]:
    """Return the words that may be names, pairs of them, and the phrases that are a known name."""
    count = min(len(t), _MAX_TOKENS)
    words = [
        (at, at + 1)
        for at in range(count)
        if t.keys[at] not in NAME_BREAKS
        and not (at == 0 and t.keys[0] in OPENING_WORDS)
        and t.keys[at].isalpha()
        and not t.unspaced[at]
    ]
    phrases = [
        (first, last)
        for first in range(count)
        for last in range(first + 2, min(count, first + _MAX_PHRASE) + 1)
        if sum(key not in CONNECTORS for key in t.keys[first:last]) > 1
    ]
    hashes = np.array([hash64(span_key(t, *span)) for span in phrases], np.uint64)
    known = view.find_by_name_hash(hashes)
    named = [
        phrase
        for phrase, (_, weights, parts) in zip(phrases, known, strict=True)
        if (weights[~parts] >= 1).any()
    ]
    pairs = [(a, d) for (a, b), (c, d) in pairwise(words) if b == c]
    alone = [span for span in words if len(t.keys[span[0]]) > 1]  # "u" is no name alone
    return list(dict.fromkeys(alone + pairs + named))


async def _find_names(ctx: Context, phrases: Sequence[str]) -> set[str]:
    """Return the phrases that texts write as names; cached."""
    memo: dict[str, bool] = ctx.view.memo.setdefault("capitals", {})
    if len(memo) > _MAX_CACHED:
        memo.clear()
    new = [phrase for phrase in phrases if phrase not in memo]
    missing = {phrase: _sample_passages(ctx.view, phrase) for phrase in new}
    keys = ctx.view.keys("chunk")
    wanted = {int(keys[at]) for places in missing.values() for at in places}
    fetched = await ctx.snapshot.chunks(sorted(wanted)) if wanted else {}
    for phrase, places in missing.items():
        chunks = (fetched[int(keys[at])] for at in places)
        memo[phrase] = _is_written_as_name(phrase, chunks)
    return {phrase for phrase in phrases if memo[phrase]}


def _sample_passages(view: View, phrase: str) -> list[int]:
    """Return some of the passages that have all words of a phrase, from all parts of the corpus."""
    places = view.bm25.chunks_with_all(list(dict.fromkeys(split_words(phrase))))
    step = max(1, len(places) // _PASSAGES)
    sampled: list[int] = places[::step][:_PASSAGES].tolist()
    return sampled


def _is_written_as_name(phrase: str, chunks: Iterable[Chunk]) -> bool:
    """Tell whether texts write a phrase with capitals, and that not only within longer names.

    The first word of a sentence tells nothing.
    """
    words = r"\W{1,3}".join(map(re.escape, phrase.split()))
    pattern = re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)
    uses: Counter[str] = Counter()
    for chunk in chunks:
        found = [_classify_use(chunk.text, match) for match in pattern.finditer(chunk.text)]
        titled = pattern.match(chunk.title)
        whole = titled and chunk.title[titled.end() :].lstrip()[:1] in ("", "(")
        # A title counts if it is the name, or where the text does not say it.
        titled = titled if whole else pattern.search(chunk.title)
        if titled and (whole or not found):
            found.append(_classify_use(chunk.title, titled))
        uses.update(found)
    if len(phrase.split()) > 1:  # longer phrases are rarely written with capitals by chance
        if not uses["word"] and any(map(str.isdigit, phrase)):  # "May 1998" in "Late-May 1998"
            return bool(uses)
        return uses["name"] + uses["untold"] > 0 and 2 * uses["name"] >= uses["word"]
    of_names = uses["name"] + _UNTOLD_SHARE * uses["untold"] + _PART_SHARE * uses["part"]
    return 0 < of_names >= uses["word"]


def _classify_use(text: str, match: re.Match[str]) -> str:
    """Return whether the words found are a name, a part of one, common words, or untold."""
    begin = max(0, match.start() - _BEFORE)
    opens = match.start() == 0 or _SENTENCE_END.search(text, begin, match.start())
    written = match[0].split()
    first = 1 if opens or written[0].lower() in _ARTICLES else 0
    telling = [
        word
        for at, word in enumerate(written[first:], start=first)
        if word[0].isalpha() and (at in (0, len(written) - 1) or word.lower() not in STOP_WORDS)
    ]
    if not telling:
        return "untold"
    if not all(word[0].isupper() for word in telling):
        return "word"
    before = not opens and _WORD_BEFORE.search(text, begin, match.start())
    return "part" if before or _WORD_AFTER.match(text, match.end()) else "name"
