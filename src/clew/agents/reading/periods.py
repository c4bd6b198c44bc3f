"""Compute what one sentence tells of itself: how long something lasted, and a total of its parts.

"From 1897 to 1921 she led the mill" tells 24 years; "220 apple trees and 75 pear trees" are 295.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clew.agents.citing.support import has_title, mentions_name
from clew.agents.core.types import Answer
from clew.agents.reading.spans import asked_words
from clew.agents.rules.table import table_for
from clew.text.dates import (
    MONTH_PATTERN,
    days_between,
    is_date,
    parse_clock,
    parse_date,
    years_between,
)
from clew.text.quantities import Quantity, find_amounts
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words
from clew.text.word_forms import mentions_form
from clew.types import Passage

_POINT = rf"(?:\d{{1,2}}:\d{{2}}|(?:\d{{1,2}}\s+)?(?:(?:{MONTH_PATTERN})\s+)?\d{{4}})(?![\d:.,]\d)"
_RANGE = re.compile(
    rf"\b(?:(?:from\s+)?(?P<a>{_POINT})\s*(?:to|until|till|–|—|-)\s*(?P<b>{_POINT})"
    rf"|between\s+(?P<c>{_POINT})\s+and\s+(?P<d>{_POINT}))",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r"\([^()]*\)")
_BETWEEN_PARTS = re.compile(
    r"[\w\s-]*?(?:,|\band\b|,\s*and\b)\s*(?:about\s+|some\s+)?", re.IGNORECASE
)
_COUNTED_WORDS = 3  # words behind a number, within which stands what it counts
_MIN_WORDS = 2  # words of a question that a sentence must have where it names nothing
_HOUR, _DAY = 60, 24 * 60  # minutes


@dataclass(frozen=True, slots=True)
class Computed:
    """What was computed from one sentence, and the place of its values."""

    text: str
    passage: Passage
    start: int
    end: int
    sure: bool = True
    """Whether every part is called what the question asks for."""


def compute_told(
    question: str, names: Sequence[str], passages: Sequence[Passage]
) -> Computed | None:
    """Return the length of a period, or the total of parts, that one sentence tells."""
    table = table_for(question)
    if found := table.period.search(question):
        rest = question[: found.start()] + question[found.end() :]
        for passage, start, sentence in _find_telling(rest, names, passages):
            if computed := _measure_range(sentence, (found["unit"] or "").lower()):
                text, first, last = computed
                return Computed(text, passage, start + first, start + last)
    counted = table.counted.search(question)
    if counted is None or not table.combined.search(question):
        return None
    rest = table.combined.sub(" ", question[: counted.start()] + question[counted.end() :])
    for passage, start, sentence in _find_telling(rest, names, passages):
        if parts := _find_parts(sentence):
            return _add_parts(counted["noun"], passage, start, sentence, parts)
    return None


def is_uncomputed(question: str, answer: Answer) -> bool:
    """Whether an answer is one value where a change, a total or a period is asked for.

    "It grew by 5" tells a change and "12 in total" a total; a date is no number of days.
    """
    table, short = table_for(question), answer.candidate
    if answer.computed or not any(map(str.isdigit, short)):
        return False
    quotes = [one.quote for one in answer.citations if short in one.quote]
    if table.change.search(question):
        return not any(re.search(rf"\bby\s+(?:\w+\s+)?{re.escape(short)}", one) for one in quotes)
    found = table.period.search(question)
    if found and found["unit"] and is_date(short):
        return True
    totals = dict(table.sums).get("total")
    if totals is None or not (table.combined.search(question) and table.counted.search(question)):
        return False
    several = any(len(find_amounts(one)) > 1 for one in quotes)
    return several and not any(map(totals.search, quotes))


def _find_telling(
    rest: str, names: Sequence[str], passages: Sequence[Passage]
) -> Iterator[tuple[Passage, int, str]]:
    """Yield the sentences that have all that a question says, of what it names."""
    plain = rest
    for name in names:
        plain = plain.replace(name, " ")
    words = asked_words(plain)
    if len(words) < (1 if names else _MIN_WORDS):
        return
    for passage in passages:
        for start, end in sentence_spans(passage.text):
            sentence = passage.text[start:end]
            named = (has_title(passage, one) or mentions_name(one, sentence) for one in names)
            if all(named) and all(mentions_form(word, sentence) for word in words):
                yield passage, start, sentence


def _measure_range(sentence: str, unit: str) -> tuple[str, int, int] | None:
    """Return how long the one range of a sentence is; dates in brackets are of a life."""
    plain = _BRACKETS.sub(lambda found: " " * len(found[0]), sentence)
    found = list(_RANGE.finditer(plain))
    if len(found) != 1:
        return None
    ends = [found[0][name] for name in "abcd" if found[0][name]]
    clocks = [parse_clock(one) for one in ends]
    if clocks[0] is not None and clocks[1] is not None:
        text = _say_minutes((clocks[1] - clocks[0]) % _DAY, unit)
    else:
        text = _say_dates(ends, unit)
    return (text, *found[0].span()) if text else None


def _say_minutes(minutes: int, unit: str) -> str:
    hours, rest = divmod(minutes, _HOUR)
    if unit not in ("", "minutes", "hours"):
        return ""
    if unit == "minutes" or not hours:
        return f"{minutes} minutes"
    plural = "s" if hours > 1 else ""
    return f"{hours} hour{plural}" + (f" {rest} minutes" if rest else "")


def _say_dates(ends: Sequence[str], unit: str) -> str:
    first, last = (parse_date(one) for one in ends)
    if first is None or last is None or unit not in ("", "years", "days"):
        return ""
    days = days_between(first, last)
    years = years_between(first, last)
    if unit == "days" or (not unit and not years):
        return f"{days:,} days" if days is not None and days > 0 else ""
    return f"{years} years" if years > 0 else ""


def _find_parts(sentence: str) -> list[tuple[int, int, Quantity]]:
    """Return the amounts of a sentence if they stand in one list: "5 a, 3 b and 2 c"."""
    amounts = find_amounts(sentence)
    joined = all(
        _BETWEEN_PARTS.fullmatch(sentence[one[1] : other[0]])
        for one, other in zip(amounts, amounts[1:], strict=False)
    )
    alike = len({amount.dimension for *_, amount in amounts}) == 1
    return amounts if len(amounts) > 1 and joined and alike else []


def _add_parts(
    noun: str,
    passage: Passage,
    start: int,
    sentence: str,
    parts: Sequence[tuple[int, int, Quantity]],
) -> Computed:
    behind = [" ".join(split_words(sentence[first:])[: _COUNTED_WORDS + 1]) for first, *_ in parts]
    total = Quantity(sum(amount.amount / amount.factor for *_, amount in parts))
    sure = all(mentions_form(noun, text) for text in behind)
    text = f"{total} {noun}"
    return Computed(text, passage, start + parts[0][0], start + parts[-1][1], sure)
