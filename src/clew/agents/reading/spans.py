"""Read a question in passages: spans with their sentence, and the same answer counted once."""

import asyncio
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from clew.agents.citing.support import SupportSpan, make_citation
from clew.agents.reading.parallel import find_parallel
from clew.agents.rules.table import table_for
from clew.context import Context
from clew.reader.span_reader import ReadSpan
from clew.retrieve.breadth import ORDERS
from clew.retrieve.courtesy import ASKING, WHETHER
from clew.retrieve.question import NAME_BREAKS, OPENING_WORDS, QUESTION_WORDS
from clew.text.code_outline import is_code
from clew.text.drawings import stands_on_rule
from clew.text.irregular_verbs import BASE_OF_FORM
from clew.text.names import name_key, tokenize_question
from clew.text.options import split_options
from clew.text.places import quotable_unit
from clew.text.quantities import parse_quantity
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words
from clew.text.word_forms import compare_words, is_read_language
from clew.types import Citation, Passage

_ARTICLES = frozenset(("a", "an", "the"))
# Words that only hold a question together or order it; those that may name a relation stay.
_ASKING = ASKING | WHETHER
_ORDERING = ORDERS | frozenset("me us all every each of the".split())
_FUNCTION_WORDS = (QUESTION_WORDS | OPENING_WORDS - NAME_BREAKS) - frozenset(
    "born die died name named last first".split()
)
_TRIMMED = " \t\n,;:.!?\"'“”‘’()[]"
_WHOLE_NUMBER = re.compile(r"\d+(?:[.,:]\d+)+")
_WRAP = re.compile(r"\s*\n\s*|\s{3,}")  # where a line is wrapped, or a column begins
_MAX_SIGNS = 2
_SIGNS = re.compile(rf"(?:\A|[\s(\[{{\"'“‘«`])([-+±$€£@%~./\\]{{1,{_MAX_SIGNS}}})\Z")
_CELL = re.compile(r"(?:[^|:\n]{1,60}: )?(?P<value>[^|\n]+)")
_MAX_SPAN_CHARS = 160  # characters; what is longer is a quote, no short answer
_SPANS_PER_PASSAGE = 3
_AMOUNT = re.compile(r"[$€£]?\d+(?:[.,]\d+)*(?:\s+(?:thousand|million|billion))?(?:\s+[a-z]{3,})?")
_HOW_MANY = re.compile(r"\bhow\s+many\s+(?P<noun>[a-z-]+)", re.IGNORECASE)
_ITEM = (
    r"(?P<number{0}>\d+(?:[.,]\d+)*|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|"
    r"twelve))\s+(?P<what{0}>[a-z][a-z-]+(?:\s(?!and\b|or\b)[a-z-]+)?)"
)
_COUNTED = re.compile(_ITEM.format(""), re.IGNORECASE)
_COUNTED_LIST = re.compile(
    rf"{_ITEM.format('1')}(?:,\s*{_ITEM.format('2')})*,?\s+(?:and|or)\s+{_ITEM.format('3')}",
    re.IGNORECASE,
)
_NAME_AND_MORE = re.compile(
    r"(?P<name>(?:[A-Z][\w.'’-]*+)(?:\s(?:(?:of|de|la|von|van|der|den|di|da|du|le|the)\s){0,2}"
    r"[A-Z][\w.'’-]*+){0,5}+),?\s(?:and|but)\s(?P<more>.+)",
    re.DOTALL,
)
_FIRST_WORD = re.compile(r"(?:(?:then|later|also|first|finally)\s)?(?P<word>[a-z]{2,}+)(?=\s+\S)")
_AUXILIARIES = frozenset("is was are were has had lies stands".split())
_FORM = 0.9  # from which two words are forms of one
_LINE = re.compile(r"[^\n]+")
_PARAGRAPH = re.compile(r"[^\n]+(?:\n[^\S\n]*\S[^\n]*)*")
_AMOUNT_WORDS = 4  # more than a sum and what it is a sum of
_MIN_SHARED = 0.6  # share of words at which one answer counts as a form of another


@dataclass(frozen=True, slots=True)
class Reading:
    """One span read for a question, and how far it is ahead of no answer."""

    question: str
    text: str
    passage: Passage
    start: int
    end: int
    score: float

    @property
    def probability(self) -> float:
        """The reader's own probability that the passage answers with this span."""
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, self.score))))

    def sentence(self) -> tuple[int, int]:
        """The span of the sentence around the answer, in the passage's text."""
        spans = _find_sentences(self.passage.text)
        first = max((s for s, _ in spans if s <= self.start), default=0)
        ends = sorted(e for _, e in spans if e >= self.end) or [len(self.passage.text)]
        below = _is_in_heading(self.passage.text, self.start)  # a heading says nothing alone
        last = ends[min(below, len(ends) - 1)]
        if is_code(self.passage.doc):  # a comment has sentences, what stands around it is code
            part = quotable_unit(self.passage.text, self.start, self.end, doc=self.passage.doc)
            first, last = max(first, part.start), min(last, part.end)
        return first, last

    def cite(self) -> Citation:
        """Cite the sentence around the answer."""
        return make_citation(self.passage, SupportSpan(*self.sentence(), 1.0))


@lru_cache(maxsize=128)
def _find_sentences(text: str) -> list[tuple[int, int]]:
    """Return the sentences of a passage, of which several readings may be cited."""
    return list(sentence_spans(text))


@lru_cache(maxsize=2048)  # candidates of a question are compared with each other
def answer_key(text: str) -> str:
    """Return what equal answers share: their words without case, marks and articles."""
    words = [word for word in split_words(text) if word not in _ARTICLES]
    return " ".join(words) or name_key(text)


def same_answer(one: str, other: str) -> bool:
    """Whether two answers are forms of one: equal, or one is most of the other."""
    a, b = answer_key(one).split(), answer_key(other).split()
    if not a or not b:
        return False
    shared = len(set(a) & set(b))
    return a == b or shared >= _MIN_SHARED * max(len(set(a)), len(set(b)))


def compare_readings(
    chosen: Sequence[str], readings: Sequence[Reading]
) -> tuple[Reading | None, Reading | None]:
    """Return the best reading that agrees with one of the answers, and the best that does not."""
    agrees = [any(same_answer(one.text, answer) for answer in chosen) for one in readings]
    agreeing = next((one for one, same in zip(readings, agrees, strict=True) if same), None)
    rival = next((one for one, same in zip(readings, agrees, strict=True) if not same), None)
    return agreeing, rival


def asked_words(text: str) -> list[str]:
    """Return the words of a text that ask or say something, "born" and "died" among them."""
    return list(_find_asked_words(text))


@lru_cache(maxsize=8192)  # a question and its sentences are compared in many ways
def _find_asked_words(text: str) -> tuple[str, ...]:
    words = split_words(text)
    return tuple(word for word in words if word not in _FUNCTION_WORDS and len(word) > 1)


@lru_cache(maxsize=8192)
def _is_asked_word(word: str) -> bool:
    return bool(asked_words(word))


def can_read(ctx: Context, question: str) -> bool:
    """Whether there is a reader that knows the script and the language of a question."""
    known = ctx.reader is not None and ctx.reader.reads(question)
    return known and is_read_language(question)


def open_order(question: str) -> str:
    """Return an order to list things as a question for them, which is what readers learn.

    "List all sponsors of the race" reads as "sponsors of the race?".
    """
    t = tokenize_question(question)
    if not t.keys or t.keys[0] not in ORDERS or not _ASKING.isdisjoint(t.keys):
        return question
    first = next((at for at, key in enumerate(t.keys) if key not in _ORDERING), 0)
    return f"{question[t.starts[first] :].rstrip('.?! ')}?" if first else question


async def read_passages(
    ctx: Context, question: str, passages: Sequence[Passage], most: int = 8
) -> list[Reading]:
    """Read each passage alone, and each once; the best spans over all of them, best first."""
    question = open_order(split_options(question)[0])  # options are no part of what is read for
    if ctx.reader is None or not passages or not can_read(ctx, question):
        return []
    known = ctx.spans_read
    # One chunk may come whole and cut: what was read holds for this text of it only.
    new = [p for p in passages if (question, p.id, p.text) not in known]
    if new:
        texts, titles = [p.text for p in new], [p.title for p in new]
        most_here = _SPANS_PER_PASSAGE * len(new)
        found = await asyncio.to_thread(
            ctx.reader.read, question, texts, titles=titles, most=most_here
        )
        for at, passage in enumerate(new):
            known[question, passage.id, passage.text] = tuple(s for s in found if s.passage == at)
    readings = [
        reading
        for passage in passages
        for reading in _to_readings(question, known[question, passage.id, passage.text], passage)
    ]
    best = sorted(readings, key=lambda one: -one.score)[:most]
    return [await _move_to_part(ctx, question, one) for one in best]


async def read_together(
    ctx: Context, question: str, passages: Sequence[Passage], most: int = 3
) -> list[Reading]:
    """Read passages in one window, for facts that meet in two of them."""
    question = open_order(split_options(question)[0])  # options are no part of what is read for
    if ctx.reader is None or not passages or not can_read(ctx, question):
        return []
    if len(passages) == 1:  # the same window, which may be read already
        return await read_passages(ctx, question, passages, most)
    texts, titles = [p.text for p in passages], [p.title for p in passages]
    found = await asyncio.to_thread(
        ctx.reader.read_together, question, texts, titles=titles, most=most
    )
    read = [r for span in found for r in _to_readings(question, [span], passages[span.passage])]
    return [await _move_to_part(ctx, question, one) for one in read]


async def _move_to_part(ctx: Context, question: str, reading: Reading) -> Reading:
    """Return what is read in the parallel part of the sentence that speaks of what is asked."""
    home, (first, last) = reading.passage, reading.sentence()
    own = (reading.start - first, reading.end - first)
    asked = {*asked_words(question)} - {*asked_words(home.title)}  # all parts are about the title
    part = find_parallel(asked, home.text[first:last], own, _is_asked_word)
    if part is None:
        return reading
    start, end = first + part[0], first + part[1]
    alone = replace(home, text=home.text[start:end], start=home.start + start, end=home.start + end)
    read = await read_passages(ctx, question, (alone,), most=1)
    if not read:
        return reading
    begin = start + read[0].start
    return replace(read[0], passage=home, start=begin, end=begin + len(read[0].text))


def _to_readings(question: str, found: Iterable[ReadSpan], passage: Passage) -> list[Reading]:
    """Return the spans that are short enough for an answer, without marks at their ends."""
    readings = []
    for span in found:
        whole = widen_to_number(passage.text, span.start, span.end)
        kept = keep_in_sentence(passage.text, *whole)
        start, end = trim_span(passage.text, *keep_in_cell(question, passage.text, *kept))
        start, end = keep_in_line(passage.text, start, end)
        start = take_signs(passage.text, start)
        end = end_before_predicate(passage.text, start, end)
        start, end = cut_to_amount(question, passage.text, start, end)
        start, end = move_to_counted(question, passage.text, start, end)
        if _is_only_headed(question, passage.text, start) or stands_on_rule(passage.text, start):
            continue
        if 0 < end - start <= _MAX_SPAN_CHARS:
            text = _WRAP.sub(" ", passage.text[start:end])
            readings.append(Reading(question, text, passage, start, end, span.score))
    return readings


def widen_to_number(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span that cuts no number in two: "65" of "65,536", "45 h" of "0:45 h"."""
    first = text.rfind("\n", 0, start) + 1
    for number in _WHOLE_NUMBER.finditer(text, first, min(len(text), end + _MAX_SPAN_CHARS)):
        if number.start() < start < number.end():
            start = number.start()
        if number.start() < end < number.end():
            end = number.end()
        if number.start() >= end:
            break
    return start, end


def end_before_predicate(text: str, start: int, end: int) -> int:
    """Return where a span that begins with a name ends, before what the sentence goes on to say.

    "Vera Tasch and opened in 1932" is two statements, and the name is of the first.
    """
    found = _NAME_AND_MORE.match(text, start, end)
    if found is None or not begins_with_verb(found["more"]):
        return end
    return found.end("name")


def begins_with_verb(text: str) -> bool:
    """Whether a small word that may be a verb of the past begins a text and has more behind it."""
    found = _FIRST_WORD.match(text)
    if found is None:
        return False
    word = found["word"]
    return word in _AUXILIARIES or word in BASE_OF_FORM or word.endswith("ed")


def cut_to_amount(question: str, text: str, start: int, end: int) -> tuple[int, int]:
    """Return the only sum of money in a span that is most of a sentence, if that is asked for."""
    long = len(text[start:end].split()) > _AMOUNT_WORDS
    if not long or table_for(question).find_asked_measure(question) != "money":
        return start, end
    found = []
    for one in _AMOUNT.finditer(text, start, end):
        amount = parse_quantity(one[0])
        if amount and (amount.dimension.startswith("money") or amount.unit.startswith("pound")):
            found.append(one.span())
    return found[0] if len(found) == 1 else (start, end)


def keep_in_sentence(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the longest part of a span that does not run from a heading or a line into the next.

    Lines that only wrap a sentence are no such boundary; a heading is taken only alone.
    """
    if "\n" not in text[start:end]:
        return start, end
    parts = [
        (max(s, start), min(e, end)) for s, e in _find_sentences(text) if s < end and start < e
    ]
    below = [part for part in parts if not _is_in_heading(text, part[0])] or parts
    longest = max(below, key=lambda part: (len(text[slice(*part)].strip()), part[0]), default=None)
    return longest or (start, end)


def keep_in_line(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the longest line of a span in code, and the longest part between blank lines.

    Lines of prose wrap a sentence, those of code are statements.
    """
    if "\n" not in text[start:end]:
        return start, end
    in_code = text.count("```", 0, start) % 2 == 1
    parts = list((_LINE if in_code else _PARAGRAPH).finditer(text, start, end))
    longest = max(parts, key=lambda part: len(part[0].strip()), default=None)
    return trim_span(text, *longest.span()) if longest else (start, end)


def move_to_counted(question: str, text: str, start: int, end: int) -> tuple[int, int]:
    """Return the number of what is counted, where a span has the number of its neighbour in a list.

    "220 passengers and 38 cars": the number of cars is 38.
    """
    asked = _HOW_MANY.search(question)
    if asked is None:
        return start, end
    for found in _COUNTED_LIST.finditer(text, text.rfind("\n", 0, start) + 1):
        if found.start() > start:
            break
        items = list(_COUNTED.finditer(text, *found.span()))
        own = [one for one in items if one.start() <= start < one.end()]
        fits = [one for one in items if _says_noun(asked["noun"], one["what"])]
        if own and len(fits) == 1 and own[0] is not fits[0]:
            return fits[0].span("number")
    return start, end


def _says_noun(noun: str, words: str) -> bool:
    return any(compare_words(noun.lower(), word.lower()) >= _FORM for word in words.split())


def keep_in_cell(question: str, text: str, start: int, end: int) -> tuple[int, int]:
    """Return the last value of a row in a span that the question does not name: no two cells.

    A row is `| Sample: S2 | Ohm: 87 |`, with or without the names of its columns.
    """
    is_row = text[text.rfind("\n", 0, start) + 1 :].startswith("|")
    if not is_row or " | " not in text[start:end]:
        return start, end
    asked = answer_key(question)
    for cell in reversed(list(_CELL.finditer(text, start, end))):
        if cell["value"].strip() and answer_key(cell["value"]) not in asked:
            return cell.span("value")
    return start, end


def _is_in_heading(text: str, at: int) -> bool:
    return text[text.rfind("\n", 0, at) + 1 :].startswith("#")


def _is_only_headed(question: str, text: str, start: int) -> bool:
    """Whether a span is in a heading that is about what is asked, or that stands over no text.

    Such a heading says where an answer may be. "Sandro Botti" over what is said of him is one.
    """
    if not _is_in_heading(text, start):
        return False
    end = text.find("\n", start)
    below = text[end:].lstrip() if end >= 0 else ""
    heading = text[text.rfind("\n", 0, start) + 1 : max(end, 0) or None]
    asked = asked_words(question)
    return below[:1] in ("", "#") or any(_says_noun(word, heading) for word in asked)


def trim_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Trim marks and unbalanced brackets from the ends of a span."""
    while start < end and text[start] in _TRIMMED and not _opens_pair(text, start, end):
        start += 1
    while start < end and text[end - 1] in _TRIMMED and not _closes_pair(text, start, end):
        end -= 1
    opened = text.rfind("(", start, end)
    if opened > start and ")" not in text[opened:end]:  # "4 megabytes (4MB"
        end = end + 1 if text[end : end + 1] == ")" else len(text[:opened].rstrip())
    return start, end


def take_signs(text: str, start: int) -> int:
    """Return where a span begins with the signs that stand directly before it: "-5", ".profile"."""
    before = text[max(0, start - _MAX_SIGNS - 1) : start]
    signs = _SIGNS.search(before)
    return start - len(signs[1]) if signs else start


def _opens_pair(text: str, start: int, end: int) -> bool:
    return text[start] == "(" and ")" in text[start:end]


def _closes_pair(text: str, start: int, end: int) -> bool:
    if text[end - 1] == ".":  # of "Jr." and "U.S."
        return re.search(r"\b(?:[A-Z]|Jr|Sr|Inc|Ltd|Co|Corp|St)\.$", text[start:end]) is not None
    return text[end - 1] == ")" and "(" in text[start:end]
