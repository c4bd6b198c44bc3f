"""Dates, numbers and units read out of words, so that code can compare and compute with them."""

import re
from dataclasses import dataclass
from datetime import date
from typing import Literal

Order = tuple[int, int, int]

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("january", "jan"),
            ("february", "feb"),
            ("march", "mar"),
            ("april", "apr"),
            ("may",),
            ("june", "jun"),
            ("july", "jul"),
            ("august", "aug"),
            ("september", "sept", "sep"),
            ("october", "oct"),
            ("november", "nov"),
            ("december", "dec"),
        ),
        start=1,
    )
    for name in names
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_ERA = r"(?P<era>\s*(?:BCE?|B\.C\.(?:E\.)?)(?!\w))?"
_DATES = (
    re.compile(r"(?P<sign>-?)(?P<y>\d{1,4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})(?!\d)"),
    re.compile(
        rf"(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+(?P<mon>{_MONTH})\.?,?\s+(?P<y>\d{{1,4}}){_ERA}",
        re.I,
    ),
    re.compile(
        rf"(?P<mon>{_MONTH})\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y>\d{{1,4}}){_ERA}", re.I
    ),
    re.compile(rf"(?P<mon>{_MONTH})\.?,?\s+(?P<y>\d{{3,4}}){_ERA}", re.I),
    re.compile(r"(?P<era>公元前)?(?P<y>\d{1,4})年(?:(?P<m>\d{1,2})月(?:(?P<d>\d{1,2})日)?)?"),
    re.compile(rf"(?<![\d.,])(?P<y>\d{{3,4}})(?!\d|[.,]\d){_ERA}"),
    re.compile(r"(?<![\d.,])(?P<y>\d{1,4})(?P<era>\s*(?:BCE?|B\.C\.(?:E\.)?)(?!\w))"),
    re.compile(r"(?<![\d.,])(?P<y>\d{1,4})\s*(?:AD|CE|A\.D\.)(?!\w)"),
    re.compile(r"(?P<century>\d{1,2})(?:st|nd|rd|th)\s+century(?P<era>\s*BCE?)?", re.I),
)

Dimension = Literal["length", "mass", "time", "area", "share", "money", "temperature"]
# Each unit in its dimension's base: metre, kilogram, second, square metre, one.
_UNITS: dict[str, tuple[Dimension, float]] = {
    **dict.fromkeys(("mm", "millimetre", "millimeter", "毫米"), ("length", 0.001)),
    **dict.fromkeys(("cm", "centimetre", "centimeter", "厘米"), ("length", 0.01)),
    **dict.fromkeys(("m", "metre", "meter", "米"), ("length", 1.0)),
    **dict.fromkeys(("km", "kilometre", "kilometer", "公里", "千米"), ("length", 1000.0)),
    **dict.fromkeys(("in", "inch", "inches"), ("length", 0.0254)),
    **dict.fromkeys(("ft", "foot", "feet"), ("length", 0.3048)),
    **dict.fromkeys(("yd", "yard"), ("length", 0.9144)),
    **dict.fromkeys(("mi", "mile", "英里"), ("length", 1609.344)),
    **dict.fromkeys(("mg", "milligram"), ("mass", 1e-6)),
    **dict.fromkeys(("g", "gram", "克"), ("mass", 0.001)),
    **dict.fromkeys(("kg", "kilogram", "公斤", "千克"), ("mass", 1.0)),
    **dict.fromkeys(("t", "tonne", "ton", "吨"), ("mass", 1000.0)),
    **dict.fromkeys(("lb", "lbs", "pound"), ("mass", 0.45359237)),
    **dict.fromkeys(("s", "sec", "second", "秒"), ("time", 1.0)),
    **dict.fromkeys(("min", "minute", "分钟"), ("time", 60.0)),
    **dict.fromkeys(("h", "hr", "hour", "小时"), ("time", 3600.0)),
    **dict.fromkeys(("day", "天", "日"), ("time", 86400.0)),
    **dict.fromkeys(("week", "周"), ("time", 604800.0)),
    **dict.fromkeys(("month", "个月"), ("time", 2629746.0)),
    **dict.fromkeys(("yr", "year", "年"), ("time", 31556952.0)),
    **dict.fromkeys(("m2", "m²", "square metre", "square meter"), ("area", 1.0)),
    **dict.fromkeys(("ha", "hectare", "公顷"), ("area", 1e4)),
    **dict.fromkeys(("km2", "km²", "square kilometre", "square kilometer"), ("area", 1e6)),
    **dict.fromkeys(("acre", "英亩"), ("area", 4046.8564224)),
    **dict.fromkeys(("sq mi", "square mile"), ("area", 2589988.110336)),
    **dict.fromkeys(("%", "percent", "per cent"), ("share", 0.01)),
}
_SCALES = {
    **{"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12},
    **{"万": 1e4, "亿": 1e8, "百万": 1e6, "k": 1e3},
}
_WORDS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
}
_NUMBER = re.compile(
    r"(?P<money>[$€£¥])?\s*(?P<sign>[-−])?(?P<number>\d{1,3}(?:[, ]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"\s*(?P<scale>hundred|thousand|million|billion|trillion|百万|万|亿)?"
    r"[\s-]*(?P<unit>square (?:kilomet(?:re|er)|met(?:re|er)|mile)s?|per cent|sq mi"
    r"|[a-zA-Z]+[²2]?|%|[\u4e00-\u9fff]{1,2})?",
    re.IGNORECASE,
)
_WORD_NUMBER = re.compile(rf"\b({'|'.join(_WORDS)})\b", re.I)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in its dimension's base unit, and the unit it was said in."""

    amount: float
    dimension: str = ""
    unit: str = ""

    @property
    def factor(self) -> float:
        """How many base units one of the unit it was said in is."""
        known = _UNITS.get(self.unit)
        return known[1] if known else 1.0

    def __str__(self) -> str:
        """In the unit it was said in."""
        amount = self.amount / self.factor
        text = (
            f"{round(amount, 6):,.6f}".rstrip("0").rstrip(".") if amount % 1 else f"{amount:,.0f}"
        )
        return f"{text} {self.unit}".strip()


def when(text: str) -> Order | None:
    """The first date in a text as (year, month, day), 0 for what is not said; years BC are < 0."""
    best: tuple[int, Order] | None = None
    for pattern in _DATES:
        found = pattern.search(text)
        if found is None:
            continue
        parts = found.groupdict()
        read = _order(parts)
        if read is not None and (best is None or found.start() < best[0]):
            best = found.start(), read
    return best[1] if best else None


def _order(parts: dict[str, str | None]) -> Order | None:
    if parts.get("century"):
        year = (int(parts["century"] or 0) - 1) * 100 + 1
    else:
        year = int(parts["y"] or 0)
    month = _MONTHS[(parts.get("mon") or "january").lower()] if parts.get("mon") else 0
    month = month or int(parts.get("m") or 0)
    day = int(parts.get("d") or 0)
    if month > 12 or day > 31:
        return None
    if (parts.get("era") or "").strip() or parts.get("sign"):
        year = -year
    return year, month, day


def quantity(text: str) -> Quantity | None:
    """The first number in a text, with its unit where one is known."""
    found = _NUMBER.search(text)
    if found is None:
        word = _WORD_NUMBER.search(text)
        return Quantity(float(_WORDS[word[1].lower()])) if word else None
    amount = float(re.sub("[, ]", "", found["number"]))
    if found["sign"]:
        amount = -amount
    amount *= _SCALES.get((found["scale"] or "").lower(), 1.0)
    if found["money"]:
        return Quantity(amount, "money", found["money"])
    unit = _known_unit(found["unit"] or "")
    if not unit:
        return Quantity(amount)
    dimension, factor = _UNITS[unit]
    return Quantity(amount * factor, dimension, unit)


def _known_unit(word: str) -> str:
    for form in (word, word.lower(), word.lower().rstrip("s")):
        if form in _UNITS:
            return form
    return ""


def days_between(one: Order, other: Order) -> int | None:
    """Days from one full date to another; None when a date is not full or before year 1."""
    if min(*one, *other) < 1:
        return None
    try:
        return (date(*other) - date(*one)).days
    except ValueError:
        return None


def years_between(one: Order, other: Order) -> int:
    """Whole years from one date to another, as ages are counted; there is no year 0."""
    years = other[0] - one[0]
    if one[0] < 0 < other[0]:
        years -= 1
    if one[1] and other[1] and (other[1], other[2] or 31) < (one[1], one[2]):
        years -= 1
    return years


def before(one: Order, other: Order) -> bool | None:
    """Whether one date is earlier; None when they do not tell (1961 and May 1961)."""
    for a, b in zip(one, other, strict=True):
        if a == 0 or b == 0:
            return None
        if a != b:
            return a < b
    return None
