"""Parse numbers with units from text, for comparison and arithmetic."""

import re
from dataclasses import dataclass

# Each unit in its dimension's base: metre, kilogram, second, square metre, one.
_UNITS: dict[str, tuple[str, float]] = {
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
    # Degrees of two scales do not go together: each is a dimension of its own.
    **dict.fromkeys(("°c", "℃"), ("degrees C", 1.0)),
    **dict.fromkeys(("°f", "℉"), ("degrees F", 1.0)),
}
_CURRENCIES = {
    **dict.fromkeys(("$", "us$", "dollar", "dollars", "usd"), "$"),
    **dict.fromkeys(("€", "euro", "euros", "eur"), "€"),
    **dict.fromkeys(("£", "gbp"), "£"),
    **dict.fromkeys(("¥", "yen", "jpy"), "¥"),
    **dict.fromkeys(("yuan", "rmb", "元"), "元"),
    **dict.fromkeys(("rupee", "rupees", "₹"), "₹"),
    **dict.fromkeys(("franc", "francs"), "francs"),
    **dict.fromkeys(("krone", "kroner", "nok", "dkk"), "kroner"),
    **dict.fromkeys(("krona", "kronor", "sek"), "kronor"),
    **dict.fromkeys(("rouble", "roubles", "ruble", "rubles"), "roubles"),
    **dict.fromkeys(("peso", "pesos"), "pesos"),
    **dict.fromkeys(("zloty", "zlotys", "złoty", "pln"), "zloty"),
}
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
    r"[\s-]*(?P<unit>square (?:kilomet(?:re|er)|met(?:re|er)|mile)s?|per cent|sq mi"
    r"|[a-zA-Z]+[²2]?|%|°\s?[CF]\b|[℃℉]|[\u4e00-\u9fff]{1,2})?",
    re.IGNORECASE,
)
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
        known = _UNITS.get(self.unit)
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
    money = _CURRENCIES.get((found["money"] or unit_text).lower())
    if money:
        return Quantity(amount, f"money {money}", money)
    unit = _normalise_unit(unit_text)
    if unit == "in" and _NOT_INCHES.match(found.string, found.end()):
        return Quantity(amount)
    if not unit:
        return Quantity(amount, noun=_counted_noun(unit_text))
    dimension, factor = _UNITS[unit]
    return Quantity(amount * factor, dimension, unit)


def _parse_number(written: str) -> float:
    """Parse comma, blank or repeated dot as thousands separators; 1,5 has a decimal comma."""
    if _DOTTED.fullmatch(written):
        return float(written.replace(".", ""))
    if _DECIMAL_COMMA.fullmatch(written):
        return float(written.replace(",", "."))
    return float(re.sub("[, ]", "", written))


def _counted_noun(word: str) -> str:
    """Return the counted noun, "people" for all words for people; "" where there is none."""
    single = word.lower().removesuffix("s")
    if len(word) < 3 or not word.isascii() or word.lower() in _NOT_COUNTED_NOUNS:
        return ""
    return "people" if single in _PEOPLE_NOUNS else single


def _normalise_unit(word: str) -> str:
    for form in (word, word.lower(), word.lower().rstrip("s")):
        if form in _UNITS:
            return form
    return ""
