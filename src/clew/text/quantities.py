"""Parse numbers with units: found in a text, or written alone, as in the cell of a table."""

import re
from dataclasses import dataclass

from clew.text.units import load_units

_CURRENCY_SIGNS = ("$", "€", "£", "¥", "₹")  # these stand before the number
_SCALES = {
    **{"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12},
    **{"万": 1e4, "亿": 1e8, "百万": 1e6, "k": 1e3},
}
_NUMBER_WORDS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
}
_NUMBER = re.compile(
    r"(?P<money>(?:US)?\$|[€£¥₹])?\s*(?P<sign>[-−])?"
    r"(?P<number>\d{1,3}(?:[, ]\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3}){2,}|\d+,\d{1,2}(?![\d,])"
    r"|\d+(?:\.\d+)?)"
    r"\s*(?P<scale>hundred|thousand|million|billion|trillion|百万|万|亿)?"
    r"[\s-]*(?P<unit>(?:square|cubic) (?:kilomet(?:re|er)|met(?:re|er)|mile)s?|per cent|sq mi"
    r"|[a-zA-Z]+[²2]?|%|°\s?[CF]\b|[℃℉]|平方(?:公里|米)|[\u4e00-\u9fff]{1,2})?",
    re.IGNORECASE,
)
# An exponent only as programs write it: "1E4" is more often a code.
_PLAIN = re.compile(r"[+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?")
_WORD_NUMBER = re.compile(rf"\b({'|'.join(_NUMBER_WORDS)})\b", re.I)
_DOTTED = re.compile(r"\d{1,3}(?:\.\d{3}){2,}")
_DECIMAL_COMMA = re.compile(r"\d+,\d{1,2}")
_NEXT_PART = re.compile(r"\s*(?:,|and)?\s*(?=\d)", re.IGNORECASE)
# "1200 in France" has no inches: only a dimension may follow the unit.
_NOT_INCHES = re.compile(r"\s+(?!(?:tall|high|long|wide|deep|thick|by|x|and)\b)\w", re.IGNORECASE)
# Words after a number that are no counted noun, and the nouns for people.
_NOT_COUNTED_NOUNS = frozenset(
    "and for the with was were has had are not but bce from until since".split()
)
_PEOPLE_NOUNS = frozenset("people inhabitant resident citizen person population soul".split())


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in its dimension's base unit, the unit it was written in, and the noun it counts."""

    amount: float
    dimension: str = ""
    unit: str = ""
    noun: str = ""

    @property
    def factor(self) -> float:
        """Base units per unit."""
        known = load_units().sizes.get(self.unit)
        return known[1] if known else 1.0

    def __str__(self) -> str:
        """Format in the unit it was written in."""
        amount = self.amount / self.factor
        text = (
            f"{round(amount, 6):,.6f}".rstrip("0").rstrip(".") if amount % 1 else f"{amount:,.0f}"
        )
        return (
            f"{self.unit}{text}" if self.unit in _CURRENCY_SIGNS else f"{text} {self.unit}".strip()
        )


def parse_quantity(text: str) -> Quantity | None:
    """Parse the first number in a text, with its unit if known; 6 ft 2 in is one number."""
    text = " ".join(text.split())  # a long run of blanks would make the search quadratic
    found = _NUMBER.search(text)
    if found is None:
        word = _WORD_NUMBER.search(text)
        return Quantity(float(_NUMBER_WORDS[word[1].lower()])) if word else None
    whole = _to_quantity(found)
    while whole.dimension and (then := _NEXT_PART.match(text, found.end())):
        found = _NUMBER.match(text, then.end())
        part = _to_quantity(found) if found else None
        if found is None or part is None or part.dimension != whole.dimension:
            break
        if part.factor >= whole.factor:
            break
        whole = Quantity(whole.amount + part.amount, whole.dimension, whole.unit)
    return whole


def _to_quantity(found: re.Match[str]) -> Quantity:
    amount = _parse_number(found["number"]) * _SCALES.get((found["scale"] or "").lower(), 1.0)
    if found["sign"]:
        amount = -amount
    unit_text = (found["unit"] or "").replace("° ", "°")
    money = load_units().currencies.get((found["money"] or unit_text).lower())
    if money:
        return Quantity(amount, f"money {money}", money)
    unit = _normalise_unit(unit_text)
    if unit == "in" and _NOT_INCHES.match(found.string, found.end()):
        return Quantity(amount)
    if not unit:
        return Quantity(amount, noun=_counted_noun(unit_text))
    dimension, factor = load_units().sizes[unit]
    return Quantity(amount * factor, dimension, unit)


def _parse_number(written: str) -> float:
    """Parse comma, blank or repeated dot as thousands separators; 1,5 has a decimal comma."""
    if _DOTTED.fullmatch(written):
        return float(written.replace(".", ""))
    if _DECIMAL_COMMA.fullmatch(written):
        return float(written.replace(",", "."))
    return float(re.sub("[, ]", "", written))


def is_people(word: str) -> bool:
    """Whether a word counts people: residents, inhabitants, population."""
    return word.lower().removesuffix("s") in _PEOPLE_NOUNS


def _counted_noun(word: str) -> str:
    """Return the counted noun, "people" for all words for people; "" where there is none."""
    single = word.lower().removesuffix("s")
    if len(word) < 3 or not word.isascii() or word.lower() in _NOT_COUNTED_NOUNS:
        return ""
    return "people" if is_people(word) else single


def _normalise_unit(word: str) -> str:
    for form in (word, word.lower(), word.lower().rstrip("s")):
        if form in load_units().sizes:
            return form
    return ""


# -- numbers that stand alone; the column of a table decides their decimal sign


def parse_number(cell: object) -> float | None:
    """Return a cell as a plain number, if it is one."""
    if isinstance(cell, int | float):
        return float(cell)
    text = str(cell).strip()
    return float(text.replace(",", "")) if _PLAIN.fullmatch(text) else None
