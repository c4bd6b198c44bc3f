"""The numbers that a question says: in digits, in words and with a unit, and signs before them."""

import re
from collections.abc import Iterator, Sequence

from clew.agents.rules.table_words import Word, load_operators
from clew.text.quantities import parse_number

_MULTIPLES = {"hundred": 100, "thousand": 1000, "k": 1000, "million": 1_000_000}
_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?)([a-z]{1,3})")
_ORDINAL_ENDS = ("st", "nd", "rd", "th", "s")  # of the 3rd and of the 1990s
_TYPED = {"<": "<", ">": ">", "≤": "<=", "≥": ">=", "<=": "<=", ">=": ">="}
_PREFIXES = {"pre": "<", "post": ">"}  # of years: "pre-1400"
_TENS = range(20, 100, 10)


def find_numbers(question: str, words: Sequence[Word]) -> Iterator[tuple[int, str]]:
    """Yield the numbers with their places: 22 for "twenty-two", 10000 for "10k", 15 for "15m"."""
    last = -1
    for at, word in enumerate(words):
        if at <= last or _ends_code(question, words, at):
            continue
        number, end = _read_number(words, at)
        if number is not None:
            behind = words[end].fold if end < len(words) else ""
            last = end - 1
            yield at, f"{number * _MULTIPLES.get(behind, 1):.15g}"
            last += behind in _MULTIPLES
        elif word.fold in _MULTIPLES:
            yield at, f"{_MULTIPLES[word.fold]}"


def _ends_code(question: str, words: Sequence[Word], at: int) -> bool:
    """Whether a number is the digits of a code, SO-1042, and not of "pre-1400"."""
    before = words[at - 1] if at else None
    if before is None or words[at].text[:1] not in "+-" or before.fold in _PREFIXES:
        return False
    return f"{before.text}{words[at].text}" in question


def _read_number(words: Sequence[Word], at: int) -> tuple[float | None, int]:
    """Return the number that begins here, and where it ends."""
    spelled, fold = load_operators().phrases["numbers"], words[at].fold
    if at and words[at - 1].fold in _PREFIXES:
        fold = fold.removeprefix("-")
    number = parse_number(spelled.get((fold,), fold))
    if number is not None and number in _TENS and (fold,) in spelled and at + 1 < len(words):
        unit = parse_number(spelled.get((words[at + 1].fold,), ""))
        if unit is not None and unit < _TENS.step:
            return number + unit, at + 2
    if number is None and (found := _WITH_UNIT.fullmatch(fold)):
        if found[2] not in _ORDINAL_ENDS:
            number = float(found[1]) * _MULTIPLES.get(found[2], 1)
    return number, at + 1


def find_typed_signs(question: str, words: Sequence[Word]) -> dict[int, str]:
    """Return the signs that are typed at numbers: "<40", "50+", "pre-1400"."""
    found, end = {}, 0
    for at, word in enumerate(words):
        start = question.find(word.text, end)
        between, end = question[end:start].strip(), start + len(word.text)
        if not any(map(str.isdigit, word.text)):
            continue
        before = next((one for one in (between[-2:], between[-1:]) if one in _TYPED), "")
        if before:
            found[at] = _TYPED[before]
        elif question[end : end + 1] == "+":
            found[at] = ">="
        elif at and word.text.startswith("-") and words[at - 1].fold in _PREFIXES:
            found[at] = _PREFIXES[words[at - 1].fold]
    return found
