"""Compute totals and differences of values that were read, each from its cited sentence."""

import re
from collections.abc import Mapping, Sequence

from clew.agents.core.plan import AGE, ARITHMETIC, Join
from clew.agents.core.scratchpad import Note
from clew.agents.reading.measured import find_asked_quantity
from clew.agents.reading.spans import asked_words
from clew.text.dates import DateParts, days_between, parse_date, years_between
from clew.text.language import is_chinese
from clew.text.quantities import Quantity, find_amounts, is_people, parse_quantity
from clew.text.unicode import UNSPACED_CHAR, split_words
from clew.text.word_forms import mentions_form

Measured = tuple[Quantity, str]
"""An amount, and its unit as it is written."""
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(
    r"[\d\s.,]*\d(?:\s*(?:hundred|thousand|million|billion|trillion|万|亿))?", re.I
)
_JOINED = re.compile(r"\s*(?:,|and|und)?\s*")
_COUNTED_WORDS = 3  # words behind a number, within which stands what it counts
_FIGURES = 4  # of a result where units were converted


def compute(join: Join, notes: Mapping[int, Note]) -> str:
    """Return the result that a join asks for; "" where a value is missing or they do not go
    together.
    """
    values = [notes.get(numbers[0]) for numbers in join.question_numbers]
    known = [note for note in values if note is not None and note.has_answer]
    if join.how not in ARITHMETIC or len(known) < len(values):
        return ""
    if join.how in ("years before", "years after"):
        return _count_between(join, [parse_date(note.answer) for note in known])
    amounts = [read_amount(note) for note in known]
    found = [one for one in amounts if one is not None]
    counted = all(_counts_asked(note, one) for note, (one, _) in zip(known, found, strict=False))
    if len(found) < len(amounts) or not counted or not _go_together(found):
        return ""
    if join.how == "sum":
        return format_amount(sum(one.amount for one, _ in found), found)
    more = found[0][0].amount - found[1][0].amount
    more = abs(more) if join.how == "apart" else -more if join.how == "shortfall" else more
    # The question takes it to be the other way round: then no number answers it.
    return format_amount(more, found) if more >= 0 else ""


def read_amount(note: Note) -> Measured | None:
    """Return the amount of a note and its unit as it is written, also where only the number was
    read, or the last part of "1 hour and 20 minutes".
    """
    digit, at = _DIGIT.search(note.answer), note.quote.find(note.answer)
    if digit is None or at < 0:
        whole = parse_quantity(note.answer)
        return (whole, "") if whole is not None else None
    place = at + digit.start()
    before: tuple[int, int, Quantity] | None = None
    for start, end, one in find_amounts(note.quote):
        first = before[0] if before and _goes_on(note.quote, before, start, one) else start
        if start <= place < end:
            unit = _NUMBER.sub("", note.quote[start:end], count=1).strip()
            whole = parse_quantity(note.quote[first:]) if one.dimension else None
            return whole or one, unit
        before = first, end, one
    return None


def _goes_on(text: str, before: tuple[int, int, Quantity], start: int, one: Quantity) -> bool:
    """Whether an amount is a smaller part of the one before: "1 hour and 20 minutes"."""
    _, end, larger = before
    same = bool(one.dimension) and one.dimension == larger.dimension
    return same and one.factor < larger.factor and _JOINED.fullmatch(text[end:start]) is not None


def _counts_asked(note: Note, amount: Quantity) -> bool:
    """Whether a number without a unit counts what its question asks for: residents are no lines."""
    if amount.dimension or UNSPACED_CHAR.search(note.question):
        return True
    if labels_asked(note):
        return True
    words = asked_words(note.question)
    if any(map(is_people, words)) and any(map(is_people, split_words(note.quote))):
        return True
    behind = split_words(note.quote.partition(note.answer)[2])[:_COUNTED_WORDS]
    near = " ".join((note.answer, *behind))
    return any(mentions_form(word, near) for word in words)


def labels_asked(note: Note) -> bool:
    """Whether the row of a table is labelled with the measure that is asked for: "Weight (kg)"."""
    asked = find_asked_quantity(note.question) if note.quote.startswith("|") else None
    return asked is not None and asked.nouns.search(note.quote) is not None


def _go_together(amounts: Sequence[Measured]) -> bool:
    """Whether amounts are of one dimension, and count nothing different."""
    nouns = {one.noun for one, _ in amounts if one.noun}
    return len({one.dimension for one, _ in amounts}) == 1 and len(nouns) <= 1


def format_amount(amount: float, amounts: Sequence[Measured]) -> str:
    """Write a result in the unit of the first amount; converted ones are rounded."""
    like, written = amounts[0]
    if abs(amount) < like.factor:
        like, written = min(amounts, key=lambda one: one[0].factor)  # 25 minutes, 7 cm
    number = amount / like.factor
    if len({one.unit for one, _ in amounts}) > 1:
        number = float(f"{number:.{_FIGURES}g}")
    text = str(Quantity(number))
    if like.dimension.startswith("money"):
        return str(Quantity(amount, like.dimension, like.unit))
    return f"{text}{'' if UNSPACED_CHAR.match(written) else ' '}{written}".strip()


def _count_between(join: Join, dates: Sequence[DateParts | None]) -> str:
    """Return the years or days from one date to the other."""
    one, other = dates
    if one is None or other is None:
        return ""
    earlier, later = (one, other) if join.how == "years before" else (other, one)
    if join.what.startswith("day"):
        days = days_between(earlier, later)
        return "" if days is None or days < 0 else f"{days:,} days"
    years = years_between(earlier, later)
    unit = "年" if is_chinese("".join(join.options)) else " years"
    if join.what == AGE and years > 0 and not _knows_birthday(earlier, later):
        return f"{years - 1} or {years}{unit}"
    return f"{years}{unit}" if years >= 0 else ""


def _knows_birthday(born: DateParts, died: DateParts) -> bool:
    """Whether two dates tell if somebody died before the birthday of that year or after it."""
    months = bool(born[1] and died[1])
    return months and (born[1] != died[1] or bool(born[2] and died[2]))
